//! SGLang's page (0.5, with `--enable-metrics`).

use super::text::Page;
use super::{Books, Identity};

pub(super) fn page(identity: &Identity<'_>, books: &Books) -> String {
    let mut page = Page::new(
        &[
            ("engine_type", "unified"),
            ("model_name", identity.model),
            ("moe_ep_rank", "0"),
            ("pp_rank", "0"),
            ("tp_rank", "0"),
        ],
        None,
    );
    scheduler(&mut page, identity, books);
    page.relabel(&[("engine_type", "unified"), ("model_name", identity.model)]);
    tokenizer(&mut page, books);
    page.finish()
}

fn scheduler(page: &mut Page, identity: &Identity<'_>, books: &Books) {
    let (stats, spec) = (&books.stats, identity.spec);
    let tokens = |blocks: u32| f64::from(blocks) * f64::from(spec.block_size);
    let (used, usage) = (tokens(stats.blocks_used), stats.kv_usage());
    let evictable = tokens(stats.blocks_cached.saturating_sub(stats.blocks_used));
    let total = tokens(spec.block_count);
    let slots = f64::from(spec.lora.gpu_slots);
    let slots_used = stats.running_adapters.len() as f64;
    for (name, help, value) in [
        ("num_running_reqs", "The number of running requests.", f64::from(stats.running)),
        ("num_used_tokens", "The number of used tokens.", used),
        ("token_usage", "The token usage.", usage),
        ("full_token_usage", "The token usage for full attention layers.", usage),
        ("gen_throughput", "The generation throughput (token/s).", books.throughput),
        (
            "num_queue_reqs",
            "The number of requests in the waiting queue.",
            f64::from(stats.waiting()),
        ),
        ("num_grammar_queue_reqs", "The number of requests in the grammar waiting queue.", 0.0),
        ("num_retracted_reqs", "The number of retracted requests.", stats.preemptions as f64),
        ("cache_hit_rate", "The prefix cache hit rate.", books.recent_hits),
        ("max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", total),
        ("kv_available_tokens", "KV tokens neither used nor evictable.", total - used - evictable),
        ("kv_evictable_tokens", "KV tokens that are cached and unused.", evictable),
        ("page_size", "The page size of the KV cache.", f64::from(spec.block_size)),
        ("num_pages", "The number of pages of the KV cache.", f64::from(spec.block_count)),
        ("context_len", "The context length.", f64::from(spec.model_len_max)),
        ("utilization", "The utilization.", usage),
        ("lora_pool_slots_used", "LoRA pool slots in use.", slots_used),
        ("lora_pool_slots_total", "LoRA pool slots.", slots),
        (
            "lora_pool_utilization",
            "LoRA pool utilization.",
            if slots > 0.0 { slots_used / slots } else { 0.0 },
        ),
    ] {
        page.gauge(&format!("sglang:{name}"), help, value);
    }
}

fn tokenizer(page: &mut Page, books: &Books) {
    let stats = &books.stats;
    let finished = books.finished_stop + books.finished_length;
    for (name, help, value) in [
        ("prompt_tokens", "Number of prefill tokens processed.", stats.prompt_tokens),
        ("generation_tokens", "Number of generation tokens processed.", stats.generation_tokens),
        ("cached_tokens", "Number of cached prompt tokens.", stats.prompt_tokens_cached),
        ("num_requests", "Number of requests processed.", finished),
        ("num_aborted_requests", "Number of requests aborted.", books.aborted),
    ] {
        page.counter(&format!("sglang:{name}"), help, &[(&[], value as f64)]);
    }
    for (name, help, histogram) in [
        (
            "time_to_first_token_seconds",
            "Histogram of time to first token in seconds.",
            &books.ttft,
        ),
        (
            "inter_token_latency_seconds",
            "Histogram of inter-token latency in seconds.",
            &books.inter_token,
        ),
        (
            "e2e_request_latency_seconds",
            "Histogram of End-to-end request latency in seconds",
            &books.end_to_end,
        ),
        ("queue_time_seconds", "Histogram of queueing time in seconds.", &books.queue),
    ] {
        page.histogram(&format!("sglang:{name}"), help, histogram);
    }
}

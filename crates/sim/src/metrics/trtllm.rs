//! The page of `trtllm-serve` with iteration statistics on.

use super::text::Page;
use super::{Books, Identity};

pub(super) fn page(identity: &Identity<'_>, books: &Books) -> String {
    let mut page = Page::new(&[("engine_type", "trtllm"), ("model_name", identity.model)], None);
    let (stats, spec) = (&books.stats, identity.spec);
    let queried = stats.prefix_query_tokens;
    let hit_rate = if queried == 0 { 0.0 } else { stats.prefix_hit_tokens as f64 / queried as f64 };
    for (name, help, value) in [
        ("num_requests_running", "Requests in the batch.", f64::from(stats.running)),
        ("num_requests_waiting", "Requests in the queue.", f64::from(stats.waiting())),
        ("max_num_active_requests", "Most active requests.", f64::from(spec.sequences_max)),
        ("kv_cache_utilization", "Share of KV blocks in use.", stats.kv_usage()),
        ("kv_cache_hit_rate", "KV cache hit rate.", hit_rate),
        ("kv_cache_max_blocks", "KV blocks.", f64::from(stats.blocks)),
        ("kv_cache_free_blocks", "Free KV blocks.", f64::from(stats.blocks - stats.blocks_used)),
        ("kv_cache_used_blocks", "Used KV blocks.", f64::from(stats.blocks_used)),
        ("kv_cache_tokens_per_block", "Tokens in a block.", f64::from(spec.block_size)),
    ] {
        page.gauge(&format!("trtllm_{name}"), help, value);
    }
    page.counter(
        "trtllm_request_success",
        "Count of successfully processed requests.",
        &[
            (&[("finished_reason", "stop")], books.finished_stop as f64),
            (&[("finished_reason", "length")], books.finished_length as f64),
        ],
    );
    let finished = books.finished_stop + books.finished_length;
    for (name, help, value) in [
        ("num_requests_completed", "Requests completed.", finished),
        ("prompt_tokens", "Prompt tokens.", stats.prompt_tokens),
        ("generation_tokens", "Generated tokens.", stats.generation_tokens),
        ("prompt_cached_tokens", "Cached prompt tokens.", stats.prompt_tokens_cached),
    ] {
        page.counter(&format!("trtllm_{name}"), help, &[(&[], value as f64)]);
    }
    for (name, help, histogram) in [
        ("time_to_first_token_seconds", "Time to first token.", &books.ttft),
        ("time_per_output_token_seconds", "Time per output token.", &books.per_output_token),
        ("e2e_request_latency_seconds", "Request latency.", &books.end_to_end),
        ("request_queue_time_seconds", "Time in the queue.", &books.queue),
        ("request_prefill_time_seconds", "Time in prefill.", &books.prefill),
        ("request_decode_time_seconds", "Time in decode.", &books.decode),
        ("request_inference_time_seconds", "Time in the batch.", &books.inference),
    ] {
        page.histogram(&format!("trtllm_{name}"), help, histogram);
    }
    page.finish()
}

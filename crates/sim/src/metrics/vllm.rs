//! vLLM V1's page (0.32 and 0.33).

use super::text::Page;
use super::{Books, Identity};
use crate::engine::EngineSpec;

pub(super) fn page(identity: &Identity<'_>, books: &Books) -> String {
    let mut page = Page::new(&[], Some(books.created));
    process(&mut page, books);
    page.relabel(&[("engine", "0"), ("model_name", identity.model)]);
    scheduler(&mut page, books);
    counters(&mut page, books);
    page.relabel(&[("model_name", identity.model)]);
    page.counter(
        "vllm:admission_rejections",
        "Number of admission attempts rejected by a queue limit, by reason.",
        &[
            (&[("reason", "max_num_queued_reqs")], books.rejected as f64),
            (&[("reason", "max_num_queued_tokens")], 0.0),
        ],
    );
    page.relabel(&[("engine", "0"), ("model_name", identity.model)]);
    histograms(&mut page, books);
    page.relabel(&[]);
    lora(&mut page, identity, books);
    cache_config(&mut page, identity.spec);
    page.finish()
}

fn process(page: &mut Page, books: &Books) {
    page.family("python_info", "gauge", "Python platform information");
    let python = [
        ("implementation", "CPython"),
        ("major", "3"),
        ("minor", "12"),
        ("patchlevel", "11"),
        ("version", "3.12.11"),
    ];
    page.sample("python_info", &python, 1.0);
    page.gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        books.created,
    );
}

fn scheduler(page: &mut Page, books: &Books) {
    let stats = &books.stats;
    page.gauge(
        "vllm:num_requests_running",
        "Number of requests in model execution batches.",
        f64::from(stats.running),
    );
    page.gauge(
        "vllm:num_requests_waiting",
        "Number of requests waiting to be processed.",
        f64::from(stats.waiting()),
    );
    let by_reason = "vllm:num_requests_waiting_by_reason";
    page.family(by_reason, "gauge", "Number of waiting requests by reason.");
    page.sample(by_reason, &[("reason", "capacity")], f64::from(stats.waiting_capacity));
    page.sample(by_reason, &[("reason", "deferred")], f64::from(stats.waiting_deferred));
    let sleep = "vllm:engine_sleep_state";
    page.family(sleep, "gauge", "Engine sleep state; awake = 1 means engine is awake.");
    for (state, value) in [("awake", 1.0), ("weights_offloaded", 0.0), ("discard_all", 0.0)] {
        page.sample(sleep, &[("sleep_state", state)], value);
    }
    page.gauge(
        "vllm:kv_cache_usage_perc",
        "KV-cache usage. 1 means 100 percent usage.",
        stats.kv_usage(),
    );
}

fn counters(page: &mut Page, books: &Books) {
    let stats = &books.stats;
    let mut plain = |name: &str, help: &str, value: u64| {
        page.counter(name, help, &[(&[], value as f64)]);
    };
    plain(
        "vllm:prefix_cache_queries",
        "Prefix cache queries, in terms of number of queried tokens.",
        stats.prefix_query_tokens,
    );
    plain(
        "vllm:prefix_cache_hits",
        "Prefix cache hits, in terms of number of cached tokens.",
        stats.prefix_hit_tokens,
    );
    plain(
        "vllm:num_preemptions",
        "Cumulative number of preemption from the engine.",
        stats.preemptions,
    );
    plain("vllm:prompt_tokens", "Number of prefill tokens processed.", stats.prompt_tokens);
    let cached = stats.prompt_tokens_cached;
    let computed = stats.prompt_tokens - cached;
    page.counter(
        "vllm:prompt_tokens_by_source",
        "Number of prompt tokens by source.",
        &[
            (&[("source", "local_compute")], computed as f64),
            (&[("source", "local_cache_hit")], cached as f64),
            (&[("source", "external_kv_transfer")], 0.0),
        ],
    );
    page.counter(
        "vllm:prompt_tokens_cached",
        "Number of cached prompt tokens (local + external).",
        &[(&[], cached as f64)],
    );
    page.counter(
        "vllm:generation_tokens",
        "Number of generation tokens processed.",
        &[(&[], stats.generation_tokens as f64)],
    );
    page.counter(
        "vllm:request_success",
        "Count of successfully processed requests.",
        &[
            (&[("finished_reason", "stop")], books.finished_stop as f64),
            (&[("finished_reason", "length")], books.finished_length as f64),
            (&[("finished_reason", "abort")], books.aborted as f64),
            (&[("finished_reason", "error")], 0.0),
            (&[("finished_reason", "repetition")], 0.0),
        ],
    );
}

fn histograms(page: &mut Page, books: &Books) {
    for (name, help, histogram) in [
        ("vllm:request_prompt_tokens", "Number of prefill tokens processed.", &books.prompt_tokens),
        (
            "vllm:request_generation_tokens",
            "Number of generation tokens processed.",
            &books.generation_tokens,
        ),
        (
            "vllm:iteration_tokens_total",
            "Histogram of number of tokens per engine_step.",
            &books.step_tokens,
        ),
        (
            "vllm:time_to_first_token_seconds",
            "Histogram of time to first token in seconds.",
            &books.ttft,
        ),
        (
            "vllm:inter_token_latency_seconds",
            "Histogram of inter-token latency in seconds.",
            &books.inter_token,
        ),
        (
            "vllm:request_time_per_output_token_seconds",
            "Histogram of time_per_output_token_seconds per request.",
            &books.per_output_token,
        ),
        (
            "vllm:e2e_request_latency_seconds",
            "Histogram of e2e request latency in seconds.",
            &books.end_to_end,
        ),
        (
            "vllm:request_queue_time_seconds",
            "Histogram of time spent in WAITING phase for request.",
            &books.queue,
        ),
        (
            "vllm:request_inference_time_seconds",
            "Histogram of time spent in RUNNING phase for request.",
            &books.inference,
        ),
        (
            "vllm:request_prefill_time_seconds",
            "Histogram of time spent in PREFILL phase for request.",
            &books.prefill,
        ),
        (
            "vllm:request_decode_time_seconds",
            "Histogram of time spent in DECODE phase for request.",
            &books.decode,
        ),
        (
            "vllm:request_num_preemptions",
            "Histogram of the number of times a request was preempted.",
            &books.preemptions,
        ),
        (
            "vllm:request_prefill_kv_computed_tokens",
            "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
            &books.computed_tokens,
        ),
    ] {
        page.histogram(name, help, histogram);
    }
}

/// The value is a unix time; the newest label set is the valid one, older ones stay on the page.
fn lora(page: &mut Page, identity: &Identity<'_>, books: &Books) {
    if identity.spec.lora.gpu_slots == 0 {
        return;
    }
    let name = "vllm:lora_requests_info";
    page.family(name, "gauge", "Running stats on lora requests.");
    let max_lora = identity.spec.lora.gpu_slots.to_string();
    let names = |ids: &[types::AdapterId]| {
        let known: Vec<&str> =
            ids.iter().filter_map(|id| identity.adapters.get(id).copied()).collect();
        known.join(",")
    };
    for ((running, waiting), time) in &books.lora_series {
        let labels = [
            ("max_lora", max_lora.as_str()),
            ("running_lora_adapters", &names(running)),
            ("waiting_lora_adapters", &names(waiting)),
        ];
        page.sample(name, &labels, *time);
    }
}

fn cache_config(page: &mut Page, spec: &EngineSpec) {
    let name = "vllm:cache_config_info";
    page.family(name, "gauge", "Information of the LLMEngine CacheConfig");
    let (block_size, blocks) = (spec.block_size.to_string(), spec.block_count.to_string());
    let tokens = (u64::from(spec.block_size) * u64::from(spec.block_count)).to_string();
    let concurrency = format!(
        "{:?}",
        f64::from(spec.block_count) * f64::from(spec.block_size) / f64::from(spec.model_len_max)
    );
    let caching = if spec.prefix_caching { "True" } else { "False" };
    let labels = [
        ("block_size", block_size.as_str()),
        ("cache_dtype", "auto"),
        ("enable_prefix_caching", caching),
        ("engine", "0"),
        ("gpu_memory_utilization", "0.92"),
        ("is_attention_free", "False"),
        ("kv_cache_max_concurrency", &concurrency),
        ("kv_cache_memory_bytes", "None"),
        ("kv_cache_size_tokens", &tokens),
        ("mamba_block_size", "None"),
        ("num_cpu_blocks", "None"),
        ("num_gpu_blocks", &blocks),
        ("num_gpu_blocks_override", "None"),
        ("prefix_caching_hash_algo", "sha256"),
        ("sliding_window", "None"),
    ];
    page.sample(name, &labels, 1.0);
}

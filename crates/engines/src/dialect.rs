//! Which engine says what under which name. One table per engine; the parser knows no names.
//!
//! Sources: each engine's own metrics module, as of vLLM 0.33, SGLang 0.5.23, TGI 3, TensorRT-LLM 1,
//! Triton's TensorRT-LLM backend, llama.cpp b11434.

use types::EngineKind;

use crate::exposition::lines;

/// Where a page is served, by engine, most likely first. `trtllm-serve` answers JSON at `/metrics`
/// and drains its statistics by doing so; Triton has its page there, on port 8002.
pub const METRICS_PATHS: &[(EngineKind, &[&str])] = &[
    (EngineKind::Vllm, &["/metrics"]),
    (EngineKind::Sglang, &["/metrics"]),
    (EngineKind::Tgi, &["/metrics"]),
    (EngineKind::TensorRtLlm, &["/prometheus/metrics", "/metrics"]),
    (EngineKind::LlamaCpp, &["/metrics"]),
    (EngineKind::Unknown, &["/metrics", "/prometheus/metrics"]),
];

/// The row of [`METRICS_PATHS`] for `engine`.
pub fn metrics_paths(engine: EngineKind) -> &'static [&'static str] {
    METRICS_PATHS.iter().find(|(kind, _)| *kind == engine).map_or(&["/metrics"], |(_, paths)| paths)
}

/// What a family tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Waiting,
    /// Used only if no series of [`Signal::Waiting`] is on the page.
    WaitingFallback,
    WaitingDeferred,
    Running,
    RunningMax,
    KvUsage,
    /// A former name; used only if the present one is not on the page.
    KvUsageFormer,
    BlockSize,
    BlockCount,
    PrefixQueries,
    PrefixHits,
    /// 1 while requests are served, 0 while asleep.
    Awake,
    /// 1 while asleep, 0 while requests are served.
    Asleep,
    /// Always 1; size and count are labels of these names.
    CacheConfig {
        size: &'static [u8],
        count: &'static [u8],
    },
    /// The value is the time of the report; what it says is in labels.
    LoraRequests,
}

/// A family worth reading.
#[derive(Debug)]
pub(crate) struct Family {
    /// Without the dialect's prefix.
    pub(crate) name: &'static [u8],
    pub(crate) signal: Signal,
    /// Only the series with this label value.
    pub(crate) only: Option<(&'static [u8], &'static [u8])>,
}

/// How one kind of server writes its page.
#[derive(Debug)]
pub(crate) struct Dialect {
    pub(crate) engine: EngineKind,
    pub(crate) prefix: &'static [u8],
    /// The label that tells apart what must be added up (data-parallel ranks behind one port,
    /// models of a Triton server). Series of one rank describe the same thing more than once.
    pub(crate) rank: &'static [u8],
    pub(crate) families: &'static [Family],
}

const fn family(name: &'static [u8], signal: Signal) -> Family {
    Family { name, signal, only: None }
}

const fn only(
    name: &'static [u8],
    signal: Signal,
    key: &'static [u8],
    value: &'static [u8],
) -> Family {
    Family { name, signal, only: Some((key, value)) }
}

static VLLM: Dialect = Dialect {
    engine: EngineKind::Vllm,
    prefix: b"vllm:",
    rank: b"engine",
    families: &[
        family(b"num_requests_waiting", Signal::Waiting),
        only(b"num_requests_waiting_by_reason", Signal::WaitingDeferred, b"reason", b"deferred"),
        family(b"num_requests_running", Signal::Running),
        family(b"kv_cache_usage_perc", Signal::KvUsage),
        family(b"gpu_cache_usage_perc", Signal::KvUsageFormer),
        family(
            b"cache_config_info",
            Signal::CacheConfig { size: b"block_size", count: b"num_gpu_blocks" },
        ),
        family(b"prefix_cache_queries_total", Signal::PrefixQueries),
        family(b"prefix_cache_queries", Signal::PrefixQueries),
        family(b"prefix_cache_hits_total", Signal::PrefixHits),
        family(b"prefix_cache_hits", Signal::PrefixHits),
        family(b"lora_requests_info", Signal::LoraRequests),
        only(b"engine_sleep_state", Signal::Awake, b"sleep_state", b"awake"),
        only(b"engine_sleep_state", Signal::Asleep, b"sleep_state", b"weights_offloaded"),
        only(b"engine_sleep_state", Signal::Asleep, b"sleep_state", b"discard_all"),
    ],
};

static SGLANG: Dialect = Dialect {
    engine: EngineKind::Sglang,
    prefix: b"sglang:",
    rank: b"dp_rank",
    families: &[
        family(b"num_queue_reqs", Signal::Waiting),
        family(b"num_running_reqs", Signal::Running),
        family(b"token_usage", Signal::KvUsage),
        family(b"page_size", Signal::BlockSize),
        family(b"num_pages", Signal::BlockCount),
        family(
            b"cache_config_info",
            Signal::CacheConfig { size: b"page_size", count: b"num_pages" },
        ),
        family(b"prompt_tokens_total", Signal::PrefixQueries),
        family(b"cached_tokens_total", Signal::PrefixHits),
    ],
};

static TGI: Dialect = Dialect {
    engine: EngineKind::Tgi,
    prefix: b"tgi_",
    rank: b"",
    families: &[
        family(b"queue_size", Signal::Waiting),
        family(b"batch_current_size", Signal::Running),
        family(b"request_input_length_sum", Signal::PrefixQueries),
        family(b"request_skipped_tokens_sum", Signal::PrefixHits),
    ],
};

static TRTLLM_SERVE: Dialect = Dialect {
    engine: EngineKind::TensorRtLlm,
    prefix: b"trtllm_",
    rank: b"",
    families: &[
        family(b"num_requests_waiting", Signal::Waiting),
        family(b"num_requests_running", Signal::Running),
        family(b"max_num_active_requests", Signal::RunningMax),
        family(b"kv_cache_utilization", Signal::KvUsage),
        family(b"kv_cache_tokens_per_block", Signal::BlockSize),
        family(b"kv_cache_max_blocks", Signal::BlockCount),
        family(b"prompt_tokens_total", Signal::PrefixQueries),
        family(b"prompt_cached_tokens_total", Signal::PrefixHits),
    ],
};

static TRITON: Dialect = Dialect {
    engine: EngineKind::TensorRtLlm,
    prefix: b"nv_",
    rank: b"model",
    families: &[
        only(b"trt_llm_request_metrics", Signal::Waiting, b"request_type", b"waiting"),
        only(b"trt_llm_request_metrics", Signal::Running, b"request_type", b"scheduled"),
        only(b"trt_llm_request_metrics", Signal::RunningMax, b"request_type", b"max"),
        only(
            b"trt_llm_kv_cache_block_metrics",
            Signal::KvUsage,
            b"kv_cache_block_type",
            b"fraction",
        ),
        only(
            b"trt_llm_kv_cache_block_metrics",
            Signal::BlockSize,
            b"kv_cache_block_type",
            b"tokens_per",
        ),
        only(b"trt_llm_kv_cache_block_metrics", Signal::BlockCount, b"kv_cache_block_type", b"max"),
        family(b"inference_pending_request_count", Signal::WaitingFallback),
    ],
};

static LLAMA_CPP: Dialect = Dialect {
    engine: EngineKind::LlamaCpp,
    prefix: b"llamacpp:",
    rank: b"",
    families: &[
        family(b"requests_deferred", Signal::Waiting),
        family(b"requests_processing", Signal::Running),
        family(b"kv_cache_usage_ratio", Signal::KvUsage),
        // Computed and cached tokens are counted apart; together they are what was asked for.
        family(b"prompt_tokens_total", Signal::PrefixQueries),
        family(b"prompt_tokens_cached_total", Signal::PrefixQueries),
        family(b"prompt_tokens_cached_total", Signal::PrefixHits),
    ],
};

static DIALECTS: [&Dialect; 6] = [&VLLM, &SGLANG, &TGI, &TRTLLM_SERVE, &TRITON, &LLAMA_CPP];

impl Dialect {
    pub(crate) fn says_kv_usage(&self) -> bool {
        self.families.iter().any(|family| family.signal == Signal::KvUsage)
    }

    pub(crate) fn says_blocks(&self) -> bool {
        let blocks = |signal| matches!(signal, Signal::BlockSize | Signal::CacheConfig { .. });
        self.families.iter().any(|family| blocks(family.signal))
    }
}

/// The engine whose metrics are on the page, by their prefix; the first found counts.
pub fn detect(page: &[u8]) -> EngineKind {
    dialect_of(page, None).map_or(EngineKind::Unknown, |dialect| dialect.engine)
}

/// The first dialect on the page, or the first of `engine`.
pub(crate) fn dialect_of(page: &[u8], engine: Option<EngineKind>) -> Option<&'static Dialect> {
    lines(page).find_map(|line| {
        // An engine without a request yet may show help and type alone.
        let name = line.strip_prefix(b"# HELP ").or_else(|| line.strip_prefix(b"# TYPE "));
        let name = name.unwrap_or(line);
        DIALECTS.into_iter().find(|dialect| {
            name.starts_with(dialect.prefix) && engine.is_none_or(|engine| engine == dialect.engine)
        })
    })
}

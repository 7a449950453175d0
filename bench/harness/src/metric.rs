//! The closed list of what is measured, with the limits that the project set itself.

/// A row of the table.
#[derive(Debug)]
pub struct Metric {
    /// Name in the JSON output.
    pub key: &'static str,
    pub label: &'static str,
    pub decimals: usize,
    pub limits: &'static [Limit],
}

/// A limit for one column.
#[derive(Debug)]
pub struct Limit {
    pub subject: &'static str,
    pub at_most: AtMost,
}

#[derive(Clone, Copy, Debug)]
pub enum AtMost {
    /// So many times what nginx needs in the same run.
    TimesNginx(f64),
    Value(f64),
}

const RR: &str = "wicketgate-rr";
const DEFAULT: &str = "wicketgate";
const EPP: &str = "envoy-epp";
const PICKER: &str = "epp";
const TRACES: &str = "wicketgate-traces";
const GUARDED: &str = "wicketgate-guarded";

const fn times(subject: &'static str, factor: f64) -> Limit {
    Limit { subject, at_most: AtMost::TimesNginx(factor) }
}

const fn value(subject: &'static str, value: f64) -> Limit {
    Limit { subject, at_most: AtMost::Value(value) }
}

macro_rules! metrics {
    ($($name:ident = $key:literal, $label:literal, $decimals:literal, $limits:expr;)*) => {
        $(pub static $name: Metric =
            Metric { key: $key, label: $label, decimals: $decimals, limits: $limits };)*
        /// All of them in the table's order.
        pub static ALL: &[&Metric] = &[$(&$name),*];
    };
}

metrics! {
    CPU_SMALL = "cpu_us_0.5k", "CPU µs/request, 0.5 KB, shared prompt", 1, &[times(RR, 2.5), times(DEFAULT, 3.0)];
    CPU_TRACES = "cpu_us_traces", "added by tracing 1 %, CPU µs/request, 0.5 KB", 1, &[value(TRACES, 2.0)];
    CPU_GUARDED = "cpu_us_guarded", "added by authentication, flow control and limits, CPU µs/request, 0.5 KB", 1, &[value(GUARDED, 25.0)];
    CPU_LOG = "cpu_us_log", "CPU µs/request that the access log adds", 1, &[];
    RATE_SMALL = "per_second_0.5k", "requests/s, 0.5 KB, 32 connections", 0, &[];
    CPU_32K = "cpu_us_32k", "CPU µs/request, 32 KB, shared prompt", 1, &[times(DEFAULT, 3.0)];
    CPU_32K_CONVERSATIONS = "cpu_us_32k_conversations", "CPU µs/request, 32 KB, conversations", 1, &[times(DEFAULT, 3.0)];
    CPU_400K = "cpu_us_400k", "CPU µs/request, 400 KB at 50/s", 0, &[times(DEFAULT, 2.0)];
    CORE_400K = "core_percent_400k", "CPU % of a core, 400 KB at 50/s", 2, &[value(DEFAULT, 5.0)];
    CPU_400K_UNIQUE = "cpu_us_400k_unique", "CPU µs/request, 400 KB at 50/s, unique", 0, &[times(DEFAULT, 2.0)];
    CORE_400K_UNIQUE = "core_percent_400k_unique", "CPU % of a core, 400 KB at 50/s, unique", 2, &[value(DEFAULT, 5.0)];
    ADDED_P50 = "added_us_p50", "added latency P50 µs, 0.5 KB at 500/s", 0, &[times(RR, 1.3), times(DEFAULT, 1.3)];
    ADDED_P99 = "added_us_p99", "added latency P99 µs, 0.5 KB at 500/s", 0, &[];
    CPU_CHUNK = "cpu_us_chunk", "CPU µs/SSE chunk, 100 streams × 100/s", 1, &[times(RR, 1.0), times(DEFAULT, 1.0)];
    CHUNK_P50 = "added_chunk_us_p50", "added chunk delay P50 µs", 0, &[];
    CHUNK_P99 = "added_chunk_us_p99", "added chunk delay P99 µs", 0, &[];
    RSS_IDLE = "rss_mib_idle", "RSS idle MiB", 1, &[value(RR, 25.0), value(DEFAULT, 25.0)];
    RSS_STREAM = "rss_kib_stream", "RSS KiB per idle stream (of 1,000)", 1, &[value(RR, 20.0), value(DEFAULT, 20.0)];
    LEFT_ENDS = "left_ends_s", "s until 1,000 left streams end upstream", 3, &[value(RR, 0.1), value(DEFAULT, 0.1)];
    RSS_UNIQUE = "rss_bytes_char", "RSS bytes per unique prompt character", 3, &[value(DEFAULT, 0.15)];
    IDLE_CORE = "core_percent_idle", "CPU % of a core, no requests, 100 endpoints", 2, &[value(RR, 5.0), value(DEFAULT, 5.0)];
    IDLE_SCRAPES = "scrapes_idle", "scrapes/s of each endpoint then", 2, &[];
    PAGE_MS = "metrics_page_ms", "ms of a scrape of /metrics, 1,000 endpoints", 1, &[value(DEFAULT, 20.0)];
    PAGE_MIB = "metrics_page_mib", "MiB of that page", 1, &[];
    PAGE_P99 = "metrics_page_p99_us", "latency P99 µs, 0.5 KB at 200/s, no scrapes", 0, &[];
    PAGE_P99_SCRAPED = "metrics_page_p99_us_scraped", "latency P99 µs, four scrapes a second", 0, &[];
    PAGE_MAX_SCRAPED = "metrics_page_max_ms_scraped", "longest latency ms then", 1, &[];
    PAGE_MAX = "metrics_page_max_ms", "longest latency ms without scrapes", 1, &[];
    EPP_CPU_SMALL = "epp_cpu_us_0.5k", "picker's CPU µs/request, 0.5 KB", 1, &[value(EPP, 90.0)];
    EPP_ENVOY_SMALL = "epp_envoy_us_0.5k", "Envoy's CPU µs/request then", 1, &[];
    EPP_CPU_400K = "epp_cpu_us_400k", "picker's CPU µs/request, 400 KB at 50/s", 0, &[value(EPP, 2_000.0)];
    EPP_ENVOY_400K = "epp_envoy_us_400k", "Envoy's CPU µs/request then ", 0, &[];
    EPP_RAW_SMALL = "epp_raw_us_0.5k", "CPU µs/request asked by a client of gRPC, 0.5 KB", 1, &[value(PICKER, 90.0)];
    EPP_RAW_400K = "epp_raw_us_400k", "CPU µs/request asked by a client of gRPC, 400 KB", 0, &[value(PICKER, 2_000.0)];
    EPP_RAW_RATE = "epp_raw_per_second_0.5k", "requests/s of that client, 0.5 KB, 32 at once", 0, &[];
    EPP_OVER_P50 = "epp_over_envoy_us_p50", "µs over Envoy alone P50, 0.5 KB at 500/s", 0, &[];
    EPP_OVER_P99 = "epp_over_envoy_us_p99", "µs over Envoy alone P99, 0.5 KB at 500/s", 0, &[value(EPP, 1_500.0)];
    EPP_FACTOR_P50 = "epp_times_built_in_p50", "P50 added to direct, times the built-in proxy's", 2, &[];
    EPP_FACTOR_P99 = "epp_times_built_in_p99", "P99 added to direct, times the built-in proxy's", 2, &[];
    EPP_STREAM_OPEN = "epp_kib_stream_open", "RSS KiB per stream (of 2,000) once all are open", 1, &[value(EPP, 24.0)];
    EPP_STREAM_LATE = "epp_kib_stream_late", "RSS KiB per stream at the end", 1, &[value(EPP, 24.0)];
    EPP_STREAM_TOKENS = "epp_stream_events", "events of each stream until then", 0, &[];
    EPP_STREAM_CPU = "epp_cpu_us_chunk", "picker's CPU µs/chunk of them", 1, &[];
    POOL_EMPTY = "pool_kib_empty", "RSS KiB per idle pool, no endpoints", 1, &[value(PICKER, 100.0)];
    POOL_EMPTY_CORE = "pool_core_percent_empty", "CPU % of a core then", 2, &[];
    POOL_ONE = "pool_kib_one", "RSS KiB per idle pool, one endpoint each", 1, &[value(PICKER, 100.0)];
    POOL_ONE_CORE = "pool_core_percent_one", "CPU % of a core then ", 1, &[];
    POOL_ONE_SCRAPES = "pool_scrapes_one", "scrapes/s of each endpoint then ", 2, &[];
    RSS_AFTER = "rss_mib_after", "RSS after all rounds MiB", 1, &[];
    FAILED = "failed", "failed requests in all rounds", 0, &[];
}

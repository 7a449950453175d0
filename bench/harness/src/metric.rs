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
    RSS_AFTER = "rss_mib_after", "RSS after all rounds MiB", 1, &[];
    FAILED = "failed", "failed requests in all rounds", 0, &[];
}

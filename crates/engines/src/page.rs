//! One metric page, read into what the scheduler needs.
//!
//! Tolerant of how it is written, strict about what it says: a value that cannot be right is left
//! out and counted, never taken for zero.

mod gather;
mod lora;
#[cfg(test)]
mod tests;

use types::{EndpointMetrics, EngineKind, Ratio};

use crate::dialect::{Dialect, Signal, dialect_of};
use crate::exposition::{Sample, lines, split_name};
use gather::{PerRank, counter, quantity};
use lora::LatestLora;

/// Largest page that is read. A vLLM page with many adapters takes some 400 KB.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// What a page said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub metrics: EndpointMetrics,
    pub anomalies: Anomalies,
}

/// What was ignored, counted over the families that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anomalies {
    /// Lines that are not in the format.
    pub malformed_lines: u32,
    /// NaN, infinite, negative, or beyond what the metric can be.
    pub rejected_values: u32,
    /// Series that stood on the page before; the first counts.
    pub duplicate_series: u32,
    /// What this engine could say and did not (`waiting`, `running`, `kv_usage`, `cache_config`).
    /// LoRA is never missing: a server without adapters does not mention it. Worth a log line when
    /// it changes, not at each scrape.
    pub missing: Vec<&'static str>,
}

/// Why a page gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("the page has {0} bytes, more than the {PAGE_BYTES_MAX} that are read")]
    TooLarge(usize),
    #[error("the page is compressed although that was not asked for")]
    Compressed,
    #[error("the page has no metric of an engine that is known")]
    UnknownEngine,
    #[error("the page is one of {found:?}, not of {expected:?}")]
    OtherEngine { expected: EngineKind, found: EngineKind },
    #[error("the page says nothing usable about waiting or running requests or KV use")]
    NoLoad(Anomalies),
}

/// Reads a page.
///
/// * `engine`: `None` or [`EngineKind::Unknown`] to find out from the metrics' prefix.
///
/// Data-parallel ranks behind one port are one endpoint: requests, blocks and tokens are added up,
/// KV use is the mean (ranks have equal shares), and the endpoint sleeps if any rank does.
///
/// # Errors
/// When nothing on the page can be used. A page with at least one load value is good; what is wrong
/// with the rest is in [`Page::anomalies`].
pub fn parse(page: &[u8], engine: Option<EngineKind>) -> Result<Page, PageError> {
    if page.len() > PAGE_BYTES_MAX {
        return Err(PageError::TooLarge(page.len()));
    }
    if page.starts_with(&[0x1f, 0x8b]) {
        return Err(PageError::Compressed);
    }
    let expected = engine.filter(|engine| *engine != EngineKind::Unknown);
    if let Some(dialect) = dialect_of(page, expected) {
        return Reading::new(dialect).read(page);
    }
    match (expected, dialect_of(page, None)) {
        (Some(expected), Some(dialect)) => {
            Err(PageError::OtherEngine { expected, found: dialect.engine })
        }
        _ => Err(PageError::UnknownEngine),
    }
}

/// Requests at one endpoint; more than a million is no number of requests.
const REQUESTS_MAX: f64 = 1e6;
/// Tokens in a block; hybrid models pad theirs to a few thousand.
const BLOCK_TOKENS_MAX: f64 = 1e6;
const BLOCKS_MAX: f64 = 1e12;
/// Tokens since the start of an engine: a million a second for 30,000 years.
const TOKENS_MAX: f64 = 1e18;
/// Rounding lifts a full cache a little over 1; beyond this it is no share.
const KV_USAGE_MAX: f64 = 1.01;

/// A page while it is read.
struct Reading<'a> {
    dialect: &'static Dialect,
    anomalies: Anomalies,
    waiting: PerRank<'a>,
    waiting_fallback: PerRank<'a>,
    waiting_deferred: PerRank<'a>,
    running: PerRank<'a>,
    running_max: PerRank<'a>,
    kv_usage: PerRank<'a>,
    kv_usage_former: PerRank<'a>,
    block_size: PerRank<'a>,
    block_count: PerRank<'a>,
    /// The same from labels of one information series, used if the page has no gauges for them.
    config_block_size: PerRank<'a>,
    config_block_count: PerRank<'a>,
    prefix_queries: PerRank<'a>,
    prefix_hits: PerRank<'a>,
    asleep: bool,
    lora: LatestLora<'a>,
}

impl<'a> Reading<'a> {
    fn new(dialect: &'static Dialect) -> Self {
        Self {
            dialect,
            anomalies: Anomalies::default(),
            waiting: PerRank::default(),
            waiting_fallback: PerRank::default(),
            waiting_deferred: PerRank::default(),
            running: PerRank::default(),
            running_max: PerRank::default(),
            kv_usage: PerRank::default(),
            kv_usage_former: PerRank::default(),
            block_size: PerRank::default(),
            block_count: PerRank::default(),
            config_block_size: PerRank::default(),
            config_block_count: PerRank::default(),
            prefix_queries: PerRank::default(),
            prefix_hits: PerRank::default(),
            asleep: false,
            lora: LatestLora::default(),
        }
    }

    fn read(mut self, page: &'a [u8]) -> Result<Page, PageError> {
        let Dialect { prefix, families, .. } = *self.dialect;
        for line in lines(page) {
            let Some(line) = line.strip_prefix(prefix) else { continue };
            let (name, rest) = split_name(line);
            let mut wanted = families.iter().filter(|family| family.name == name).peekable();
            if wanted.peek().is_none() {
                continue;
            }
            let Some(sample) = Sample::parse(rest) else {
                self.anomalies.malformed_lines += 1;
                continue;
            };
            for family in wanted {
                let passes = |(key, value)| sample.labels.raw(key) == Some(value);
                if family.only.is_none_or(passes) {
                    self.take(family.signal, name, &sample);
                }
            }
        }
        self.finish()
    }

    fn take(&mut self, signal: Signal, name: &'a [u8], sample: &Sample<'a>) {
        let (cells, max) = match signal {
            Signal::Waiting => (&mut self.waiting, REQUESTS_MAX),
            Signal::WaitingFallback => (&mut self.waiting_fallback, REQUESTS_MAX),
            Signal::WaitingDeferred => (&mut self.waiting_deferred, REQUESTS_MAX),
            Signal::Running => (&mut self.running, REQUESTS_MAX),
            Signal::RunningMax => (&mut self.running_max, REQUESTS_MAX),
            Signal::KvUsage => (&mut self.kv_usage, KV_USAGE_MAX),
            Signal::KvUsageFormer => (&mut self.kv_usage_former, KV_USAGE_MAX),
            Signal::BlockSize => (&mut self.block_size, BLOCK_TOKENS_MAX),
            Signal::BlockCount => (&mut self.block_count, BLOCKS_MAX),
            Signal::PrefixQueries => (&mut self.prefix_queries, TOKENS_MAX),
            Signal::PrefixHits => (&mut self.prefix_hits, TOKENS_MAX),
            Signal::Awake => return self.sleep_state(0.0, sample.value),
            Signal::Asleep => return self.sleep_state(1.0, sample.value),
            Signal::CacheConfig { size, count } => return self.cache_config(size, count, sample),
            Signal::LoraRequests => return self.lora.take(sample, &mut self.anomalies),
        };
        let rank = sample.labels.raw(self.dialect.rank).unwrap_or_default();
        cells.take(rank, (name, sample.labels.0), sample.value, max, &mut self.anomalies);
    }

    fn sleep_state(&mut self, asleep: f64, value: f64) {
        self.asleep |= value == asleep;
        self.anomalies.rejected_values += u32::from(value != 0.0 && value != 1.0);
    }

    fn cache_config(&mut self, size: &'static [u8], count: &'static [u8], sample: &Sample<'a>) {
        let rank = sample.labels.raw(self.dialect.rank).unwrap_or_default();
        for (label, cells, max) in [
            (size, &mut self.config_block_size, BLOCK_TOKENS_MAX),
            (count, &mut self.config_block_count, BLOCKS_MAX),
        ] {
            match sample.labels.raw(label) {
                // Python's way to say that it is not known yet.
                None | Some(b"" | b"None") => {}
                Some(text) => {
                    let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                    let value = value.unwrap_or(f64::NAN);
                    let identity = (label, sample.labels.0);
                    cells.take(rank, identity, value, max, &mut self.anomalies);
                }
            }
        }
    }

    fn finish(mut self) -> Result<Page, PageError> {
        let waiting = self.waiting.or(self.waiting_fallback);
        let kv_usage = self.kv_usage.or(self.kv_usage_former);
        let block_size = self.block_size.or(self.config_block_size);
        let block_count = self.block_count.or(self.config_block_count);
        for (name, said, could) in [
            ("waiting", waiting.was_said(), true),
            ("running", self.running.was_said(), true),
            ("kv_usage", kv_usage.was_said(), self.dialect.says_kv_usage()),
            ("cache_config", block_size.was_said(), self.dialect.says_blocks()),
        ] {
            if could && !said {
                self.anomalies.missing.push(name);
            }
        }
        let metrics = EndpointMetrics {
            engine: self.dialect.engine,
            waiting: waiting.sum().map(quantity),
            waiting_deferred: self.waiting_deferred.sum().map(quantity),
            running: self.running.sum().map(quantity),
            running_max: self.running_max.sum().map(quantity).filter(|max| *max > 0),
            kv_usage: kv_usage.mean().and_then(|usage| Ratio::new(usage.min(1.0)).ok()),
            block_size_tokens: block_size.first().map(quantity).filter(|size| *size > 0),
            block_count: block_count.sum().map(counter).filter(|count| *count > 0),
            prefix_query_tokens: self.prefix_queries.sum_of_series().map(counter),
            prefix_hit_tokens: self.prefix_hits.sum_of_series().map(counter),
            asleep: self.asleep,
            lora: self.lora.into_metrics(&mut self.anomalies),
        };
        let says_load =
            metrics.waiting.is_some() || metrics.running.is_some() || metrics.kv_usage.is_some();
        if says_load {
            Ok(Page { metrics, anomalies: self.anomalies })
        } else {
            Err(PageError::NoLoad(self.anomalies))
        }
    }
}

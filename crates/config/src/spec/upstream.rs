//! The endpoints' side: repeating, ejecting, scraping, remembering prefixes.

use std::num::NonZeroU32;
use std::time::Duration;

use types::Ratio;

/// How much of the traffic may be sent a second time.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Retries as a share of the requests in flight. Default 0.2.
    pub budget_ratio: Ratio,
    /// Retries per second that are always allowed. Default 3.
    pub budget_floor_per_second: u32,
}

/// When an endpoint that fails gets no traffic for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Ejection {
    /// Consecutive failures (reset, 502, 503, 504, timeout). Default 5.
    pub failures: NonZeroU32,
    /// The first ejection; the n-th in a row takes n times as long. Default 30s.
    pub base: Duration,
    /// Longest ejection, not below `base`. Default 300s.
    pub max: Duration,
    /// Most of a pool that may be ejected at one time. Default 0.5.
    pub share: Ratio,
}

/// The memory of which endpoint has seen which prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixIndexSpec {
    /// Default 256 MiB.
    pub bytes_max: u64,
    /// Prompt tokens (estimated as four bytes each) in one block. Default 64.
    pub block_tokens: NonZeroU32,
}

/// Reading the endpoints' `/metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrape {
    /// Between two scrapes of an endpoint with requests. Default 100ms.
    pub busy_interval: Duration,
    /// Between two scrapes of an idle endpoint, not below `busy_interval`. Default 2s.
    pub idle_interval: Duration,
    /// Default 1s.
    pub timeout: Duration,
    /// Age at which a scrape counts for nothing. `None`: see [`Scrape::stale_after`].
    pub stale_after: Option<Duration>,
}

impl Scrape {
    /// The age at which a scrape counts for nothing: the setting, else what two missed scrapes of
    /// an idle endpoint take, timeout included, hence 5s by default.
    pub fn stale_after(&self) -> Duration {
        self.stale_after.unwrap_or(2 * self.idle_interval + self.timeout)
    }
}

fn ratio(value: f64) -> Ratio {
    Ratio::new(value).unwrap_or(Ratio::ONE)
}

fn positive(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN)
}

impl Default for Retry {
    fn default() -> Self {
        Self { budget_ratio: ratio(0.2), budget_floor_per_second: 3 }
    }
}

impl Default for Ejection {
    fn default() -> Self {
        Self {
            failures: positive(5),
            base: Duration::from_secs(30),
            max: Duration::from_secs(300),
            share: ratio(0.5),
        }
    }
}

impl Default for PrefixIndexSpec {
    fn default() -> Self {
        Self { bytes_max: 256 << 20, block_tokens: positive(64) }
    }
}

impl Default for Scrape {
    fn default() -> Self {
        Self {
            busy_interval: Duration::from_millis(100),
            idle_interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            stale_after: None,
        }
    }
}

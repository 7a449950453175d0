//! When to scrape an endpoint again.
//!
//! An endpoint that works changes with every step of its engine and is asked often; one that idles
//! cannot change without us knowing, because the requests come through us, and is asked seldom.
//! Reading a page costs its server too, so a slow one is asked less, and a failing one backs off.

use std::time::Duration;

use types::{EndpointId, Timestamp};

/// Intervals between the end of one scrape and the start of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// While requests are in flight or values change. Default 100 ms.
    pub busy: Duration,
    /// After a while without either. Default 2 s.
    pub idle: Duration,
    /// Longest wait for a page. Default 1 s.
    pub timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            busy: Duration::from_millis(100),
            idle: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
        }
    }
}

/// How a scrape went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The page was usable.
    Good {
        /// Load values (waiting, running, KV use) differ from those of the scrape before.
        changed: bool,
    },
    Failed,
}

/// Longest pause of a failing endpoint, unless its own slowness asks for more.
const FAILED_MAX: Duration = Duration::from_secs(5);

/// A scrape that takes 1 is followed by a pause of at least 9: a tenth of the time at most.
const PAUSE_PER_TAKEN: u32 = 9;

/// Values older than this many intervals are stale (fault model, row 15).
const STALE_INTERVALS: u32 = 3;

/// No setting is longer; beyond it an endpoint might as well not be scraped.
const SETTING_MAX: Duration = Duration::from_secs(3600);

/// Each new interval's share in the smoothed one.
const SMOOTHING: f64 = 0.3;

/// The rhythm of one endpoint's scrapes.
#[derive(Clone, Debug)]
pub struct Cadence {
    config: Config,
    /// Next state of the jitter; differs by endpoint from the start.
    jitter: u64,
    /// Pause chosen last, before jitter.
    pause: Duration,
    failures: u32,
    next: Timestamp,
    /// Earliest start that the last scrape's slowness allows.
    not_before: Timestamp,
    last_good: Option<Timestamp>,
    /// From the end of one good scrape to that of the next: smoothed, and as planned for the next.
    observed: Option<Duration>,
    expected: Duration,
}

impl Cadence {
    /// * `id`: spreads endpoints that were added together.
    pub fn new(config: Config, id: EndpointId) -> Self {
        let config = Config {
            busy: config.busy.min(SETTING_MAX),
            idle: config.idle.min(SETTING_MAX),
            timeout: config.timeout.min(SETTING_MAX),
        };
        Self {
            config,
            jitter: u64::from(id.0).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            pause: config.busy,
            failures: 0,
            next: Timestamp::ZERO,
            not_before: Timestamp::ZERO,
            last_good: None,
            observed: None,
            expected: config.busy,
        }
    }

    /// When to scrape for the first time: within one busy interval from `now`.
    pub fn first(&mut self, now: Timestamp) -> Timestamp {
        self.next = now + self.config.busy.mul_f64(self.random());
        self.next
    }

    /// Takes a scrape that ended at `now` after `took`; gives when to start the next.
    ///
    /// * `in_flight`: requests that we have on the endpoint now.
    pub fn after_scrape(
        &mut self,
        now: Timestamp,
        outcome: Outcome,
        in_flight: u32,
        took: Duration,
    ) -> Timestamp {
        let Config { busy, idle, timeout } = self.config;
        let took = took.min(timeout);
        let slow = took * PAUSE_PER_TAKEN;
        self.not_before = now + slow;
        self.pause = match outcome {
            Outcome::Good { changed } => {
                let after_failures = std::mem::take(&mut self.failures) > 0;
                if changed || in_flight > 0 || after_failures {
                    busy
                } else {
                    (self.pause * 2).clamp(busy, idle.max(busy))
                }
            }
            Outcome::Failed => {
                self.failures = self.failures.saturating_add(1);
                let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
                busy.saturating_mul(doubled).min(FAILED_MAX.max(busy))
            }
        };
        let pause = self.pause.max(slow);
        if matches!(outcome, Outcome::Good { .. }) {
            self.note_good(now, pause + took);
        }
        self.next = now + self.spread(pause).max(slow);
        self.next
    }

    /// A request was placed on the endpoint at `now`: what it reports will change. Gives the time of
    /// the next scrape, which may be earlier than the one told before. A failing endpoint keeps its
    /// pause.
    pub fn woken(&mut self, now: Timestamp) -> Timestamp {
        if self.failures == 0 && self.pause > self.config.busy {
            self.pause = self.config.busy;
            let soon = now + self.spread(self.config.busy);
            self.next = self.next.min(soon.max(self.not_before));
        }
        self.next
    }

    /// From one good scrape to the next, smoothed; what is planned until two were seen.
    pub fn observed_interval(&self) -> Duration {
        self.observed.unwrap_or(self.expected)
    }

    /// Age at which values are stale: three times the longer of the interval seen and the one
    /// planned after the last good scrape, and never less than one time-out, so that a single slow
    /// answer makes no endpoint stale. Failures do not stretch it.
    pub fn stale_after(&self) -> Duration {
        let interval = self.observed_interval().max(self.expected);
        (interval * STALE_INTERVALS).max(self.config.timeout)
    }

    fn note_good(&mut self, now: Timestamp, expected: Duration) {
        // A gap that failures made is no rhythm; the next two good ones tell it again.
        let limit = self.stale_after();
        if let Some(last) = self.last_good.replace(now) {
            let interval = now.since(last).min(limit);
            self.observed = Some(match self.observed {
                Some(before) => before.mul_f64(1.0 - SMOOTHING) + interval.mul_f64(SMOOTHING),
                None => interval,
            });
        }
        self.expected = expected;
    }

    /// A fifth more or less, so that endpoints drift apart.
    fn spread(&mut self, pause: Duration) -> Duration {
        pause.mul_f64(0.8 + 0.4 * self.random())
    }

    /// 0 to 1, from a splitmix64 step: spread, not secret.
    fn random(&mut self) -> f64 {
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.jitter;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests;

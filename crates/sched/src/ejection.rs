//! Takes an endpoint that fails out of service, and lets it back carefully.
//!
//! ```text
//!             connect failure, or 5 failures in a row
//!   Healthy ───────────────────────────────────────────▶ Unreachable / Failing
//!      ▲                                                   │ time is up, or a good scrape
//!      │ ramp is over                                      ▼
//!   Ramping ◀──────────────── the trial succeeds ─────── Trial ──▶ (fails: out again, longer)
//! ```
//!
//! Defaults: `reliability.md` A.2 of the design notes (Envoy's outlier detection): 5 failures,
//! 30 s times the number of ejections, at most 300 s. Reads are atomic loads; a lock guards only
//! transitions, and a success on a healthy endpoint is no transition.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use types::Timestamp;

/// When to eject and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectionConfig {
    /// First time out after a connect failure; doubles with each further one. Default 2 s.
    pub connect_first: Duration,
    /// Longest time out after a connect failure. Default 30 s: a good scrape ends it earlier.
    pub connect_max: Duration,
    /// Failures in a row that eject. Default 5.
    pub failures: u32,
    /// Time out after failures, times the number of ejections so far. Default 30 s.
    pub failure_step: Duration,
    /// Longest time out after failures. Default 300 s.
    pub failure_max: Duration,
    /// How long the cap on in-flight requests rises after the return. Default 10 s.
    pub ramp: Duration,
}

impl Default for EjectionConfig {
    fn default() -> Self {
        Self {
            connect_first: Duration::from_secs(2),
            connect_max: Duration::from_secs(30),
            failures: 5,
            failure_step: Duration::from_secs(30),
            failure_max: Duration::from_secs(300),
            ramp: Duration::from_secs(10),
        }
    }
}

/// How a request ended, as far as the endpoint's health is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A response that the endpoint meant: any status but those below.
    Success,
    /// No connection could be made.
    ConnectFailure,
    /// Reset before a response, a timeout, or 502, 503, 504.
    Failure,
    /// Says nothing: 4xx, 429, a client that left.
    Neutral,
}

/// Whether an endpoint may get requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Health {
    #[default]
    Healthy,
    /// Back in service, under a rising cap that is not reached.
    Ramping,
    /// Out, but due for one trial request.
    Trial,
    /// The trial is under way, or the rising cap is reached.
    Held,
    /// Out: it answered with failures.
    Failing,
    /// Out: it took no connection.
    Unreachable,
}

impl Health {
    /// May get a request now.
    pub fn usable(self) -> bool {
        matches!(self, Self::Healthy | Self::Ramping | Self::Trial)
    }
}

/// Doublings of the cap over the ramp: from 1 in-flight request to 1,024.
const RAMP_DOUBLINGS: f64 = 10.0;
/// Ejections in a row after which a good scrape no longer shortens the time out: its metrics
/// port answers, its serving port does not.
const EARLY_RETURNS_MAX: u32 = 3;

const IN_SERVICE: u8 = 0;
const RAMPING: u8 = 1;
const FAILING: u8 = 2;
const UNREACHABLE: u8 = 3;

/// The state machine of one endpoint.
#[derive(Debug, Default)]
pub struct Ejection {
    config: EjectionConfig,
    phase: AtomicU8,
    /// End of the time out, or begin of the ramp.
    instant: AtomicU64,
    failures_in_row: AtomicU32,
    ejections_in_row: AtomicU32,
    trial_taken: AtomicBool,
    transition: Mutex<()>,
}

impl Ejection {
    pub fn new(config: EjectionConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// * `in_flight`: requests there now, for the cap after a return.
    pub fn health(&self, in_flight: u32, now: Timestamp) -> Health {
        let phase = self.phase.load(Ordering::Acquire);
        if phase == IN_SERVICE {
            return Health::Healthy;
        }
        let instant = Timestamp(self.instant.load(Ordering::Relaxed));
        match phase {
            RAMPING => {
                let elapsed = now.since(instant);
                if elapsed >= self.config.ramp {
                    Health::Healthy
                } else if in_flight < ramp_cap(elapsed, self.config.ramp) {
                    Health::Ramping
                } else {
                    Health::Held
                }
            }
            _ if now >= instant => {
                if self.trial_taken.load(Ordering::Acquire) {
                    Health::Held
                } else {
                    Health::Trial
                }
            }
            FAILING => Health::Failing,
            _ => Health::Unreachable,
        }
    }

    /// Tells how a request ended.
    pub fn record(&self, outcome: Outcome, now: Timestamp) {
        match outcome {
            Outcome::Neutral => {}
            Outcome::Success => self.record_success(now),
            Outcome::ConnectFailure => {
                let _guard = self.lock();
                if !self.is_out(now) {
                    self.eject(UNREACHABLE, now);
                }
            }
            Outcome::Failure => {
                let _guard = self.lock();
                let failures = self.failures_in_row.load(Ordering::Relaxed).saturating_add(1);
                self.failures_in_row.store(failures, Ordering::Relaxed);
                let is_due = self.is_ejected() && !self.is_out(now);
                if is_due || (!self.is_ejected() && failures >= self.config.failures) {
                    self.eject(FAILING, now);
                }
            }
        }
    }

    /// Tells that the endpoint answered a scrape: one that took no connections is tried early.
    pub fn record_scrape(&self, now: Timestamp) {
        if self.phase.load(Ordering::Acquire) != UNREACHABLE {
            return;
        }
        let _guard = self.lock();
        let is_first_times = self.ejections_in_row.load(Ordering::Relaxed) <= EARLY_RETURNS_MAX;
        if self.phase.load(Ordering::Relaxed) == UNREACHABLE && is_first_times && self.is_out(now) {
            self.instant.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Takes the one trial if it is due and free; whoever got `true` must give it back.
    pub(crate) fn take_trial(&self, now: Timestamp) -> bool {
        self.is_ejected()
            && !self.is_out(now)
            && self
                .trial_taken
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    pub(crate) fn give_back_trial(&self) {
        self.trial_taken.store(false, Ordering::Release);
    }

    fn record_success(&self, now: Timestamp) {
        let is_plain = self.phase.load(Ordering::Acquire) == IN_SERVICE;
        if is_plain && self.failures_in_row.load(Ordering::Relaxed) == 0 {
            return;
        }
        let _guard = self.lock();
        if self.is_out(now) {
            // Sent before the ejection: says nothing about now.
            return;
        }
        self.failures_in_row.store(0, Ordering::Relaxed);
        match self.phase.load(Ordering::Relaxed) {
            FAILING | UNREACHABLE => {
                self.instant.store(now.as_nanos(), Ordering::Relaxed);
                self.phase.store(RAMPING, Ordering::Release);
            }
            RAMPING => {
                let begun = Timestamp(self.instant.load(Ordering::Relaxed));
                if now.since(begun) >= self.config.ramp {
                    self.ejections_in_row.store(0, Ordering::Relaxed);
                    self.phase.store(IN_SERVICE, Ordering::Release);
                }
            }
            _ => {}
        }
    }

    fn eject(&self, phase: u8, now: Timestamp) {
        let ejections = self.ejections_in_row.load(Ordering::Relaxed).saturating_add(1);
        self.ejections_in_row.store(ejections, Ordering::Relaxed);
        self.failures_in_row.store(0, Ordering::Relaxed);
        let config = &self.config;
        let time_out = if phase == UNREACHABLE {
            let doubled = 1_u32.checked_shl(ejections - 1).unwrap_or(u32::MAX);
            config.connect_first.saturating_mul(doubled).min(config.connect_max)
        } else {
            config.failure_step.saturating_mul(ejections).min(config.failure_max)
        };
        self.instant.store((now + time_out).as_nanos(), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Release);
    }

    fn is_ejected(&self) -> bool {
        matches!(self.phase.load(Ordering::Acquire), FAILING | UNREACHABLE)
    }

    /// Ejected, and its time is not yet up.
    fn is_out(&self, now: Timestamp) -> bool {
        self.is_ejected() && now.as_nanos() < self.instant.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.transition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ramp_cap(elapsed: Duration, ramp: Duration) -> u32 {
    let share = elapsed.as_secs_f64() / ramp.as_secs_f64().max(f64::MIN_POSITIVE);
    (share * RAMP_DOUBLINGS).exp2() as u32
}

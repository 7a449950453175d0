//! Whether a member is alive: what it says, and what requests meet, which counts more.
//!
//! ```text
//! Unknown ──first heartbeat──▶ Fresh ◀──────heartbeat────── Suspect ──silence, no answers──▶ Dead
//!    │ (late: Returning)         │ ────────silence─────────▶   │                             │
//!    │                           ├──failures──▶ Ejected ◀──────┘                          heartbeat
//!    └───────────▶ Returning ◀───┴──its time is over, heartbeats come──┘  ◀───────────────────┘
//!                      └── three heartbeats and a probe ──▶ Fresh, with a ramp
//! ```

#[cfg(test)]
mod tests;

use std::time::Duration;

use types::Timestamp;

use crate::event::Cause;
use crate::heartbeat::{Heartbeat, Rejected};
use crate::ramp::Ramp;
use crate::settings::Settings;

/// Fresh heartbeats after which a returning member is used, once a probe was answered.
const HEARTBEATS_TO_RETURN: u32 = 3;
/// How fast failures are forgotten: to a third in this time.
const FORGOTTEN: f32 = 5.0;
/// The least lag may seem to rise by drifting clocks, so that it is forgotten: 200 millionths.
const DRIFT: u32 = 5000;
/// Former lives that are remembered, so that their heartbeats are not taken again.
const FORMER_LIVES: usize = 8;

/// What a member is held for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Never heard of.
    #[default]
    Unknown,
    Fresh,
    /// Silent for a while, or silent but answering: used less, and nothing spills into it.
    Suspect,
    Dead,
    /// Requests failed there.
    Ejected,
    /// Alive again, not used yet.
    Returning,
    /// Takes nothing new.
    Draining,
}

/// A member's signs of life.
#[derive(Debug)]
pub(crate) struct Vitals {
    pub(crate) condition: Condition,
    pub(crate) ramp: Option<Ramp>,
    /// `None`: never.
    pub(crate) heard: Option<Timestamp>,
    answered: Option<Timestamp>,
    epoch: u64,
    former: Vec<u64>,
    pub(crate) sequence: u64,
    /// How late its heartbeats come, beyond the least lateness that was seen.
    pub(crate) lag: Duration,
    /// Arrival less uptime at its least, nanoseconds.
    offset: i128,
    offset_at: Timestamp,
    unreachable: u32,
    failures: u32,
    ejections: u32,
    ejected_until: Timestamp,
    heartbeats: u32,
    is_probed: bool,
    /// An operator's command, whatever the member says.
    pub(crate) is_drained: bool,
    says_draining: bool,
    /// Lately, fading.
    requests: f32,
    failed: f32,
    counted: Timestamp,
}

/// What else a transition depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// The router has not been up for longer than the cold start.
    pub(crate) is_cold: bool,
    /// No other member takes requests.
    pub(crate) is_alone: bool,
    pub(crate) is_frozen: bool,
}

impl Condition {
    pub const ALL: [Self; 7] = [
        Self::Unknown,
        Self::Fresh,
        Self::Suspect,
        Self::Dead,
        Self::Ejected,
        Self::Returning,
        Self::Draining,
    ];

    pub fn takes_requests(self) -> bool {
        matches!(self, Self::Fresh | Self::Suspect)
    }

    /// In logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Fresh => "fresh",
            Self::Suspect => "suspect",
            Self::Dead => "dead",
            Self::Ejected => "ejected",
            Self::Returning => "returning",
            Self::Draining => "draining",
        }
    }
}

impl Vitals {
    pub(crate) fn new() -> Self {
        Self {
            condition: Condition::Unknown,
            ramp: None,
            heard: None,
            answered: None,
            epoch: 0,
            former: Vec::new(),
            sequence: 0,
            lag: Duration::ZERO,
            offset: i128::MAX,
            offset_at: Timestamp::ZERO,
            unreachable: 0,
            failures: 0,
            ejections: 0,
            ejected_until: Timestamp::ZERO,
            heartbeats: 0,
            is_probed: false,
            is_drained: false,
            says_draining: false,
            requests: 0.0,
            failed: 0.0,
            counted: Timestamp::ZERO,
        }
    }

    /// Age of what it last said, as far as that can be known. `None`: it never said anything.
    pub(crate) fn age(&self, now: Timestamp) -> Option<Duration> {
        Some(now.since(self.heard?) + self.lag)
    }

    pub(crate) fn is_silent(&self, settings: &Settings, now: Timestamp) -> bool {
        self.age(now).is_none_or(|age| age > settings.suspect_after)
    }

    /// Whether anything of late speaks for it.
    pub(crate) fn is_heard(&self, settings: &Settings, now: Timestamp) -> bool {
        !self.is_silent(settings, now) || self.answered_lately(settings, now)
    }

    fn answered_lately(&self, settings: &Settings, now: Timestamp) -> bool {
        self.answered.is_some_and(|answered| now.since(answered) <= settings.evidence)
    }

    /// Share of attempts that failed lately. A few attempts say little.
    pub(crate) fn failed(&self, now: Timestamp) -> f32 {
        let left = self.fading(now);
        self.failed * left / (self.requests * left + 10.0)
    }

    fn fading(&self, now: Timestamp) -> f32 {
        (-now.since(self.counted).as_secs_f32() / FORGOTTEN).exp()
    }

    fn count(&mut self, has_failed: bool, now: Timestamp) {
        let left = self.fading(now);
        self.requests = self.requests * left + 1.0;
        self.failed = self.failed * left + f32::from(u8::from(has_failed));
        self.counted = now;
    }

    /// Takes a heartbeat that is in order.
    pub(crate) fn heard(
        &mut self,
        heartbeat: &Heartbeat,
        around: Surroundings,
        settings: &Settings,
        now: Timestamp,
    ) -> Result<Option<Cause>, Rejected> {
        self.follow(heartbeat)?;
        self.measure_lag(heartbeat.uptime, now);
        self.heard = Some(now);
        self.says_draining = heartbeat.is_draining;
        if self.is_drained || self.says_draining {
            let is_new = self.condition != Condition::Draining;
            self.condition = Condition::Draining;
            return Ok(is_new.then_some(Cause::Drain));
        }
        if self.is_silent(settings, now) {
            // What comes so late is no sign of life now.
            return Ok(None);
        }
        Ok(match self.condition {
            Condition::Fresh => None,
            Condition::Suspect => self.turn(Condition::Fresh, Cause::Heartbeat),
            Condition::Unknown if around.is_cold => self.turn(Condition::Fresh, Cause::Heartbeat),
            Condition::Ejected if now < self.ejected_until => None,
            Condition::Returning => {
                self.heartbeats += 1;
                self.come_back(around, settings, now)
            }
            Condition::Unknown | Condition::Dead | Condition::Ejected | Condition::Draining => {
                self.heartbeats = 1;
                self.is_probed = false;
                self.condition = Condition::Returning;
                self.come_back(around, settings, now).or(Some(Cause::Heartbeat))
            }
        })
    }

    fn come_back(
        &mut self,
        around: Surroundings,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<Cause> {
        // Nobody else can take the requests, and what a ramp protects is not there yet.
        if !around.is_alone {
            if self.heartbeats < HEARTBEATS_TO_RETURN || !self.is_probed {
                return None;
            }
            self.ramp = (!settings.ramp.is_zero()).then(|| Ramp::start(settings.ramp, now));
        }
        self.forget_failures();
        self.turn(Condition::Fresh, Cause::Heartbeat)
    }

    fn forget_failures(&mut self) {
        (self.unreachable, self.failures) = (0, 0);
        (self.requests, self.failed) = (0.0, 0.0);
    }

    fn turn(&mut self, to: Condition, cause: Cause) -> Option<Cause> {
        (self.condition != to).then(|| {
            self.condition = to;
            cause
        })
    }

    /// Refuses what is older than what is known.
    fn follow(&mut self, heartbeat: &Heartbeat) -> Result<(), Rejected> {
        let Heartbeat { epoch, sequence, .. } = *heartbeat;
        if self.heard.is_none() || epoch != self.epoch {
            if self.former.contains(&epoch) {
                return Err(Rejected::FormerLife(epoch));
            }
            if self.heard.is_some() {
                self.former.truncate(FORMER_LIVES - 1);
                self.former.insert(0, self.epoch);
            }
            self.epoch = epoch;
            self.offset = i128::MAX;
        } else if sequence <= self.sequence {
            return Err(Rejected::Old { got: sequence, last: self.sequence });
        }
        self.sequence = sequence;
        Ok(())
    }

    /// Two clocks that do not jump differ by a constant and the way of the message; what is more than the least
    /// that was seen is lateness.
    fn measure_lag(&mut self, uptime: Duration, now: Timestamp) {
        let offset = i128::from(now.as_nanos()) - uptime.as_nanos() as i128;
        let drift = now.since(self.offset_at) / DRIFT;
        let least = self.offset.saturating_add(drift.as_nanos() as i128);
        self.offset = least.min(offset);
        self.offset_at = now;
        let lag = u64::try_from(offset - self.offset).unwrap_or(u64::MAX);
        self.lag = Duration::from_nanos(lag);
    }

    /// An attempt or a probe was answered.
    pub(crate) fn answered(&mut self, now: Timestamp) {
        self.answered = Some(now);
        (self.unreachable, self.failures) = (0, 0);
        self.count(false, now);
    }

    /// A probe was answered.
    pub(crate) fn probed(
        &mut self,
        around: Surroundings,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<Cause> {
        self.answered = Some(now);
        self.unreachable = 0;
        self.is_probed = true;
        if self.condition != Condition::Returning {
            return None;
        }
        self.come_back(around, settings, now).map(|_| Cause::Answer)
    }

    /// An attempt failed; one of several in a row may eject.
    pub(crate) fn failed_once(
        &mut self,
        is_unreachable: bool,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<Cause> {
        self.count(true, now);
        self.failures += 1;
        self.unreachable = if is_unreachable { self.unreachable + 1 } else { 0 };
        match self.condition {
            Condition::Fresh | Condition::Suspect => {}
            Condition::Returning => {
                (self.heartbeats, self.is_probed) = (0, false);
                return None;
            }
            _ => return None,
        }
        let cause = if self.unreachable >= settings.unreachable_max {
            Cause::Unreachable
        } else if self.failures >= settings.failures_max {
            Cause::Failures
        } else {
            return None;
        };
        if now.since(self.ejected_until) > settings.ejection_max {
            self.ejections = 0;
        }
        self.ejections += 1;
        self.ejected_until = now + (settings.ejection * self.ejections).min(settings.ejection_max);
        self.forget_failures();
        self.ramp = None;
        self.turn(Condition::Ejected, cause)
    }

    /// Lets time pass.
    pub(crate) fn tick(
        &mut self,
        around: Surroundings,
        settings: &Settings,
        now: Timestamp,
    ) -> Option<Cause> {
        self.tick_ramp(now);
        let age = self.age(now)?;
        let is_silent = age > settings.suspect_after;
        match self.condition {
            Condition::Fresh if is_silent && !around.is_frozen => {
                self.turn(Condition::Suspect, Cause::Silence)
            }
            Condition::Suspect
                if age > settings.dead_after
                    && !around.is_frozen
                    && !self.answered_lately(settings, now) =>
            {
                self.ramp = None;
                self.turn(Condition::Dead, Cause::Silence)
            }
            Condition::Ejected if now >= self.ejected_until => {
                (self.heartbeats, self.is_probed) = (0, false);
                let to = if is_silent { Condition::Dead } else { Condition::Returning };
                self.turn(to, Cause::Time)
            }
            Condition::Returning | Condition::Draining if age > settings.dead_after => {
                self.turn(Condition::Dead, Cause::Silence)
            }
            _ => None,
        }
    }

    fn tick_ramp(&mut self, now: Timestamp) {
        let left = self.fading(now);
        let Some(ramp) = &mut self.ramp else { return };
        if ramp.judge(self.requests * left, self.failed * left, now) {
            (self.requests, self.failed) = (0.0, 0.0);
        } else if ramp.is_over(now) {
            self.ramp = None;
        }
    }

    /// An operator's command.
    pub(crate) fn drain(&mut self, is_drained: bool) -> Option<Cause> {
        self.is_drained = is_drained;
        if is_drained && self.heard.is_some() {
            self.turn(Condition::Draining, Cause::Drain)
        } else {
            None
        }
    }

    /// Whether the router should find out if it reaches the member.
    pub(crate) fn wants_probe(&self, settings: &Settings, now: Timestamp) -> bool {
        match self.condition {
            Condition::Returning => !self.is_probed,
            Condition::Suspect => true,
            // Silent, and yet held for fresh: the table is frozen.
            Condition::Fresh => self.is_silent(settings, now),
            _ => false,
        }
    }
}

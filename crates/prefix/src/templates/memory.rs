//! A count with a short and a long memory.

use std::time::Duration;

/// How soon something new shows, and how long what is usual is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Half-life of what just happened.
    pub(super) short: Duration,
}

impl Pace {
    /// Half-life of what is usual.
    pub(super) fn long(self) -> Duration {
        60 * self.short
    }

    /// How long a template must be known before it is judged.
    pub(super) fn known_for(self) -> Duration {
        6 * self.short
    }

    /// After this time a regression is what is usual.
    pub(super) fn usual_after(self) -> Duration {
        360 * self.short
    }

    /// How often the memories fade.
    pub(super) fn tick(self) -> Duration {
        self.short / 2
    }
}

/// Both memories of one count. They fade at each tick, not at each count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    pub(super) short: f64,
    pub(super) long: f64,
}

impl Memory {
    pub(super) fn add(&mut self, count: f64) {
        self.short += count;
        self.long += count;
    }

    pub(super) fn fade(&mut self, fade: Fade) {
        self.short *= fade.short;
        self.long *= fade.long;
    }
}

/// What is left of counts after some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fade {
    pub(super) short: f64,
    pub(super) long: f64,
}

impl Fade {
    pub(super) fn after(time: Duration, pace: Pace) -> Self {
        let left = |half_life: Duration| (-(time.as_secs_f64() / half_life.as_secs_f64())).exp2();
        Self { short: left(pace.short), long: left(pace.long()) }
    }
}

/// Seconds that a memory of this half-life spans when it has been kept for `age`: a count divided by them
/// is a rate, unbiased from the beginning.
pub(super) fn span(half_life: Duration, age: Duration) -> f64 {
    let whole = half_life.as_secs_f64() / std::f64::consts::LN_2;
    let filled = 1.0 - (-(age.as_secs_f64() / half_life.as_secs_f64())).exp2();
    (whole * filled).max(1e-3)
}

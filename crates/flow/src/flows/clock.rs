//! What flows are compared by: a rank each, grown by what they were served.

use types::Timestamp;

use crate::config::Fairness;

/// Time constant of forgetting attained service, seconds: a half-life of one minute.
const MEMORY: f64 = 60.0 / std::f64::consts::LN_2;
/// Natural logarithm up to which ranks grow before they are divided; `f64` ends near 709.
const REBASE: f64 = 200.0;

/// Ranks are never negative and never NaN, so that their bits order like themselves.
#[derive(Debug)]
pub(super) enum Clock {
    /// Start-time fair queueing: a flow's rank is the virtual time at which its next request starts.
    Deficits {
        /// Start of what was served last.
        now: f64,
        /// Latest end of anything served.
        end: f64,
    },
    /// A rank is attained service in tokens times e^(age of the clock), which fades all alike without
    /// touching any.
    Attained { epoch: Timestamp },
    /// Flows do not matter.
    Order,
}

impl Clock {
    pub(super) fn new(fairness: Fairness) -> Self {
        match fairness {
            Fairness::DeficitRoundRobin => Self::Deficits { now: 0.0, end: 0.0 },
            Fairness::LeastAttainedService => Self::Attained { epoch: Timestamp::ZERO },
            Fairness::GlobalOrder => Self::Order,
        }
    }

    pub(super) fn remembers(&self) -> bool {
        !matches!(self, Self::Order)
    }

    /// The rank of a flow without history. Lower ones say nothing.
    pub(super) fn floor(&self, now: Timestamp) -> f64 {
        match self {
            Self::Deficits { now, .. } => *now,
            Self::Attained { .. } => self.scale(now),
            Self::Order => 0.0,
        }
    }

    /// What one token adds to a rank.
    pub(super) fn scale(&self, now: Timestamp) -> f64 {
        match self {
            Self::Attained { epoch } => (age(*epoch, now)).exp(),
            Self::Deficits { .. } | Self::Order => 1.0,
        }
    }

    /// The rank of a flow after it was served.
    pub(super) fn serve(&mut self, rank: f64, cost: u64, instant: Timestamp) -> f64 {
        let scale = self.scale(instant);
        match self {
            Self::Deficits { now, end } => {
                *now = now.max(rank);
                let after = rank + cost as f64;
                *end = end.max(after);
                after
            }
            Self::Attained { .. } => rank + cost as f64 * scale,
            Self::Order => rank,
        }
    }

    /// Nobody has work: whoever comes next owes nothing.
    pub(super) fn rest(&mut self) {
        if let Self::Deficits { now, end } = self {
            *now = *end;
        }
    }

    /// What to divide all ranks by, if it is time.
    pub(super) fn rebase_if_due(&mut self, now: Timestamp) -> Option<f64> {
        let Self::Attained { epoch } = self else { return None };
        let age = age(*epoch, now);
        if age <= REBASE {
            return None;
        }
        *epoch = now;
        // What is older than this is nothing.
        Some(age.min(600.0).exp())
    }
}

fn age(epoch: Timestamp, now: Timestamp) -> f64 {
    // Above the point of rebasing only between two calls; must not overflow meanwhile.
    (now.since(epoch).as_secs_f64() / MEMORY).min(600.0)
}

//! What changed in the table, for logs and metrics.

use crate::member::MemberId;
use crate::vitals::Condition;

/// A change that an operator wants to know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A member's condition.
    Changed {
        member: MemberId,
        from: Condition,
        to: Condition,
        cause: Cause,
    },
    /// More than half of the members fell silent at once: the router distrusts itself.
    Frozen,
    Thawed,
}

/// Why a condition changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Heartbeat,
    /// No heartbeat for too long.
    Silence,
    /// Connections could not be made, three times in a row.
    Unreachable,
    /// Five failures in a row.
    Failures,
    /// A request or probe was answered although no heartbeat comes.
    Answer,
    /// It said so, or an operator did.
    Drain,
    /// The time of an ejection is over, or a ramp has ended.
    Time,
}

impl Cause {
    /// In logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::Silence => "silence",
            Self::Unreachable => "unreachable",
            Self::Failures => "failures",
            Self::Answer => "answer",
            Self::Drain => "drain",
            Self::Time => "time",
        }
    }
}

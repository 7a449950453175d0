//! Ways to choose a member. Rivals share our states of members: what is compared is the choice.

use fleet::{Candidate, Fleet, MemberId};

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Wicketgate,
    Weights,
    LeastLoad,
    Nearest,
    Push,
    RoundRobin,
}

/// There is no such policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy `{0}`")]
pub struct UnknownPolicy(String);

impl Policy {
    pub const ALL: [Self; 6] = [
        Self::Wicketgate,
        Self::Weights,
        Self::LeastLoad,
        Self::Nearest,
        Self::Push,
        Self::RoundRobin,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Wicketgate => "wicketgate",
            Self::Weights => "weights",
            Self::LeastLoad => "least-load",
            Self::Nearest => "nearest",
            Self::Push => "push",
            Self::RoundRobin => "round-robin",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Self::Wicketgate => "expected time to the first token, local first",
            Self::Weights => "AWS's four weights, a quarter each",
            Self::LeastLoad => "least use, as last reported",
            Self::Nearest => "the nearest region that is alive, whatever its load (priorities)",
            Self::Push => {
                "local while nothing waits there, else the least waiting (selective push)"
            }
            Self::RoundRobin => "each member in turn",
        }
    }

    pub fn find(name: &str) -> Result<Self, UnknownPolicy> {
        let mut all = Self::ALL.into_iter();
        all.find(|policy| policy.name() == name).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }

    /// A rival's choice; `None`: it is ours to make.
    ///
    /// * `turn`: counts up.
    pub(crate) fn rival(
        self,
        fleet: &Fleet,
        model: &str,
        candidates: &[Candidate],
        way: impl Fn(MemberId) -> u64,
        turn: u64,
    ) -> Option<MemberId> {
        let told = |id: MemberId| {
            let report = fleet.report(id)?;
            let load = report.heartbeat.models.iter().find(|load| load.name.as_str() == model)?;
            Some((load.in_flight as f32 / load.in_flight_max.max(1) as f32, load.waiting))
        };
        let load = |id: MemberId| told(id).map_or(f32::MAX, |(load, _)| load);
        let waiting = |id: MemberId| told(id).map_or(u32::MAX, |(_, waiting)| waiting);
        let ids = || candidates.iter().map(|candidate| candidate.member);
        // Equals in turn, else all of them would go to the first.
        let rotated =
            || ids().cycle().skip(turn as usize % candidates.len()).take(candidates.len());
        match self {
            Self::Wicketgate | Self::Weights => None,
            Self::LeastLoad => rotated().min_by(|a, b| load(*a).total_cmp(&load(*b))),
            Self::Nearest => rotated().min_by_key(|id| way(*id)),
            Self::Push => {
                let mut near: Vec<_> =
                    candidates.iter().filter(|of| of.is_local).map(|of| of.member).collect();
                near.retain(|id| waiting(*id) == 0);
                match near.len() {
                    0 => rotated().min_by_key(|id| (waiting(*id), way(*id))),
                    count => near.get(turn as usize % count).copied(),
                }
            }
            Self::RoundRobin => rotated().next(),
        }
    }
}

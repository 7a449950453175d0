//! A split as people and programs are told of it.

use std::time::Duration;

use types::Timestamp;

use crate::{RollBack, Rollout};

/// What a split is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Active,
    Paused,
    RolledBack,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub phase: Phase,
    /// The weights are an operator's, not the document's.
    pub is_overridden: bool,
    pub targets: Vec<TargetStatus>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TargetStatus {
    pub name: Box<str>,
    pub is_stable: bool,
    /// By the document.
    pub configured_weight: u32,
    /// By which requests are dealt now.
    pub weight: u32,
    /// The same as a part of all, 0 to 1.
    pub share: f64,
    /// Since the split came into force.
    pub requests: u64,
    pub errors: u64,
    /// Of the window, as is the rest.
    pub recent_requests: u64,
    /// 0 to 1.
    pub error_rate: f64,
    pub ttft_p50: Option<Duration>,
    pub ttft_p95: Option<Duration>,
    pub rolled_back: Option<RollBack>,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::RolledBack => "rolled-back",
        }
    }
}

impl Rollout {
    pub fn status(&self, now: Timestamp) -> Status {
        let weights = self.weights();
        let mut board = self.board();
        let is_back = board.tallies.iter().any(|tally| tally.rolled_back.is_some());
        let phase = match (is_back, board.is_paused) {
            (true, _) => Phase::RolledBack,
            (false, true) => Phase::Paused,
            (false, false) => Phase::Active,
        };
        let is_overridden = board.is_overridden;
        let tallies = board.tallies.iter_mut().enumerate();
        let targets = tallies
            .map(|(at, tally)| {
                let planned = &self.plan.targets[at];
                let recent = tally.window.summary(now);
                TargetStatus {
                    name: planned.name.clone(),
                    is_stable: at == self.stable,
                    configured_weight: planned.weight,
                    weight: weights.get(at),
                    share: weights.share(at),
                    requests: tally.requests,
                    errors: tally.errors,
                    recent_requests: recent.requests,
                    error_rate: recent.error_rate(),
                    ttft_p50: recent.ttft.quantile(0.5),
                    ttft_p95: recent.ttft.quantile(0.95),
                    rolled_back: tally.rolled_back.clone(),
                }
            })
            .collect();
        Status { phase, is_overridden, targets }
    }
}

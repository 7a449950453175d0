//! Rates each candidate from 0.0 to 1.0, one scorer for each thing that matters.

mod active_requests;
mod context_length;
mod expected_time;
mod kv_cache;
mod load;
mod load_aware;
mod lora;
mod lru;
mod prefix;
mod prefix_length;
#[cfg(test)]
mod reference_tests;
mod session;
#[cfg(test)]
mod tests;
mod token_load;

pub use active_requests::ActiveRequestsScorer;
pub use context_length::{ContextLengthFilter, ContextLengthScorer, ContextRange, ContextRanges};
pub use expected_time::ExpectedTimeScorer;
pub use kv_cache::KvCacheScorer;
pub use load::{LeastRequestScorer, QueueScorer, RunningRequestsScorer};
pub use load_aware::LoadAwareScorer;
pub use lora::LoraAffinityScorer;
pub use lru::NoHitLruScorer;
pub use prefix::PrefixScorer;
pub use prefix_length::PrefixLengthScorer;
pub use session::SessionAffinityScorer;
pub use token_load::TokenLoadScorer;

use crate::{Candidate, RequestView};

/// Rates candidates.
pub trait Scorer: Send + Sync {
    /// Name in configuration, metrics and receipts; never changes once released.
    fn name(&self) -> &'static str;

    /// Writes one score per candidate, in candidate order.
    ///
    /// * `candidates`, `scores`: same length `n >= 1`.
    /// * each score: `0.0..=1.0`, 1.0 most wanted; the profile applies weights afterwards.
    ///
    /// Cannot fail. Request path: no I/O, no allocation once warm.
    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]);

    /// Learns which candidate was chosen; scorers without memory ignore it.
    fn picked(&self, _request: &RequestView<'_>, _candidates: &[Candidate], _picked: &Candidate) {}
}

/// Which account of an endpoint's load a scorer believes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signals {
    /// Our ledger corrected by the scrape; old scrapes fade, missing signals are neutral.
    #[default]
    Accounted,
    /// The last scrape as it is, whatever its age; missing counts as zero. Bit for bit what the
    /// Gateway API Inference Extension's scorers compute.
    Scraped,
}

/// The most that an endpoint without fresh data may score: never best.
const NEUTRAL: f32 = 0.5;

/// `1.0` for the freshest candidates, down to [`NEUTRAL`] for one that is wholly stale among
/// fresh ones. When all are equally old nobody is capped, and the ledger decides.
fn cap(freshness: f32, freshest: f32) -> f32 {
    1.0 - (1.0 - NEUTRAL) * (freshest - freshness).clamp(0.0, 1.0)
}

/// NaN becomes `if_nan`, everything else is clamped to what a finite load can be.
fn finite(value: f32, if_nan: f32) -> f32 {
    if value.is_nan() { if_nan } else { value.clamp(0.0, f32::MAX) }
}

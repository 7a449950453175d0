//! Which traces are kept.

use std::time::Duration;

use super::{TraceContext, TraceId};

/// Decided twice: when a request comes (what is told to the endpoint), and when it has ended (what is
/// worth keeping after all).
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Share of traces that begin here, 0.0 to 1.0.
    pub ratio: f64,
    /// Whether a caller's own decision holds for its trace.
    pub follows_parent: bool,
    /// Keep what failed.
    pub errors: bool,
    /// Keep what took longer: to the first token of a stream, else to the end.
    pub slower_than: Option<Duration>,
}

impl Sampling {
    /// The decision at the beginning.
    pub fn begins(&self, trace: TraceId, parent: Option<TraceContext>) -> bool {
        match parent {
            Some(parent) if self.follows_parent => parent.sampled,
            _ => self.is_in_ratio(trace),
        }
    }

    /// The decision at the end, for a trace that was not chosen at its beginning.
    pub fn keeps(&self, has_failed: bool, took: Duration) -> bool {
        (self.errors && has_failed) || self.slower_than.is_some_and(|limit| took > limit)
    }

    /// As OpenTelemetry's `TraceIdRatioBased` decides, so that all who use it keep the same traces.
    fn is_in_ratio(&self, trace: TraceId) -> bool {
        const WHOLE: f64 = (1_u64 << 63) as f64;
        if self.ratio >= 1.0 {
            return true;
        }
        // Truncation keeps the lower half, which is meant.
        let low = trace.0 as u64 >> 1;
        (low as f64) < self.ratio * WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::SpanId;

    fn sampling(ratio: f64) -> Sampling {
        Sampling { ratio, follows_parent: true, errors: true, slower_than: None }
    }

    #[test]
    fn the_share_of_traces_that_is_kept_is_the_ratio() {
        for (ratio, expected) in [(0.0, 0..=0), (0.01, 900..=1100), (1.0, 100_000..=100_000)] {
            let sampling = sampling(ratio);
            // Weyl steps: spread evenly, and the same in each run.
            let ids = (1..=100_000_u128).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let kept = ids.filter(|id| sampling.begins(TraceId(*id), None)).count();
            assert!(expected.contains(&kept), "{kept} of 100,000 at {ratio}");
        }
    }

    #[test]
    fn a_caller_s_decision_holds_where_it_is_followed() {
        let parent = |sampled| Some(TraceContext { trace: TraceId(1), span: SpanId(1), sampled });
        assert!(sampling(0.0).begins(TraceId(1), parent(true)));
        assert!(!sampling(1.0).begins(TraceId(1), parent(false)));
        let own = Sampling { follows_parent: false, ..sampling(0.0) };
        assert!(!own.begins(TraceId(1), parent(true)));
    }

    #[test]
    fn failures_and_slowness_are_kept_after_all() {
        let second = Duration::from_secs(1);
        assert!(sampling(0.0).keeps(true, second));
        assert!(!sampling(0.0).keeps(false, second));
        let slow = Sampling { errors: false, slower_than: Some(second), ..sampling(0.0) };
        assert!(!slow.keeps(true, second));
        assert!(slow.keeps(false, 2 * second));
    }
}

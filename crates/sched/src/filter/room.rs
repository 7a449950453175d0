//! Drops endpoints that are too busy by a fixed measure.

use super::Filter;
use crate::{Candidate, RequestView};

/// What an endpoint may have at most, by what it said last and by what we have sent it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ceiling {
    /// Requests of this gateway in flight.
    ActiveRequests(f64),
    RunningRequests(f64),
    WaitingRequests(f64),
    /// Share of KV blocks in use.
    KvUsage(f64),
}

impl Ceiling {
    /// What is not reported counts as 0.
    fn is_kept(self, candidate: &Candidate) -> bool {
        let scraped = &candidate.scraped;
        match self {
            Self::ActiveRequests(max) => f64::from(candidate.in_flight) <= max,
            Self::RunningRequests(max) => f64::from(scraped.running.unwrap_or(0)) <= max,
            Self::WaitingRequests(max) => f64::from(scraped.waiting.unwrap_or(0)) <= max,
            Self::KvUsage(max) => scraped.kv_usage.unwrap_or(0.0) <= max as f32,
        }
    }
}

/// Drops endpoints above any of the ceilings.
///
/// Source: `utilization-filter` of llm-d.
#[derive(Clone, Debug)]
pub struct CeilingFilter {
    pub ceilings: Vec<Ceiling>,
    /// Keep all if none would be left.
    pub fails_open: bool,
}

impl Filter for CeilingFilter {
    fn name(&self) -> &'static str {
        "utilization"
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        let is_kept = |candidate: &Candidate| self.ceilings.iter().all(|c| c.is_kept(candidate));
        keep_some(candidates, keep, self.fails_open, is_kept);
    }

    fn knows_more(&self) -> bool {
        true
    }
}

/// Drops endpoints whose last scrape shows a queue or a KV cache at its limit, or is stale; keeps all
/// if none would be left.
///
/// Source: `utilization-detector` of llm-d in a profile. There an endpoint is stale after a fixed
/// time, here when the interval at which it is really scraped has passed several times.
#[derive(Clone, Copy, Debug)]
pub struct UtilizationFilter {
    /// Waiting requests. The field's default: 5.
    pub queue_depth: u32,
    /// Share of KV blocks in use. The field's default: 0.8.
    pub kv_usage: f64,
    /// How much either may be exceeded, as a share of it. The field's default: 0.
    pub headroom: f64,
}

impl Filter for UtilizationFilter {
    fn name(&self) -> &'static str {
        "utilization-detector"
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        let waiting_max = f64::from(self.queue_depth) * (1.0 + self.headroom);
        // A reported share is an f32; compared as one, 0.8 is 0.8.
        let kv_usage_max = (self.kv_usage * (1.0 + self.headroom)) as f32;
        keep_some(candidates, keep, true, |candidate| {
            let scraped = &candidate.scraped;
            !candidate.stale
                && candidate.age.is_some()
                && f64::from(scraped.waiting.unwrap_or(0)) < waiting_max
                && scraped.kv_usage.unwrap_or(0.0) < kv_usage_max
        });
    }

    fn knows_more(&self) -> bool {
        true
    }
}

/// Drops endpoints with too many of this gateway's requests or prompt tokens in flight, even if none
/// is left.
///
/// Source: `concurrency-detector` of llm-d in a profile.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrencyFilter {
    /// Requests in flight at which an endpoint is dropped; `None`: not counted.
    pub requests: Option<u64>,
    /// Prompt tokens sent and not yet answered at which it is dropped; `None`: not counted.
    pub tokens: Option<u64>,
}

impl Filter for ConcurrencyFilter {
    fn name(&self) -> &'static str {
        "concurrency-detector"
    }

    fn filter(&self, _request: &RequestView<'_>, candidates: &[Candidate], keep: &mut [bool]) {
        keep_some(candidates, keep, false, |candidate| {
            self.requests.is_none_or(|max| u64::from(candidate.in_flight) < max)
                && self.tokens.is_none_or(|max| candidate.prefill_tokens < max)
        });
    }

    fn knows_more(&self) -> bool {
        true
    }
}

fn keep_some(
    candidates: &[Candidate],
    keep: &mut [bool],
    fails_open: bool,
    is_kept: impl Fn(&Candidate) -> bool,
) {
    if fails_open && !candidates.iter().any(&is_kept) {
        return;
    }
    for (keep, candidate) in keep.iter_mut().zip(candidates) {
        *keep = is_kept(candidate);
    }
}

//! Keeps a session on the endpoint it had.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Timestamp;

use super::Scorer;
use crate::{Candidate, RequestView};

/// 1.0 for the endpoint that the session was last sent to within `ttl`, else 0.0.
///
/// A direct-mapped table: two sessions that meet in a cell forget the older one, which costs
/// affinity and nothing else. Bounded at [`CELLS`] sessions of 24 bytes.
///
/// Source: `session-affinity-scorer` of llm-d, strategy `session_id`, ttl 300 s.
#[derive(Debug)]
pub struct SessionAffinityScorer {
    ttl: Duration,
    cells: Box<[Cell]>,
}

/// Sessions remembered at once.
const CELLS: usize = 16_384;

#[derive(Debug, Default)]
struct Cell {
    session: AtomicU64,
    /// Endpoint id plus one; 0 is none.
    endpoint: AtomicU64,
    used_at: AtomicU64,
}

impl Default for SessionAffinityScorer {
    fn default() -> Self {
        Self::new(Duration::from_secs(300))
    }
}

impl SessionAffinityScorer {
    pub fn new(ttl: Duration) -> Self {
        Self { ttl, cells: (0..CELLS).map(|_| Cell::default()).collect() }
    }

    fn cell(&self, session: u64) -> &Cell {
        let spread = session.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.cells[spread as usize % CELLS]
    }
}

impl Scorer for SessionAffinityScorer {
    fn name(&self) -> &'static str {
        "session-affinity"
    }

    fn score(&self, request: &RequestView<'_>, candidates: &[Candidate], scores: &mut [f32]) {
        scores.fill(0.0);
        let Some(session) = request.session else { return };
        let cell = self.cell(session);
        let used_at = Timestamp(cell.used_at.load(Ordering::Relaxed));
        let endpoint = cell.endpoint.load(Ordering::Relaxed);
        if cell.session.load(Ordering::Acquire) != session
            || endpoint == 0
            || request.now.since(used_at) > self.ttl
        {
            return;
        }
        for (score, candidate) in scores.iter_mut().zip(candidates) {
            if u64::from(candidate.endpoint.0) + 1 == endpoint {
                *score = 1.0;
            }
        }
    }

    fn picked(&self, request: &RequestView<'_>, _candidates: &[Candidate], picked: &Candidate) {
        let Some(session) = request.session else { return };
        let cell = self.cell(session);
        cell.endpoint.store(u64::from(picked.endpoint.0) + 1, Ordering::Relaxed);
        cell.used_at.store(request.now.as_nanos(), Ordering::Relaxed);
        cell.session.store(session, Ordering::Release);
    }
}

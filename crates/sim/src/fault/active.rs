//! The faults that are switched on at one server.

use std::time::Duration;

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use tokio::time::Instant;

use super::{Fault, FaultKind};

#[derive(Debug)]
pub(crate) struct Faults {
    active: Vec<Active>,
    rng: Pcg32,
}

#[derive(Debug)]
struct Active {
    fault: Fault,
    until: Option<Instant>,
    left: Option<u32>,
    /// The page that [`FaultKind::MetricsFrozen`] keeps.
    page: Option<Bytes>,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self { active: Vec::new(), rng: Pcg32::seed_from_u64(seed) }
    }

    /// Switches a fault on. `page` is the metrics page as it is now.
    pub(crate) fn add(&mut self, fault: Fault, now: Instant, page: Bytes) {
        let until = fault.duration_ms.map(|millis| now + Duration::from_millis(millis));
        let page = (fault.kind == FaultKind::MetricsFrozen).then_some(page);
        self.active.push(Active { left: fault.next, until, page, fault });
    }

    pub(crate) fn clear(&mut self) {
        self.active.clear();
    }

    pub(crate) fn list(&mut self, now: Instant) -> Vec<Fault> {
        self.expire(now);
        let shown = |active: &Active| Fault { next: active.left, ..active.fault.clone() };
        self.active.iter().map(shown).collect()
    }

    /// What happens to a request; `generates`: it is one that a fault without a path strikes.
    pub(crate) fn strike(
        &mut self,
        path: &str,
        body: &[u8],
        generates: bool,
        now: Instant,
    ) -> Option<FaultKind> {
        self.expire(now);
        let rng = &mut self.rng;
        let struck = self.active.iter_mut().find(|active| {
            let fault = &active.fault;
            let meant = match &fault.kind {
                FaultKind::Poison { marker, .. } => holds(body, marker.as_bytes()),
                FaultKind::Refuse | FaultKind::Restart { .. } | FaultKind::UnloadAdapter { .. } => {
                    false
                }
                kind => !kind.strikes_metrics(),
            };
            meant
                && active.left != Some(0)
                && fault.path.as_deref().map_or(generates, |prefix| path.starts_with(prefix))
                && (fault.share >= 1.0
                    || f64::from(rng.next_u32()) < fault.share * f64::from(u32::MAX))
        })?;
        struck.left = struck.left.map(|left| left - 1);
        Some(struck.fault.kind.clone())
    }

    /// What happens to a scrape, and the frozen page if that is it.
    pub(crate) fn strike_metrics(&mut self, now: Instant) -> Option<(FaultKind, Option<Bytes>)> {
        self.expire(now);
        let mut active = self.active.iter();
        let struck = active.find(|active| active.fault.kind.strikes_metrics())?;
        Some((struck.fault.kind.clone(), struck.page.clone()))
    }

    fn expire(&mut self, now: Instant) {
        self.active.retain(|active| {
            active.until.is_none_or(|until| now < until) && active.left != Some(0)
        });
    }
}

fn holds(body: &[u8], marker: &[u8]) -> bool {
    !marker.is_empty() && body.windows(marker.len()).any(|window| window == marker)
}

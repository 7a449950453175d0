//! What is shown: the last snapshot, the pace behind it, and how the gateway answers.

#[cfg(test)]
pub(super) mod testing;

use std::time::Duration;

use gateway::{DecisionView, EndpointView, FleetView, UsageView};
use types::Timestamp;

use super::history::{History, Pace};
use super::snapshot::{QueueView, Snapshot};

/// How long a restart stays in the header.
const RESTART_SHOWN: Duration = Duration::from_secs(30);

/// Whether the gateway answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Contact {
    /// It was not asked yet.
    #[default]
    None,
    Live,
    /// It does not answer since then, and why.
    Lost {
        since: Timestamp,
        why: String,
    },
}

/// A gateway and its endpoints as known here.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub(super) contact: Contact,
    snapshot: Option<Snapshot>,
    history: History,
    restarted_at: Option<Timestamp>,
}

/// A pool's endpoints added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PoolRow {
    pub(super) pool: String,
    pub(super) endpoints: usize,
    pub(super) ready: usize,
    pub(super) waiting: u32,
    pub(super) running: u32,
    pub(super) in_flight: u32,
    pub(super) saturation: Option<f64>,
    pub(super) pace: Pace,
    pub(super) sparkline: String,
}

impl Fleet {
    /// Takes over an answer.
    pub(super) fn hear(&mut self, snapshot: Snapshot) {
        let was_lost = matches!(self.contact, Contact::Lost { .. });
        if self.snapshot.as_ref().is_some_and(|before| snapshot.begins_anew_after(before)) {
            self.history.forget();
            self.restarted_at = Some(snapshot.at);
        } else if was_lost {
            // What came meanwhile came at no rate that we know.
            self.history.forget();
        }
        self.history.add(&snapshot);
        self.contact = Contact::Live;
        self.snapshot = Some(snapshot);
    }

    /// The gateway did not answer.
    pub(super) fn miss(&mut self, why: String, now: Timestamp) {
        let since = match &self.contact {
            Contact::Lost { since, .. } => *since,
            Contact::None | Contact::Live => now,
        };
        self.contact = Contact::Lost { since, why };
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// How long ago it began anew, if that is news.
    pub(super) fn restarted(&self, now: Timestamp) -> Option<Duration> {
        self.restarted_at.map(|at| now.since(at)).filter(|ago| *ago < RESTART_SHOWN)
    }

    pub(super) fn total(&self) -> Pace {
        self.history.total()
    }

    /// Seconds that rates are worked out over.
    pub(super) fn window(&self) -> Option<f64> {
        self.history.seconds()
    }

    pub(super) fn endpoints(&self) -> &[EndpointView] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.endpoints)
    }

    pub(super) fn decisions(&self) -> &[DecisionView] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.decisions)
    }

    pub(super) fn queues(&self) -> Option<&[QueueView]> {
        self.snapshot.as_ref()?.queues.as_deref()
    }

    /// What tenants took of the GPUs.
    pub(super) fn usage(&self) -> Option<&UsageView> {
        self.snapshot.as_ref()?.usage.as_ref()
    }

    /// Those that may get requests, and all: endpoints, or at a router the members.
    pub(super) fn ready(&self) -> (usize, usize) {
        match self.clusters() {
            Some(fleet) => {
                let ready = fleet.members.iter().filter(|member| member.takes_requests).count();
                (ready, fleet.members.len())
            }
            None => {
                let all = self.endpoints();
                (all.iter().filter(|endpoint| endpoint.state == "ready").count(), all.len())
            }
        }
    }

    /// The members of a router over clusters.
    pub(super) fn clusters(&self) -> Option<&FleetView> {
        self.snapshot.as_ref()?.clusters.as_ref()
    }

    /// One row for each pool, in the order of the gateway's endpoints; pools without any last.
    pub(super) fn pools(&self) -> Vec<PoolRow> {
        let Some(snapshot) = &self.snapshot else { return Vec::new() };
        let mut rows: Vec<PoolRow> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for endpoint in &snapshot.endpoints {
            let place = *places.entry(endpoint.pool.as_str()).or_insert_with(|| {
                rows.push(PoolRow { pool: endpoint.pool.clone(), ..PoolRow::default() });
                rows.len() - 1
            });
            let Some(row) = rows.get_mut(place) else { continue };
            row.endpoints += 1;
            row.ready += usize::from(endpoint.state == "ready");
            row.waiting = row.waiting.saturating_add(endpoint.waiting.unwrap_or(0));
            row.running = row.running.saturating_add(endpoint.running.unwrap_or(0));
            row.in_flight = row.in_flight.saturating_add(endpoint.in_flight);
        }
        let mut without: Vec<&String> =
            snapshot.counters.keys().filter(|pool| !places.contains_key(pool.as_str())).collect();
        without.sort();
        rows.extend(
            without.into_iter().map(|pool| PoolRow { pool: pool.clone(), ..PoolRow::default() }),
        );
        for row in &mut rows {
            row.saturation = snapshot.counters.get(&row.pool).and_then(|pool| pool.saturation);
            row.pace = self.history.pace(&row.pool);
            row.sparkline = self.history.sparkline(&row.pool);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::testing::snapshot;
    use super::*;

    #[test]
    fn a_gateway_that_counts_anew_has_restarted_and_its_old_rates_are_gone() {
        let mut fleet = Fleet::default();
        fleet.hear(snapshot(1, 100.0));
        fleet.hear(snapshot(2, 120.0));
        assert_eq!(fleet.total().requests, Some(20.0));
        fleet.miss("nothing answers".to_owned(), Timestamp::from_millis(3000));
        fleet.miss("nothing answers".to_owned(), Timestamp::from_millis(4000));
        let since = Timestamp::from_millis(3000);
        assert_eq!(fleet.contact, Contact::Lost { since, why: "nothing answers".to_owned() });
        assert_eq!(fleet.endpoints().len(), 4, "what was last known stays");
        fleet.hear(snapshot(5, 2.0));
        assert_eq!(fleet.contact, Contact::Live);
        assert_eq!(fleet.total().requests, None);
        assert_eq!(fleet.restarted(Timestamp::from_millis(6000)), Some(Duration::from_secs(1)));
        assert_eq!(fleet.restarted(Timestamp::from_millis(60_000)), None);
    }

    #[test]
    fn pools_add_up_their_endpoints() {
        let mut fleet = Fleet::default();
        fleet.hear(snapshot(1, 100.0));
        let pools = fleet.pools();
        assert_eq!((pools[0].pool.as_str(), pools[0].endpoints, pools[0].ready), ("chat", 3, 2));
        assert_eq!((pools[1].pool.as_str(), pools[1].endpoints), ("embed", 1));
    }
}

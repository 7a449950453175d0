//! How endpoints stand, for metrics and for people.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use telemetry::metrics::labels;
use types::Timestamp;

use crate::Gateway;

/// One endpoint in one pool. The names of the fields are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointView {
    pub pool: String,
    pub endpoint: String,
    pub engine: String,
    pub state: String,
    pub waiting: Option<u32>,
    pub running: Option<u32>,
    pub kv_usage: Option<f32>,
    pub in_flight: u32,
    pub prefill_tokens: u64,
    pub scrape_age_ms: Option<u64>,
    pub scrape_failures: u32,
}

impl Gateway {
    /// Brings the gauges that mirror other state up to date. To be called before they are read.
    pub fn refresh_gauges(&self, now: Timestamp) {
        for pool in &self.catalog().pools {
            let mut counts = [0_i64; 5];
            let mut saturation = 0.0;
            for member in &pool.members {
                let candidate = member.member.state.observe(None, now);
                let state = standing(&candidate);
                counts[labels::Label::index(state)] += 1;
                saturation += f64::from(pool.settings.saturation.endpoint(&candidate).min(1.0));
                let gauges = &member.gauges;
                gauges.in_flight.set(i64::from(candidate.in_flight));
                gauges.scrape_age.set(candidate.age.map(|age| age.as_secs_f64()));
                gauges.up.set(i64::from(state == labels::EndpointState::Ready));
            }
            for (state, count) in <labels::EndpointState as labels::Label>::ALL.iter().zip(counts) {
                pool.metrics.endpoints.of(*state).set(count);
            }
            let members = pool.members.len();
            pool.metrics.saturation.set((members > 0).then(|| saturation / members as f64));
        }
    }

    /// Every endpoint of every pool.
    pub fn endpoints(&self, now: Timestamp) -> Vec<EndpointView> {
        let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let mut views = Vec::new();
        for pool in &self.catalog().pools {
            for member in &pool.members {
                let member = &member.member;
                let candidate = member.state.observe(None, now);
                views.push(EndpointView {
                    pool: pool.name.as_str().to_owned(),
                    endpoint: member.authority.clone(),
                    engine: member.engine().as_str().to_owned(),
                    state: labels::Label::as_str(standing(&candidate)).to_owned(),
                    waiting: candidate.scraped.waiting,
                    running: candidate.scraped.running,
                    kv_usage: candidate.scraped.kv_usage,
                    in_flight: candidate.in_flight,
                    prefill_tokens: candidate.prefill_tokens,
                    scrape_age_ms: candidate.age.map(millis),
                    scrape_failures: member.state.scrape_failures(),
                });
            }
        }
        views
    }
}

fn standing(candidate: &sched::Candidate) -> labels::EndpointState {
    if candidate.ejected {
        labels::EndpointState::Ejected
    } else if candidate.asleep {
        labels::EndpointState::Asleep
    } else if candidate.stale {
        labels::EndpointState::Stale
    } else {
        labels::EndpointState::Ready
    }
}

//! How endpoints stand, for metrics and for people.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use telemetry::metrics::labels;
use types::Timestamp;

use crate::catalog::Catalog;
use crate::{Gateway, Member, Pool, PoolMember};

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
    /// Of these, those of peers.
    #[serde(default)]
    pub peers_in_flight: u32,
    pub prefill_tokens: u64,
    pub scrape_age_ms: Option<u64>,
    pub scrape_failures: u32,
    /// Share of its capacity in use; 1 and more is full.
    #[serde(default)]
    pub saturation: f32,
    /// How failures count against it: `Healthy`, `Ramping`, `Trial`, `Held`, `Failing`, `Unreachable`.
    #[serde(default)]
    pub health: String,
    /// Requests that wait and run by our account, corrected by the scrape.
    #[serde(default)]
    pub accounted_waiting: f32,
    #[serde(default)]
    pub accounted_running: f32,
    /// Requests sent there so far.
    #[serde(default)]
    pub picks: u64,
    /// LoRA adapters that count as resident, by name; one that the pool does not name is `(other)`.
    #[serde(default)]
    pub adapters: Vec<String>,
    /// Slots for adapters on the GPU; `null`: the engine does not say.
    #[serde(default)]
    pub adapters_max: Option<u32>,
    /// What it was seen to do; `null`: nothing learned yet.
    #[serde(default)]
    pub speed: Option<SpeedView>,
    /// Streams whose time to the first token was compared with what had been predicted.
    #[serde(default)]
    pub predictions: u64,
    /// Predicted over observed time, 1 is right, more is too pessimistic; `null` before the first.
    #[serde(default)]
    pub prediction_bias: Option<f64>,
    /// Differences without their sign over observed time, 0 is right.
    #[serde(default)]
    pub prediction_error: Option<f64>,
    /// Tokens in one block of its KV cache, and how many there are; `null`: it does not say.
    #[serde(default)]
    pub block_size_tokens: Option<u32>,
    #[serde(default)]
    pub block_count: Option<u64>,
}

/// An endpoint's learned speed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpeedView {
    /// First token of a prompt with 1,000 uncached tokens, were nothing else there.
    pub idle_ttft_ms: f32,
    /// Prompt tokens computed in a second, over the last minute: single fits are off by ten and more where prompts
    /// hardly differ in length. `null`: nothing seen yet.
    pub prefill_tokens_per_second: Option<f64>,
    /// Constant part of the time to the first token.
    pub base_ms: f32,
    /// One step of an empty batch.
    pub step_ms: f32,
    /// Mean length of an answer, tokens.
    pub output_tokens: f32,
    /// What the prefill rests on: answers, old ones counting less.
    pub samples: f32,
}

/// Length of the prompt by which speeds are shown, tokens.
pub(crate) const IDLE_TOKENS: f32 = 1000.0;

impl Gateway {
    /// How an endpoint stands; at a router over clusters, where endpoints are members, what the fleet says of it.
    pub(crate) fn standing(&self, candidate: &sched::Candidate) -> labels::EndpointState {
        match self.clusters() {
            Some(clusters) => clusters.standing(candidate.endpoint),
            None => standing(candidate),
        }
    }

    /// Every endpoint of every pool.
    pub fn endpoints(&self, now: Timestamp) -> Vec<EndpointView> {
        self.endpoints_that(|_| true, now)
    }

    /// The endpoint at `authority` (`host:port`), once for each pool that holds it.
    pub fn endpoint(&self, authority: &str, now: Timestamp) -> Vec<EndpointView> {
        self.endpoints_that(|member| member.authority == authority, now)
    }

    fn endpoints_that(
        &self,
        are_wanted: impl Fn(&Member) -> bool,
        now: Timestamp,
    ) -> Vec<EndpointView> {
        let catalog = self.catalog();
        let mut views = Vec::new();
        for pool in &catalog.pools {
            let wanted = pool.members.iter().filter(|member| are_wanted(&member.member));
            views.extend(wanted.map(|member| EndpointView::of(self, &catalog, pool, member, now)));
        }
        views
    }
}

impl EndpointView {
    fn of(
        gateway: &Gateway,
        catalog: &Catalog,
        pool: &Pool,
        pool_member: &PoolMember,
        now: Timestamp,
    ) -> Self {
        let member = &pool_member.member;
        let candidate = member.state.observe(None, now);
        let named = |adapter| match catalog.adapter_name(pool, adapter) {
            Some(name) => name.as_str().to_owned(),
            None => "(other)".to_owned(),
        };
        Self {
            pool: pool.name.as_str().to_owned(),
            endpoint: member.authority.clone(),
            engine: member.engine().as_str().to_owned(),
            state: labels::Label::as_str(gateway.standing(&candidate)).to_owned(),
            waiting: candidate.scraped.waiting,
            running: candidate.scraped.running,
            kv_usage: candidate.scraped.kv_usage,
            in_flight: candidate.in_flight,
            peers_in_flight: candidate.peers_in_flight,
            prefill_tokens: candidate.prefill_tokens,
            scrape_age_ms: candidate.age.map(millis),
            scrape_failures: member.state.scrape_failures(),
            saturation: pool.settings.saturation.endpoint(&candidate),
            health: format!("{:?}", candidate.health),
            accounted_waiting: candidate.waiting,
            accounted_running: candidate.running,
            picks: pool_member.gauges.picks.get(),
            adapters: member.state.resident_adapters().into_iter().map(named).collect(),
            adapters_max: member.state.adapter_census().max,
            speed: SpeedView::of(&candidate.speed, member.seen.prefill_speed()),
            predictions: member.predictions.compared(),
            prediction_bias: member.predictions.bias(),
            prediction_error: member.predictions.error(),
            block_size_tokens: member.blocks().map(|(size, _)| size),
            block_count: member.blocks().map(|(_, count)| count),
        }
    }
}

impl SpeedView {
    /// * `prefill`: what was seen over time.
    fn of(speed: &sched::Speed, prefill: Option<f64>) -> Option<Self> {
        Some(Self {
            idle_ttft_ms: speed.idle_ttft_ms(IDLE_TOKENS)?,
            prefill_tokens_per_second: prefill,
            base_ms: speed.base_ms,
            step_ms: speed.step_ms,
            output_tokens: speed.output_tokens,
            samples: speed.prefill_samples,
        })
    }
}

/// A time in milliseconds; one that no `u64` can hold is the longest.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn standing(candidate: &sched::Candidate) -> labels::EndpointState {
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

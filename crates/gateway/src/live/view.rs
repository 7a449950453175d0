//! What the live page is told. The names of the fields are stable.
//!
//! What differs from endpoint to endpoint comes in columns, one array for each property and all in the
//! order of the pool's endpoints: a thousand endpoints then take some sixty kilobytes.

use serde::Serialize;
use telemetry::metrics::labels::{EndpointState, Label, Shadow};
use types::{EngineKind, Timestamp};

use super::history::Columns;
use super::pulse::{Pulse, round};
use crate::Gateway;
use crate::admission::BandView;
use crate::clusters::FleetView;
use crate::decisions::DecisionSummary;
use crate::explain::ScorerView;
use crate::pool::Pool;
use crate::status::{IDLE_TOKENS, millis};

/// All that does not change from beat to beat.
#[derive(Debug, Serialize)]
pub(super) struct Who {
    pub(super) version: &'static str,
    /// Words for the numbers in [`Rows::state`].
    pub(super) states: Vec<&'static str>,
    /// Words for the numbers in [`Rows::engine`].
    pub(super) engines: Vec<&'static str>,
    pub(super) pools: Vec<PoolWho>,
}

#[derive(Debug, Serialize)]
pub(super) struct PoolWho {
    name: String,
    model: String,
    /// By which endpoints are chosen.
    scorers: Vec<ScorerView>,
    /// Those of the policy on trial.
    shadow: Option<Vec<ScorerView>>,
    /// `host:port` of each.
    endpoints: Vec<String>,
}

/// All that does.
#[derive(Debug, Serialize)]
pub(super) struct News {
    /// Another one: everything that was known of the gateway is void.
    pub(super) boot: u64,
    pub(super) beat: u64,
    /// Another one: [`Who`] has changed. Ask for the whole.
    pub(super) shape: String,
    /// How often there is something new to be asked for.
    pub(super) interval_ms: u64,
    /// Milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) gateway: GatewayNews,
    pub(super) pools: Vec<PoolNews>,
    /// The members of a router over clusters, which has no endpoints in its pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fleet: Option<FleetView>,
    /// What waits; bands that hold nothing are left out.
    pub(super) flow: Vec<BandView>,
    /// Newest first.
    pub(super) decisions: Vec<DecisionSummary>,
    /// The last seconds of the history, for whoever missed some.
    pub(super) recent: Columns,
}

#[derive(Debug, Serialize)]
pub(super) struct GatewayNews {
    pub(super) uptime_ms: u64,
    pub(super) ready: bool,
    pub(super) draining: bool,
    pub(super) connections: i64,
    pub(super) requests: i64,
}

#[derive(Debug, Serialize)]
pub(super) struct PoolNews {
    /// Share of its capacity in use, 0 to 1.
    saturation: f32,
    pulse: Pulse,
    /// Decisions of the policy on trial; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<ShadowNews>,
    rows: Rows,
}

/// How often the policy on trial agreed so far.
#[derive(Debug, Serialize)]
struct ShadowNews {
    same: u64,
    different: u64,
    refused: u64,
}

/// One column for each property, all of the same length.
#[derive(Debug, Default, Serialize)]
struct Rows {
    /// Index into [`Who::states`].
    state: Vec<usize>,
    /// Index into [`Who::engines`].
    engine: Vec<usize>,
    /// Requests that wait and run, by our account corrected by the scrape.
    waiting: Vec<u32>,
    running: Vec<u32>,
    /// Share of KV blocks in use, 0 to 1.
    kv: Vec<Option<f32>>,
    in_flight: Vec<u32>,
    /// Prompt tokens sent and not yet answered by a first token.
    prefill_tokens: Vec<u64>,
    /// Share of its capacity in use; 1 and more is full.
    saturation: Vec<f32>,
    /// LoRA adapters resident.
    adapters: Vec<u32>,
    /// Of the last good scrape; `null`: never scraped.
    age_ms: Vec<Option<u64>>,
    /// First token of a prompt with [`IDLE_TOKENS`] uncached tokens, were nothing else there, by what it has
    /// proved to do; `null`: nothing learned yet.
    idle_ttft_ms: Vec<Option<f32>>,
    /// Requests sent there so far.
    picks: Vec<u64>,
}

impl Who {
    /// * `is_router`: its pools have members in place of endpoints, which are told apart, and no scorers.
    pub(super) fn new(
        version: &'static str,
        pools: &[std::sync::Arc<Pool>],
        is_router: bool,
    ) -> Self {
        Self {
            version,
            states: EndpointState::ALL.iter().map(|state| state.as_str()).collect(),
            engines: EngineKind::ALL.iter().map(|engine| engine.as_str()).collect(),
            pools: pools.iter().map(|pool| PoolWho::of(pool, is_router)).collect(),
        }
    }
}

impl PoolWho {
    fn of(pool: &Pool, is_router: bool) -> Self {
        let members = if is_router { &[] } else { pool.members.as_slice() };
        let scorers = |profile: &sched::Profile| {
            let weighted = |scorer: &sched::WeightedScorer| ScorerView {
                name: scorer.scorer.name().to_owned(),
                weight: scorer.weight,
            };
            profile.scorers.iter().map(weighted).collect()
        };
        Self {
            name: pool.name.as_str().to_owned(),
            model: pool.model.as_str().to_owned(),
            scorers: if is_router { Vec::new() } else { scorers(&pool.profile) },
            shadow: pool.shadow.as_ref().map(|shadow| scorers(&shadow.profile)),
            endpoints: members.iter().map(|member| member.member.authority.clone()).collect(),
        }
    }
}

impl PoolNews {
    pub(super) fn of(gateway: &Gateway, pool: &Pool, pulse: Pulse, now: Timestamp) -> Self {
        let members = if gateway.clusters().is_some() { &[] } else { pool.members.as_slice() };
        let mut rows = Rows::with_capacity(members.len());
        let mut saturation = 0.0;
        for pool_member in members {
            let member = &pool_member.member;
            let candidate = member.state.observe(None, now);
            let full = pool.settings.saturation.endpoint(&candidate);
            saturation += full.min(1.0);
            rows.state.push(gateway.standing(&candidate).index());
            rows.engine.push(member.engine().index());
            rows.waiting.push(candidate.waiting.round() as u32);
            rows.running.push(candidate.running.round() as u32);
            rows.kv.push(candidate.scraped.kv_usage.map(|usage| round(usage, 1000.0)));
            rows.in_flight.push(candidate.in_flight);
            rows.prefill_tokens.push(candidate.prefill_tokens);
            rows.saturation.push(round(full.min(99.0), 1000.0));
            rows.adapters.push(member.state.adapter_census().resident);
            rows.age_ms.push(candidate.age.map(millis));
            let idle_ttft_ms = candidate.speed.idle_ttft_ms(IDLE_TOKENS);
            rows.idle_ttft_ms.push(idle_ttft_ms.map(|ms| round(ms, 10.0)));
            rows.picks.push(pool_member.gauges.picks.get());
        }
        let shadow = pool.shadow.is_some().then(|| {
            let count = |outcome| pool.metrics.shadow_decisions.of(outcome).get();
            ShadowNews {
                same: count(Shadow::Same),
                different: count(Shadow::Different),
                refused: count(Shadow::Refused),
            }
        });
        let saturation = saturation / members.len().max(1) as f32;
        Self { saturation: round(saturation, 1000.0), pulse, shadow, rows }
    }
}

impl Rows {
    fn with_capacity(count: usize) -> Self {
        Self {
            state: Vec::with_capacity(count),
            engine: Vec::with_capacity(count),
            waiting: Vec::with_capacity(count),
            running: Vec::with_capacity(count),
            kv: Vec::with_capacity(count),
            in_flight: Vec::with_capacity(count),
            prefill_tokens: Vec::with_capacity(count),
            saturation: Vec::with_capacity(count),
            adapters: Vec::with_capacity(count),
            age_ms: Vec::with_capacity(count),
            idle_ttft_ms: Vec::with_capacity(count),
            picks: Vec::with_capacity(count),
        }
    }
}

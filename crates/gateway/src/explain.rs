//! Decisions as people and programs read them.

use std::sync::Arc;

use openai::{Body, Route};
use sched::{Candidate, CandidateReceipt, Receipt};
use serde::{Deserialize, Serialize};
use telemetry::clock;
use types::Timestamp;

use crate::catalog::Target;
use crate::decisions::Decision;
use crate::exchange::placement::{PromptView, observe, request_view, resolve, with_desk};
use crate::pool::Pool;
use crate::{Gateway, Refusal};

/// One decision. The names of the fields are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionView {
    pub time: String,
    pub request_id: String,
    pub route: String,
    pub model: String,
    pub pool: String,
    pub prompt_tokens: u32,
    pub prompt_blocks: u32,
    pub took_us: f64,
    pub profile: String,
    pub picker: String,
    /// Chosen first, then who would have been tried next.
    pub order: Vec<String>,
    pub scorers: Vec<ScorerView>,
    pub candidates: Vec<CandidateView>,
    /// Why there was no endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScorerView {
    pub name: String,
    pub weight: f32,
}

/// One endpoint as the decision saw it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CandidateView {
    pub endpoint: String,
    pub removed_by: Option<String>,
    /// In the order of the scorers; empty if removed.
    pub scores: Vec<f32>,
    pub total: f32,
    /// Requests waiting and running by our account, corrected by the scrape.
    pub waiting: f32,
    pub running: f32,
    pub scraped_waiting: Option<u32>,
    pub scraped_running: Option<u32>,
    pub kv_usage: Option<f32>,
    pub in_flight: u32,
    pub prefill_tokens: u64,
    pub matched_blocks: u32,
    pub lora: String,
    pub health: String,
    pub saturation: f32,
    /// Time to the first token that its learned speed promises; `null`: nothing learned yet.
    pub predicted_ttft_ms: Option<f32>,
    /// Age of the last good scrape; `null`: never scraped.
    pub scrape_age_ms: Option<u64>,
    /// How far the scrape is trusted, 1 to 0.
    pub freshness: f32,
}

impl DecisionView {
    pub(crate) fn of(decision: &Decision) -> Self {
        let mut view =
            Self::new(decision.route, &decision.target, &decision.prompt, &decision.receipt);
        view.time = clock::rfc3339(decision.time);
        view.request_id.clone_from(&decision.request_id);
        view.took_us = decision.took.as_nanos() as f64 / 1000.0;
        view
    }

    fn new(route: Route, target: &Target, prompt: &PromptView, receipt: &Receipt) -> Self {
        let pool = &target.pool;
        Self {
            time: clock::rfc3339(clock::wall()),
            request_id: String::new(),
            route: route.as_str().to_owned(),
            model: target.name.as_str().to_owned(),
            pool: pool.name.as_str().to_owned(),
            prompt_tokens: prompt.tokens,
            prompt_blocks: prompt.blocks,
            took_us: 0.0,
            profile: receipt.profile.to_owned(),
            picker: receipt.picker.to_owned(),
            order: receipt.order.iter().map(|endpoint| label(pool, *endpoint)).collect(),
            scorers: receipt
                .scorers
                .iter()
                .map(|(name, weight)| ScorerView { name: (*name).to_owned(), weight: *weight })
                .collect(),
            candidates: receipt
                .candidates
                .iter()
                .map(|entry| candidate_view(pool, entry))
                .collect(),
            refused: None,
        }
    }
}

fn label(pool: &Pool, endpoint: types::EndpointId) -> String {
    pool.member(endpoint)
        .map_or_else(|| "(left)".to_owned(), |member| member.member.authority.clone())
}

fn candidate_view(pool: &Pool, entry: &CandidateReceipt) -> CandidateView {
    let Candidate { scraped, .. } = &entry.candidate;
    CandidateView {
        endpoint: label(pool, entry.candidate.endpoint),
        removed_by: entry.removed_by.map(str::to_owned),
        scores: entry.scores.clone(),
        total: entry.total,
        waiting: entry.candidate.waiting,
        running: entry.candidate.running,
        scraped_waiting: scraped.waiting,
        scraped_running: scraped.running,
        kv_usage: scraped.kv_usage,
        in_flight: entry.candidate.in_flight,
        prefill_tokens: entry.candidate.prefill_tokens,
        matched_blocks: entry.candidate.matched_blocks,
        lora: format!("{:?}", entry.candidate.lora),
        health: format!("{:?}", entry.candidate.health),
        saturation: entry.candidate.saturation,
        predicted_ttft_ms: entry.predicted_ms,
        scrape_age_ms: entry
            .candidate
            .age
            .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        freshness: entry.candidate.freshness,
    }
}

impl Gateway {
    /// The last decisions, newest first.
    pub fn decisions(&self, request_id: Option<&str>, most: usize) -> Vec<DecisionView> {
        self.decisions.views(request_id, most)
    }

    /// Which endpoint a request would get now, and why. Nothing is reserved, nothing remembered.
    pub fn explain(
        self: &Arc<Self>,
        route: Route,
        body: &[u8],
        now: Timestamp,
    ) -> Result<DecisionView, Refusal> {
        let said: Body = openai::scan(route, body, &self.body_limits).map_err(|error| {
            Refusal::new(
                400,
                error.code(),
                crate::Component::Edge,
                telemetry::metrics::labels::Refusal::BadRequest,
                error.to_string(),
            )
        })?;
        let target = resolve(&self.catalog(), &said)?;
        let mut hashes = self.lend_hashes();
        let prompt = self.hash_prompt(&target, body, &said, None, &mut hashes);
        let view = with_desk(|desk| {
            observe(self, &target.pool, &prompt, &hashes, desk, now);
            let begun = clock::now();
            let picked = target.pool.profile.pick(
                &request_view(self, &prompt, now),
                &mut desk.candidates,
                &mut desk.scratch,
                &mut desk.rng,
                Some(&mut desk.receipt),
            );
            let refused = picked.err().map(|error| error.to_string());
            let took = clock::now().since(begun);
            let mut view = DecisionView::new(route, &target, &prompt, &desk.receipt);
            view.took_us = took.as_nanos() as f64 / 1000.0;
            view.refused = refused;
            view
        });
        self.give_back_hashes(hashes);
        Ok(view)
    }
}

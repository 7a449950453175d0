//! Decisions as people and programs read them.

mod asker;
mod prospects;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use openai::{Body, Route};
use sched::{Candidate, CandidateReceipt, Forecast, Prices, Receipt, RequestView};
use serde::{Deserialize, Serialize};
use telemetry::clock;
use types::Timestamp;

use crate::catalog::Target;
use crate::decisions::{Decided, Decision};
use crate::exchange::access::model_not_found;
use crate::exchange::placement::{Desk, PromptView, observe, request_view, with_desk};
use crate::pool::Pool;
use crate::prediction::duration_of;
use crate::shadow::ShadowChoice;
use crate::{Gateway, Refusal, RewriteView};
pub use asker::Asker;
use prospects::Asked;
pub use prospects::{FlowView, LimitView, RefusesView};

/// One decision. The names of the fields are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionView {
    /// Counts the gateway's decisions; absent where nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
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
    /// What the pool's shadow policy would have done; absent if it has none or passed this one over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowView>,
    /// What the pool's queue would do with it; absent in decisions that were made, and without a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowView>,
    /// The rate limits that it would come under; empty in decisions that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitView>,
    /// The rule that gives the request another model; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<RewriteView>,
    /// Why there was no endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScorerView {
    pub name: String,
    pub weight: f32,
}

/// The choice of a policy that rates requests and decides nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShadowView {
    pub scorers: Vec<ScorerView>,
    /// `null`: it found no endpoint.
    pub endpoint: Option<String>,
    /// Whether that is where the request goes.
    pub same: bool,
    pub predicted_ttft_ms: Option<f32>,
    /// Time to the first token that the shadow's choice promises less; negative: it takes longer.
    pub regret_ms: Option<f32>,
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
        let Decided { prompt, took, shadow, .. } = &decision.decided;
        let mut view = Self::new(decision.route, &decision.target, prompt, &decision.receipt);
        view.number = Some(decision.number);
        view.time = clock::rfc3339(decision.time);
        view.request_id.clone_from(&decision.request_id);
        view.took_us = took.as_nanos() as f64 / 1000.0;
        view.shadow = shadow.map(|choice| shadow_view(&decision.target.pool, choice));
        view
    }

    /// Without the candidates.
    pub(crate) fn brief(decision: &Decision) -> Self {
        let Decided { prompt, took, shadow, .. } = &decision.decided;
        let bare = Receipt {
            profile: decision.receipt.profile,
            picker: decision.receipt.picker,
            order: decision.receipt.order.clone(),
            ..Receipt::default()
        };
        let mut view = Self::new(decision.route, &decision.target, prompt, &bare);
        view.number = Some(decision.number);
        view.time = clock::rfc3339(decision.time);
        view.request_id.clone_from(&decision.request_id);
        view.took_us = took.as_nanos() as f64 / 1000.0;
        view.shadow = shadow.map(|choice| shadow_view(&decision.target.pool, choice));
        // What the list tells of the one that was chosen.
        let chosen = decision.receipt.order.first();
        view.candidates = decision
            .receipt
            .candidates
            .iter()
            .filter(|entry| Some(&entry.candidate.endpoint) == chosen)
            .map(|entry| candidate_view(&decision.target.pool, entry))
            .collect();
        view
    }

    pub(crate) fn new(
        route: Route,
        target: &Target,
        prompt: &PromptView,
        receipt: &Receipt,
    ) -> Self {
        let pool = &target.pool;
        Self {
            number: None,
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
            scorers: scorer_views(receipt.scorers.iter().copied()),
            candidates: receipt
                .candidates
                .iter()
                .map(|entry| candidate_view(pool, entry))
                .collect(),
            shadow: None,
            flow: None,
            limits: Vec::new(),
            rewrite: None,
            refused: None,
        }
    }
}

fn scorer_views(scorers: impl Iterator<Item = (&'static str, f32)>) -> Vec<ScorerView> {
    scorers.map(|(name, weight)| ScorerView { name: name.to_owned(), weight }).collect()
}

fn shadow_view(pool: &Pool, choice: ShadowChoice) -> ShadowView {
    let scorers = pool.shadow.iter().flat_map(|shadow| &shadow.profile.scorers);
    ShadowView {
        scorers: scorer_views(scorers.map(|scorer| (scorer.scorer.name(), scorer.weight))),
        endpoint: choice.endpoint.map(|endpoint| label(pool, endpoint)),
        same: choice.is_same,
        predicted_ttft_ms: choice.shadow_ms,
        regret_ms: choice.regret_ms(),
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

    /// One of the last decisions; `None`: it is no longer kept.
    pub fn decision(&self, number: usize) -> Option<DecisionView> {
        self.decisions.with(number, DecisionView::of)
    }

    /// The same with no candidate but the chosen one: for lists, however large the pool.
    pub fn decision_briefs(&self, most: usize) -> Vec<DecisionView> {
        self.decisions.briefs(most)
    }

    /// Which endpoint a request would get now, and why; whether it would wait before, and what it has left of
    /// its limits. Nothing is reserved, nothing remembered.
    pub fn explain(
        self: &Arc<Self>,
        route: Route,
        body: &[u8],
        asker: &Asker,
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
        let caller = asker.find(self)?;
        let catalog = self.catalog();
        let named = said.model.as_ref().map(|model| model.name.as_str());
        if let Some(name) = named.filter(|name| !caller.models.allows(name)) {
            return Err(model_not_found(&catalog, &caller, name));
        }
        let (target, rewrite) = self.preview_target(body, &said, &caller)?;
        let asked_model = named
            .filter(|_| rewrite.is_some())
            .and_then(|name| catalog.cards.get_key_value(name))
            .map(|(name, _)| name);
        let mut hashes = self.lend_hashes();
        let prompt = self.hash_prompt(&target, body, &said, None, &mut hashes);
        let wishes = &asker.wishes;
        let asked = Asked {
            gateway: self,
            route,
            body,
            said: &said,
            target: &target,
            prompt,
            caller: &caller,
            wishes,
            now,
        };
        let view = with_desk(|desk| {
            observe(self, &target.pool, &prompt, &hashes, desk, now);
            let begun = clock::now();
            let is_admitted = target.pool.admission.is_some();
            let request = RequestView { is_admitted, ..request_view(self, &prompt, now) };
            let Desk { candidates, scratch, receipt, rng, shadow, .. } = desk;
            let forecast = Forecast::new(Prices::default(), &request);
            let times = candidates.iter().map(|candidate| forecast.ttft_ms(candidate));
            let fastest = times.fold(f32::INFINITY, f32::min);
            let service = if fastest.is_finite() { duration_of(fastest) } else { Duration::ZERO };
            let flow = asked.flow(candidates, service);
            let on_trial = shadow.keep(target.pool.shadow.as_ref(), candidates, rng);
            let picked =
                target.pool.profile.pick(&request, candidates, scratch, rng, Some(receipt));
            let took = clock::now().since(begun);
            let choice = on_trial.zip(picked.as_ref().ok()).map(|(policy, picked)| {
                let best = &candidates[picked[0] as usize];
                shadow.decide(policy, &request, &forecast, best)
            });
            let refused = picked.err().map(|error| error.to_string());
            let mut view = DecisionView::new(route, &target, &prompt, receipt);
            view.shadow = choice.map(|choice| shadow_view(&target.pool, choice));
            view.took_us = took.as_nanos() as f64 / 1000.0;
            view.refused = refused;
            view.rewrite = rewrite;
            view.flow = flow;
            view
        });
        self.give_back_hashes(hashes);
        Ok(DecisionView { limits: asked.limits(asked_model), ..view })
    }
}

//! From a model name to an ordered list of endpoints.

use std::cell::RefCell;
use std::time::Duration;

use openai::Body;
use prefix::{BlockHash, Matches};
use rand::{RngExt, SeedableRng};
use sched::{Candidate, Forecast, Prices, Receipt, RequestView, ScheduleError, Scratch};
use telemetry::clock;
use telemetry::metrics::labels;
use telemetry::trace::Step;
use types::{AdapterId, Standing, Timestamp};

use super::access::model_not_found;
use super::{Exchange, Members, Placed};
use crate::Caller;
use crate::catalog::{Catalog, Target};
use crate::decisions::Decided;
use crate::gateway::Gateway;
use crate::pool::Pool;
use crate::prediction::duration_of;
use crate::refusal::{Component, Refusal};
use crate::shadow::{Shadow, ShadowDesk};

/// Bytes of prompt text that make one token, as the field estimates it.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// Most blocks of one prompt that are looked up: 131,072 tokens of 64-token blocks.
const PREFIX_BLOCKS_MAX: usize = 2048;
/// Endpoints that a request may be sent to, the chosen one and its substitutes.
const ORDER_MAX: usize = 4;
/// What a refused client is told to wait where nothing better is known.
pub(crate) const WAIT_FOR_ENDPOINTS: Duration = Duration::from_secs(5);

/// Memory that one thread uses again for each of its decisions.
pub(crate) struct Desk {
    /// When the decision that it is used for began.
    begun: Timestamp,
    pub(crate) matches: Matches,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) scratch: Scratch,
    pub(crate) receipt: Receipt,
    pub(crate) rng: rand_pcg::Pcg64Mcg,
    pub(crate) shadow: ShadowDesk,
    pub(crate) members: Members,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::new(Desk {
        begun: Timestamp::ZERO,
        matches: Matches::default(),
        candidates: Vec::new(),
        scratch: Scratch::default(),
        receipt: Receipt::default(),
        rng: rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng()),
        shadow: ShadowDesk::new(rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng())),
        members: Members::default(),
    });
}

/// Lends the thread's desk.
pub(crate) fn with_desk<T>(with: impl FnOnce(&mut Desk) -> T) -> T {
    DESK.with_borrow_mut(with)
}

/// A prompt as the picker sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PromptView {
    pub(crate) blocks: u32,
    pub(crate) tokens: u32,
    pub(crate) adapter: Option<AdapterId>,
    pub(crate) session: Option<u64>,
    /// Part of it is no text.
    pub(crate) has_media: bool,
}

impl Exchange {
    /// Finds the pool that serves what the body names.
    pub(super) fn resolve(&mut self, body: &[u8], said: &Body) -> Result<Target, Refusal> {
        let catalog = self.gateway.catalog();
        let target = match &self.meta.pool {
            None => match self.rewrite(&catalog, body, said)? {
                Some(target) => target,
                None => resolve(&catalog, said, &self.meta.caller)?,
            },
            Some(name) => {
                let pool = catalog.pool(name).cloned().ok_or_else(no_pools)?;
                let model = said.model.as_ref().map(|model| model.name.as_str());
                match self.rewrite(&catalog, body, said)? {
                    Some(target) => target,
                    None => catalog.get_in(&pool, model),
                }
            }
        };
        self.check_unnamed(&target, said)?;
        Ok(target)
    }

    /// Chooses the endpoints to try, if there is room; else the request waits.
    pub(super) fn admit(
        &mut self,
        body: &[u8],
        said: &Body,
        now: Timestamp,
    ) -> Result<Placed, Refusal> {
        self.hash(body, said);
        if let Some(clusters) = self.gateway.clusters().cloned() {
            return self.choose_members(&clusters, said, now).map(|()| Placed::Chosen);
        }
        let Some(target) = self.target.clone() else { return Ok(Placed::Chosen) };
        with_desk(|desk| {
            self.look(&target, desk, now)?;
            match self.ask(&target, body, said, &desk.candidates, now)? {
                Some(turn) => Ok(Placed::Waits(turn)),
                None => self.pick(&target, desk, now).map(|()| Placed::Chosen),
            }
        })
    }

    /// Looks at the prompt as the picker sees it.
    pub(super) fn hash(&mut self, body: &[u8], said: &Body) {
        let Some(target) = &self.target else { return };
        let mut hashes = self.gateway.lend_hashes();
        self.prompt = self.gateway.hash_prompt(target, body, said, self.meta.session, &mut hashes);
        self.hashes = hashes;
    }

    /// Its turn has come: chooses the endpoints to try, as they are now.
    pub(super) fn choose(&mut self, now: Timestamp) -> Result<(), Refusal> {
        let Some(target) = self.target.clone() else { return Ok(()) };
        with_desk(|desk| {
            self.look(&target, desk, now)?;
            self.pick(&target, desk, now)
        })
    }

    /// Puts the endpoints on the desk that may be chosen.
    fn look(&self, target: &Target, desk: &mut Desk, now: Timestamp) -> Result<(), Refusal> {
        desk.begun = clock::now();
        observe(&self.gateway, &target.pool, &self.prompt, &self.hashes, desk, now);
        match &self.subset {
            Some(subset) => subset.keep(&target.pool, &mut desk.candidates),
            None => Ok(()),
        }
    }

    /// Orders those on the desk, and books the request on the best where it could be full a moment later.
    fn pick(&mut self, target: &Target, desk: &mut Desk, now: Timestamp) -> Result<(), Refusal> {
        let rated = loop {
            let rated = self.rate(target, desk, now)?;
            if self.claim(target, &desk.candidates[rated.best], now) {
                break rated;
            }
            // Others were faster, so the pool is another one by now.
            self.order.clear();
            self.look(target, desk, now)?;
        };
        let Desk { begun, candidates, receipt, matches, shadow, .. } = desk;
        if self.is_copy() {
            self.order.truncate(1);
            matches.clear();
            return Ok(());
        }
        let prompt = self.prompt;
        let took = clock::now().since(*begun);
        self.pick_took = Some(took);
        self.step(Step::Pick, *begun, *begun + took);
        self.gateway.metrics.gateway().schedule_duration.observe(took);
        let request = self.view(now);
        let forecast = Forecast::new(Prices::default(), &request);
        let best = &candidates[rated.best];
        let shadow = rated.on_trial.map(|policy| {
            let choice = shadow.decide(policy, &request, &forecast, best);
            choice.count(&target.pool.metrics);
            choice
        });
        let best = best.matched_blocks;
        target.pool.metrics.prefix_blocks_looked_up.add(u64::from(prompt.blocks));
        target.pool.metrics.prefix_blocks_matched.add(u64::from(best));
        matches.clear();
        if self.gateway.spec().observability.prefix_alarm.enabled {
            let (templates, pool) = (&self.gateway.templates, &target.pool.name);
            self.template = templates.observe(pool, &self.hashes, best, now);
        }
        let predicted_ms = rated.predicted_ms;
        let decided = Decided { prompt, took, matched_blocks: best, predicted_ms, shadow };
        self.gateway.decisions.record(&self.meta, target, decided, receipt);
        Ok(())
    }

    /// Rates those on the desk: the endpoints to try, and when the first token is to be expected.
    fn rate<'a>(
        &mut self,
        target: &'a Target,
        desk: &mut Desk,
        now: Timestamp,
    ) -> Result<Rated<'a>, Refusal> {
        if target.pool.admission.is_some() {
            keep_roomy(&target.pool, self.standing(), &mut desk.candidates);
        }
        let Desk { candidates, scratch, receipt, rng, shadow, .. } = desk;
        let request = self.view(now);
        let on_trial = shadow.keep(target.pool.shadow.as_ref(), candidates, rng);
        let picked = target.pool.profile.pick(&request, candidates, scratch, rng, Some(receipt));
        let picked = match picked {
            Ok(picked) => picked,
            Err(error) => return Err(unschedulable(&error, &target.pool, candidates, now)),
        };
        for index in picked.iter().take(ORDER_MAX) {
            let candidate = &candidates[*index as usize];
            let held = candidate.matched_blocks * self.gateway.block_tokens();
            let uncached = self.prompt.tokens.saturating_sub(held);
            if let Some(member) = target.pool.member(candidate.endpoint) {
                self.order.push((member.clone(), uncached));
            }
        }
        let best = picked[0] as usize;
        let forecast = Forecast::new(Prices::default(), &request);
        let predicted_ms = forecast.ttft_ms(&candidates[best]);
        if !self.is_copy() {
            let predicted = duration_of(predicted_ms);
            self.check_deadline(predicted, now)?;
            self.predicted = Some(predicted);
        }
        Ok(Rated { best, predicted_ms, on_trial })
    }
}

/// What came of rating the endpoints of a pool.
struct Rated<'a> {
    /// Position of the best.
    best: usize,
    predicted_ms: f32,
    on_trial: Option<&'a Shadow>,
}

/// Where requests wait for room, they go where there is some: else a burst would pile up behind the
/// endpoint that holds its prefix.
fn keep_roomy(pool: &Pool, standing: Standing, candidates: &mut Vec<Candidate>) {
    let config = &pool.settings.saturation;
    let has_room = |one: &Candidate| config.room(one) > 0 && config.is_open(one, standing);
    if candidates.iter().any(has_room) {
        candidates.retain(has_room);
    }
}

/// What the profile is told of a request.
pub(crate) fn request_view(
    gateway: &Gateway,
    prompt: &PromptView,
    now: Timestamp,
) -> RequestView<'static> {
    RequestView {
        now,
        prompt_blocks: prompt.blocks,
        prompt_tokens: prompt.tokens,
        block_tokens: gateway.block_tokens(),
        adapter: prompt.adapter,
        session: prompt.session,
        excluded: &[],
        is_admitted: false,
    }
}

/// Puts a pool's endpoints on the desk, in the order of its members.
pub(crate) fn observe(
    gateway: &Gateway,
    pool: &Pool,
    prompt: &PromptView,
    hashes: &[BlockHash],
    desk: &mut Desk,
    now: Timestamp,
) {
    gateway.index.longest_matches(hashes, &mut desk.matches);
    desk.candidates.clear();
    for member in &pool.members {
        let state = &member.member.state;
        let mut candidate = state.observe(prompt.adapter, now);
        candidate.matched_blocks = desk.matches.blocks(member.member.endpoint.slot);
        desk.candidates.push(candidate);
    }
}

/// A pool by itself, whatever name led to it.
fn whole_pool(pool: &std::sync::Arc<Pool>) -> Target {
    Target { pool: pool.clone(), name: pool.model.clone(), adapter: None }
}

/// Finds what a body names.
pub(crate) fn resolve(catalog: &Catalog, said: &Body, caller: &Caller) -> Result<Target, Refusal> {
    let name = said.model.as_ref().map(|model| model.name.as_str());
    if let Some(target) = name.and_then(|name| catalog.get(name)) {
        return Ok(target.clone());
    }
    if let Some(pool) = &catalog.catch_all {
        return Ok(whole_pool(pool));
    }
    match name {
        Some(name) => Err(model_not_found(catalog, caller, name)),
        // SGLang's and TGI's own paths have no model field: with one pool there is no doubt.
        None => match catalog.only_pool() {
            Some(pool) => Ok(whole_pool(pool)),
            None if catalog.pools.is_empty() => Err(no_pools()),
            None => Err(Refusal::new(
                400,
                "missing_model",
                Component::Edge,
                labels::Refusal::BadRequest,
                "the request names no `model`, and this gateway serves more than one: add it",
            )
            .with_param(Some("model"))),
        },
    }
}

pub(super) fn no_pools() -> Refusal {
    Refusal::new(
        503,
        "no_endpoints",
        Component::Picker,
        labels::Refusal::Overloaded,
        "no endpoint has told yet which models it serves",
    )
    .with_retry_after(WAIT_FOR_ENDPOINTS)
}

fn unschedulable(
    error: &ScheduleError,
    pool: &Pool,
    candidates: &[Candidate],
    now: Timestamp,
) -> Refusal {
    match error {
        ScheduleError::Saturated => saturated(pool, candidates, now),
        ScheduleError::NoCandidates => Refusal::new(
            503,
            "no_endpoints",
            Component::Picker,
            labels::Refusal::Overloaded,
            format!("pool `{}` has no endpoint", pool.name),
        )
        .with_retry_after(WAIT_FOR_ENDPOINTS),
        ScheduleError::FilteredOut { filter: "not-serving" } => Refusal::new(
            404,
            "model_not_found",
            Component::Picker,
            labels::Refusal::ModelNotFound,
            format!("no endpoint of pool `{}` has this adapter loaded", pool.name),
        )
        .with_param(Some("model")),
        ScheduleError::FilteredOut { filter } => Refusal::new(
            503,
            "no_usable_endpoint",
            Component::Picker,
            labels::Refusal::Overloaded,
            format!("no endpoint of pool `{}` can take the request: the filter `{filter}` removed the last", pool.name),
        )
        .with_retry_after(pool.pace.retry_after(1, now)),
    }
}

fn saturated(pool: &Pool, candidates: &[Candidate], now: Timestamp) -> Refusal {
    let lightest =
        candidates.iter().map(|candidate| candidate.waiting).fold(f32::INFINITY, f32::min);
    // Until one endpoint falls below its limit, about this many must leave the pool.
    let limit = pool.settings.saturation.queue_depth as f32;
    let excess = ((lightest - limit).max(0.0) + 1.0) * candidates.len() as f32;
    Refusal::new(
        429,
        "saturated",
        Component::Flow,
        labels::Refusal::Overloaded,
        format!("all endpoints of pool `{}` are saturated", pool.name),
    )
    .with_dropped(labels::Rejection::Saturated)
    .with_retry_after(pool.pace.retry_after(excess.min(1e6) as u32, now))
}

/// Hashes what endpoints could have cached of a prompt.
pub(crate) fn hash_prompt(
    process_key: u64,
    block_tokens: u32,
    target: &Target,
    body: &[u8],
    said: &Body,
    session: Option<u64>,
    hashes: &mut Vec<BlockHash>,
) -> PromptView {
    hashes.clear();
    let mut ranges: [&[u8]; 4] = [&[]; 4];
    let mut count = 0;
    let mut bytes = 0;
    for range in said.prompt.ranges().iter().take(ranges.len()) {
        if let Some(text) = body.get(range.clone()) {
            ranges[count] = text;
            count += 1;
            bytes += text.len();
        }
    }
    // Images and sound inside a prompt are many bytes and few tokens.
    let text_bytes = bytes.saturating_sub(said.prompt.media_bytes);
    let tokens = u32::try_from(text_bytes / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
    let has_media = said.prompt.media_bytes > 0;
    let prompt = PromptView { blocks: 0, tokens, adapter: target.adapter, session, has_media };
    if !target.pool.scores_prefix {
        return prompt;
    }
    let salt = said.cache_salt.clone().and_then(|range| body.get(range)).unwrap_or_default();
    let adapter_name = target.adapter.map(|_| target.name.as_str());
    let seed = prefix::seed(process_key, target.pool.model.as_str(), adapter_name, salt);
    let block_bytes = block_tokens as usize * BYTES_PER_TOKEN;
    prefix::block_hashes(seed, &ranges[..count], block_bytes, PREFIX_BLOCKS_MAX, hashes);
    PromptView { blocks: u32::try_from(hashes.len()).unwrap_or(u32::MAX), ..prompt }
}

/// A key that nobody outside can know, so that hashes cannot confirm a guessed prompt.
pub(crate) fn process_key() -> u64 {
    rand::rng().random()
}

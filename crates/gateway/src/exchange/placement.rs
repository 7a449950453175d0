//! From a model name to an ordered list of endpoints.

use std::cell::RefCell;
use std::time::Duration;

use openai::Body;
use prefix::{BlockHash, Matches};
use rand::{RngExt, SeedableRng};
use sched::{Candidate, Receipt, RequestView, ScheduleError, Scratch};
use telemetry::clock;
use telemetry::metrics::labels;
use types::{AdapterId, Timestamp};

use super::Exchange;
use crate::catalog::{Catalog, Target};
use crate::gateway::Gateway;
use crate::pool::Pool;
use crate::refusal::{Component, Refusal};

/// Bytes of prompt text that make one token, as the field estimates it.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// Most blocks of one prompt that are looked up: 131,072 tokens of 64-token blocks.
const PREFIX_BLOCKS_MAX: usize = 2048;
/// Endpoints that a request may be sent to, the chosen one and its substitutes.
const ORDER_MAX: usize = 4;
/// What a refused client is told to wait where nothing better is known.
const WAIT_FOR_ENDPOINTS: Duration = Duration::from_secs(5);

/// Memory that one thread uses again for each of its decisions.
pub(crate) struct Desk {
    pub(crate) matches: Matches,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) scratch: Scratch,
    pub(crate) receipt: Receipt,
    pub(crate) rng: rand_pcg::Pcg64Mcg,
}

thread_local! {
    static DESK: RefCell<Desk> = RefCell::new(Desk {
        matches: Matches::default(),
        candidates: Vec::new(),
        scratch: Scratch::default(),
        receipt: Receipt::default(),
        rng: rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng()),
    });
}

/// Lends the thread's desk.
pub(crate) fn with_desk<T>(with: impl FnOnce(&mut Desk) -> T) -> T {
    DESK.with_borrow_mut(with)
}

/// A prompt as the picker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptView {
    pub(crate) blocks: u32,
    pub(crate) tokens: u32,
    pub(crate) adapter: Option<AdapterId>,
    pub(crate) session: Option<u64>,
}

impl Exchange {
    /// Finds the pool that serves what the body names.
    pub(super) fn resolve(&self, said: &Body) -> Result<Target, Refusal> {
        let catalog = self.gateway.catalog();
        match &self.meta.pool {
            None => resolve(&catalog, said),
            Some(name) => {
                let pool = catalog.pools.iter().find(|pool| pool.name == *name);
                pool.map(whole_pool).ok_or_else(no_pools)
            }
        }
    }

    /// Chooses the endpoints to try.
    pub(super) fn choose(
        &mut self,
        body: &[u8],
        said: &Body,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Some(target) = self.target.clone() else { return Ok(()) };
        let mut hashes = self.gateway.lend_hashes();
        let prompt = self.gateway.hash_prompt(&target, body, said, self.meta.session, &mut hashes);
        self.hashes = hashes;
        with_desk(|desk| {
            let begun = clock::now();
            observe(&self.gateway, &target.pool, &prompt, &self.hashes, desk, now);
            let Desk { candidates, scratch, receipt, rng, matches, .. } = desk;
            let picked = target.pool.profile.pick(
                &request_view(&self.gateway, &prompt, now),
                candidates,
                scratch,
                rng,
                Some(receipt),
            );
            let picked = match picked {
                Ok(picked) => picked,
                Err(error) => return Err(unschedulable(&error, &target.pool, candidates, now)),
            };
            for index in picked.iter().take(ORDER_MAX) {
                let candidate = &candidates[*index as usize];
                let held = candidate.matched_blocks * self.gateway.block_tokens();
                let uncached = prompt.tokens.saturating_sub(held);
                if let Some(member) = target.pool.member(candidate.endpoint) {
                    self.order.push((member.clone(), uncached));
                }
            }
            let took = clock::now().since(begun);
            self.pick_took = Some(took);
            self.gateway.metrics.gateway().schedule_duration.observe(took);
            let best = picked.first().map_or(0, |best| candidates[*best as usize].matched_blocks);
            target.pool.metrics.prefix_blocks_looked_up.add(u64::from(prompt.blocks));
            target.pool.metrics.prefix_blocks_matched.add(u64::from(best));
            matches.clear();
            self.gateway.decisions.record(&self.meta, &target, &prompt, took, receipt);
            Ok(())
        })
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
pub(crate) fn resolve(catalog: &Catalog, said: &Body) -> Result<Target, Refusal> {
    let name = said.model.as_ref().map(|model| model.name.as_str());
    if let Some(target) = name.and_then(|name| catalog.get(name)) {
        return Ok(target.clone());
    }
    if let Some(pool) = &catalog.catch_all {
        return Ok(whole_pool(pool));
    }
    match name {
        Some(name) => Err(model_not_found(catalog, name)),
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

/// The error for a name that nobody serves.
pub fn model_not_found(catalog: &Catalog, name: &str) -> Refusal {
    if catalog.pools.is_empty() {
        return no_pools();
    }
    let near = catalog.near(name);
    let hint = if near.is_empty() {
        "GET /v1/models lists what is served".to_owned()
    } else {
        format!(
            "did you mean {}?",
            near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
        )
    };
    Refusal::new(
        404,
        "model_not_found",
        Component::Edge,
        labels::Refusal::ModelNotFound,
        format!("the model `{name}` is not served here; {hint}"),
    )
    .with_param(Some("model"))
}

fn no_pools() -> Refusal {
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
    if !target.pool.scores_prefix {
        return PromptView { blocks: 0, tokens, adapter: target.adapter, session };
    }
    let salt = said.cache_salt.clone().and_then(|range| body.get(range)).unwrap_or_default();
    let adapter_name = target.adapter.map(|_| target.name.as_str());
    let seed = prefix::seed(process_key, target.pool.model.as_str(), adapter_name, salt);
    let block_bytes = block_tokens as usize * BYTES_PER_TOKEN;
    prefix::block_hashes(seed, &ranges[..count], block_bytes, PREFIX_BLOCKS_MAX, hashes);
    PromptView {
        blocks: u32::try_from(hashes.len()).unwrap_or(u32::MAX),
        tokens,
        adapter: target.adapter,
        session,
    }
}

/// A key that nobody outside can know, so that hashes cannot confirm a guessed prompt.
pub(crate) fn process_key() -> u64 {
    rand::rng().random()
}

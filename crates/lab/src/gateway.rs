//! What a gateway knows and does: the production state, index and profile, and scrapes at the
//! production's rhythm.

mod scraper;
mod sharing;

use std::sync::Arc;

use prefix::{Answer, Belief, BlockHash, Matches, PrefixIndex};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sched::{
    Candidate, EndpointState, RequestView, Reservation, RetryBudget, RetryConfig, saturation,
};
use types::{EndpointId, EndpointMetrics, Saturation, Slot, Standing, Timestamp};

use crate::endpoint::Page;
use crate::measure::{SAMPLED, Sample};
use crate::plan::Settings;
use crate::policy::{Asked, Choice, Chooser, Policy, Scrapes, Truth};
use crate::prompt::mix;
use crate::workload::Request;
use scraper::Scraper;

/// Tokens of one block of the prefix index, the default of `prefixIndex.blockTokens`.
pub(crate) const BLOCK_TOKENS: u32 = 64;
/// Blocks of one prompt that are looked up at most, as the gateway does.
const BLOCKS_MAX: usize = 2048;
/// The default of `prefixIndex.bytesMax`.
const INDEX_BYTES: usize = 256 << 20;

pub(crate) struct Gateway {
    policy: Policy,
    chooser: Chooser,
    states: Vec<Arc<EndpointState>>,
    scrapers: Vec<Scraper>,
    index: PrefixIndex,
    pub(crate) retries: Arc<RetryBudget>,
    rng: Pcg64Mcg,
    matches: Matches,
    candidates: Vec<Candidate>,
    words: Vec<u64>,
    hashes: Vec<BlockHash>,
    /// Whose blocks `hashes` are.
    hashed: Option<u32>,
    samples: Vec<Sample>,
    /// Prompts sent since the last sharing, with their endpoints; only if gateways share.
    told: Option<Vec<(usize, Vec<BlockHash>)>>,
}

/// A request booked on an endpoint.
pub(crate) struct Sent {
    pub(crate) reservation: Reservation,
    /// What the endpoint was taken to hold of the prompt.
    pub(crate) belief: Belief,
    /// The endpoint's next scrape, if this request moved it.
    pub(crate) scrape_at: Option<Timestamp>,
}

impl Gateway {
    pub(crate) fn new(policy: Policy, endpoints: usize, settings: &Settings, seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(mix(seed, 4));
        let state = |at: usize| Arc::new(EndpointState::new(id(at), slot(at)));
        let scraper = |at| Scraper::new(policy.scrapes(), settings.scrape_interval, at, endpoints);
        Self {
            policy,
            chooser: Chooser::new(policy, settings.weights.as_ref(), endpoints, &mut rng),
            states: (0..endpoints).map(state).collect(),
            scrapers: (0..endpoints).map(scraper).collect(),
            index: PrefixIndex::new(prefix::Config { bytes_max: INDEX_BYTES }),
            retries: Arc::new(RetryBudget::new(RetryConfig::default())),
            rng,
            matches: Matches::default(),
            candidates: Vec::new(),
            words: Vec::new(),
            hashes: Vec::new(),
            hashed: None,
            samples: Vec::new(),
            told: settings.share_interval.map(|_| Vec::new()),
        }
    }

    /// Tells how much each endpoint caches, as its first page would.
    pub(crate) fn introduce(&self, endpoint: usize, page: &EndpointMetrics) {
        if let (Some(size), Some(count)) = (page.block_size_tokens, page.block_count) {
            let tokens = u64::from(size).saturating_mul(count);
            let slot = self.states[endpoint].slot();
            self.index.set_capacity(slot, tokens / u64::from(BLOCK_TOKENS));
        }
    }

    /// When each endpoint is scraped first; empty if this policy reads no pages.
    pub(crate) fn first_scrapes(&self) -> Vec<Timestamp> {
        if self.policy.scrapes() == Scrapes::Never {
            return Vec::new();
        }
        self.scrapers.iter().map(|scraper| scraper.due).collect()
    }

    /// Whether a scrape ordered for `now` is still to be made; then it has begun.
    pub(crate) fn begin_scrape(&mut self, endpoint: usize, now: Timestamp) -> bool {
        self.scrapers[endpoint].begin(now)
    }

    /// Takes over a page, `None` if none came; gives when to scrape next.
    pub(crate) fn end_scrape(
        &mut self,
        endpoint: usize,
        page: Option<Page>,
        now: Timestamp,
    ) -> Timestamp {
        if let Some(page) = &page {
            self.introduce(endpoint, &page.metrics);
            self.chooser.scraped(endpoint, page.generated, now);
        }
        let metrics = page.map(|page| page.metrics);
        self.scrapers[endpoint].end(metrics, &self.states[endpoint], now)
    }

    /// Appends where to send a request, the best first; nothing refuses it with 429.
    ///
    /// * `excluded`: endpoints that failed it before.
    pub(crate) fn choose(
        &mut self,
        id: u32,
        request: &Request,
        excluded: &[EndpointId],
        now: Timestamp,
        truth: &Truth<'_>,
        order: &mut Vec<Choice>,
    ) {
        self.hash(id, request);
        self.index.longest_matches(&self.hashes, &mut self.matches);
        self.candidates.clear();
        for state in &self.states {
            let mut candidate = state.observe(request.adapter, now);
            candidate.matched_blocks = self.matches.blocks(state.slot());
            self.candidates.push(candidate);
        }
        self.matches.clear();
        let mut asked = asked(request, &self.hashes, excluded, now);
        asked.is_sampled = id.is_multiple_of(SAMPLED) && excluded.is_empty();
        let costs: Vec<f64> = if asked.is_sampled {
            self.candidates.iter().map(|other| truth.ttft_seconds(&asked, other)).collect()
        } else {
            Vec::new()
        };
        let predicted_ms =
            self.chooser.choose(&asked, &mut self.candidates, truth, &mut self.rng, order);
        if let Some(choice) = order.first()
            && let Some(chosen_seconds) = costs.get(choice.endpoint).copied()
        {
            let predicted_ms = predicted_ms.filter(|_| self.policy.is_ours());
            let least_seconds = costs.iter().copied().fold(f64::INFINITY, f64::min);
            self.samples.push(Sample { request: id, chosen_seconds, least_seconds, predicted_ms });
        }
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Books a request where it was chosen to go, and remembers that.
    pub(crate) fn send(
        &mut self,
        id: u32,
        request: &Request,
        choice: Choice,
        now: Timestamp,
    ) -> Sent {
        self.hash(id, request);
        let state = &self.states[choice.endpoint];
        let uncached = request.prompt_tokens().saturating_sub(choice.held_tokens);
        let reservation = state.reserve_with(uncached, request.adapter, now);
        let belief = self.index.record(state.slot(), &self.hashes);
        if let Some(told) = &mut self.told {
            told.push((choice.endpoint, self.hashes.clone()));
        }
        let asked = asked(request, &self.hashes, &[], now);
        self.chooser.sent(choice, id, &asked);
        let scrape_at = self.scrapers[choice.endpoint].wake(now);
        Sent { reservation, belief, scrape_at }
    }

    /// The request is no longer there, however it ended.
    pub(crate) fn ended(&mut self, endpoint: usize, request: u32) {
        self.chooser.ended(endpoint, request);
    }

    /// An answer said how much of its prompt was cached.
    ///
    /// * `block_size`: of the engine's own blocks, tokens.
    pub(crate) fn correct(
        &self,
        endpoint: usize,
        belief: &Belief,
        prompt_tokens: u32,
        cached_tokens: u32,
        block_size: u32,
    ) {
        if !self.policy.is_ours() {
            return;
        }
        let answer = Answer {
            cached_tokens: Some(cached_tokens),
            prompt_tokens,
            estimated_tokens: prompt_tokens,
            block_tokens: BLOCK_TOKENS,
            engine_block_tokens: block_size,
        };
        self.index.correct(self.states[endpoint].slot(), belief, &answer);
    }

    /// Share of the room that is in use, by who asks.
    pub(crate) fn saturation(&self, config: &saturation::Config, now: Timestamp) -> Saturation {
        let candidates = self.states.iter().map(|state| state.observe(None, now));
        saturation::Room::of(config, candidates).saturation_after(0)
    }

    /// Appends the endpoints without room for those of this standing, if any has some.
    pub(crate) fn full(
        &self,
        config: &saturation::Config,
        standing: Standing,
        now: Timestamp,
        out: &mut Vec<EndpointId>,
    ) {
        let has_room = |one: &Candidate| config.room(one) > 0 && config.is_open(one, standing);
        let all = self.states.iter().map(|state| state.observe(None, now));
        out.extend(all.filter(|one| !has_room(one)).map(|one| one.endpoint));
        if out.len() == self.states.len() {
            out.clear();
        }
    }

    /// Requests of this gateway under way.
    pub(crate) fn in_flight(&self) -> u32 {
        self.states.iter().map(|state| state.in_flight()).sum()
    }

    fn hash(&mut self, id: u32, request: &Request) {
        if self.hashed == Some(id) {
            return;
        }
        self.hashed = Some(id);
        self.words.clear();
        self.hashes.clear();
        if self.policy.matches_prefixes() {
            request.prompt_hashes(BLOCK_TOKENS, &mut self.words);
            self.hashes.extend(self.words.iter().take(BLOCKS_MAX).map(|word| BlockHash(*word)));
        }
    }
}

fn asked<'a>(
    request: &Request,
    hashes: &'a [BlockHash],
    excluded: &'a [EndpointId],
    now: Timestamp,
) -> Asked<'a> {
    let view = RequestView {
        now,
        prompt_blocks: u32::try_from(hashes.len()).unwrap_or(u32::MAX),
        prompt_tokens: request.prompt_tokens(),
        block_tokens: BLOCK_TOKENS,
        adapter: request.adapter,
        excluded,
        ..RequestView::default()
    };
    Asked {
        view,
        block_tokens: BLOCK_TOKENS,
        hashes,
        output_tokens: request.answer.tokens,
        is_sampled: false,
    }
}

pub(crate) fn id(at: usize) -> EndpointId {
    EndpointId(u32::try_from(at).unwrap_or(u32::MAX))
}

fn slot(at: usize) -> Slot {
    Slot(u16::try_from(at).unwrap_or(u16::MAX))
}

//! What a gateway knows and does: the production state, index and profile, and scrapes at the
//! production's rhythm.

use std::sync::Arc;
use std::time::Duration;

use engines::cadence::{Cadence, Config as CadenceConfig, Outcome};
use prefix::{BlockHash, Matches, PrefixIndex};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sched::{Candidate, EndpointState, RequestView, Reservation};
use types::{EndpointId, EndpointMetrics, Slot, Timestamp};

use crate::policy::{Chooser, Policy, Truth};
use crate::prompt::{block_hashes, mix};
use crate::workload::Request;

/// Tokens of one block of the prefix index, the default of `prefixIndex.blockTokens`.
pub(crate) const BLOCK_TOKENS: u32 = 64;
/// Blocks of one prompt that are looked up at most, as the gateway does.
const BLOCKS_MAX: usize = 2048;
/// The default of `prefixIndex.bytesMax`.
const INDEX_BYTES: usize = 256 << 20;
/// How often the reference reads a page.
const REFERENCE_INTERVAL: Duration = Duration::from_millis(50);
/// From when on the reference takes a page for stale.
const REFERENCE_STALE: Duration = Duration::from_secs(2);

pub(crate) struct Gateway {
    policy: Policy,
    chooser: Chooser,
    states: Vec<Arc<EndpointState>>,
    scrapers: Vec<Scraper>,
    index: PrefixIndex,
    rng: Pcg64Mcg,
    matches: Matches,
    candidates: Vec<Candidate>,
    words: Vec<u64>,
    hashes: Vec<BlockHash>,
}

/// Where a request goes.
pub(crate) struct Placed {
    pub(crate) endpoint: usize,
    pub(crate) reservation: Reservation,
    /// Tokens of the prompt that the index believes to be there.
    pub(crate) held_tokens: u32,
    /// The endpoint's next scrape, if this request moved it.
    pub(crate) scrape_at: Option<Timestamp>,
}

/// Reads one endpoint's page, again and again.
struct Scraper {
    rhythm: Rhythm,
    due: Timestamp,
    begun: Option<Timestamp>,
    last: EndpointMetrics,
}

enum Rhythm {
    Cadence(Box<Cadence>),
    Every(Duration),
}

impl Gateway {
    pub(crate) fn new(policy: Policy, endpoints: usize, seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(mix(seed, 4));
        let state = |at: usize| {
            let id = EndpointId(u32::try_from(at).unwrap_or(u32::MAX));
            let slot = Slot(u16::try_from(at).unwrap_or(u16::MAX));
            Arc::new(EndpointState::new(id, slot))
        };
        Self {
            policy,
            chooser: Chooser::new(policy, endpoints, &mut rng),
            states: (0..endpoints).map(state).collect(),
            scrapers: (0..endpoints).map(|at| Scraper::new(policy, at, endpoints)).collect(),
            index: PrefixIndex::new(prefix::Config { bytes_max: INDEX_BYTES }),
            rng,
            matches: Matches::default(),
            candidates: Vec::new(),
            words: Vec::new(),
            hashes: Vec::new(),
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
        if !self.policy.scrapes() {
            return Vec::new();
        }
        self.scrapers.iter().map(|scraper| scraper.due).collect()
    }

    /// Whether a scrape ordered for `now` is still to be made; then it has begun.
    pub(crate) fn begin_scrape(&mut self, endpoint: usize, now: Timestamp) -> bool {
        let scraper = &mut self.scrapers[endpoint];
        if scraper.begun.is_some() || scraper.due != now {
            return false;
        }
        scraper.begun = Some(now);
        true
    }

    /// Takes over a page; gives when to scrape next.
    pub(crate) fn end_scrape(
        &mut self,
        endpoint: usize,
        page: EndpointMetrics,
        now: Timestamp,
    ) -> Timestamp {
        self.introduce(endpoint, &page);
        let (scraper, state) = (&mut self.scrapers[endpoint], &self.states[endpoint]);
        let begun = scraper.begun.take().unwrap_or(now);
        let stale_after = match &scraper.rhythm {
            Rhythm::Cadence(cadence) => cadence.stale_after(),
            Rhythm::Every(_) => REFERENCE_STALE,
        };
        state.record_scrape(&page, now, stale_after);
        let outcome = Outcome::Good { changed: page != scraper.last };
        scraper.last = page;
        scraper.due = match &mut scraper.rhythm {
            Rhythm::Cadence(cadence) => {
                cadence.after_scrape(now, outcome, state.in_flight(), now.since(begun))
            }
            Rhythm::Every(interval) => (begun + *interval).max(now),
        };
        scraper.due
    }

    /// Decides, books and remembers; `None` refuses with 429.
    pub(crate) fn place(
        &mut self,
        request: &Request,
        now: Timestamp,
        truth: &Truth<'_>,
    ) -> Option<Placed> {
        let prompt_tokens = request.prompt_tokens();
        self.words.clear();
        self.hashes.clear();
        if self.policy.matches_prefixes() {
            block_hashes(&request.prompt, BLOCK_TOKENS, &mut self.words);
            self.hashes.extend(self.words.iter().take(BLOCKS_MAX).map(|word| BlockHash(*word)));
            self.index.longest_matches(&self.hashes, &mut self.matches);
        }
        self.candidates.clear();
        for state in &self.states {
            let mut candidate = state.observe(None, now);
            candidate.matched_blocks = self.matches.blocks(state.slot());
            self.candidates.push(candidate);
        }
        let view = RequestView {
            now,
            prompt_blocks: u32::try_from(self.hashes.len()).unwrap_or(u32::MAX),
            prompt_tokens,
            block_tokens: BLOCK_TOKENS,
            ..RequestView::default()
        };
        let endpoint = self.chooser.choose(
            &view,
            &mut self.candidates,
            truth,
            BLOCK_TOKENS,
            now,
            &mut self.rng,
        )?;
        let state = &self.states[endpoint];
        let held_tokens = self.matches.blocks(state.slot()) * BLOCK_TOKENS;
        let reservation = state.reserve(prompt_tokens.saturating_sub(held_tokens), now);
        self.index.record(state.slot(), &self.hashes);
        self.matches.clear();
        let scraper = self.policy.scrapes().then(|| &mut self.scrapers[endpoint]);
        let scrape_at = scraper.and_then(|scraper| scraper.wake(now));
        Some(Placed { endpoint, reservation, held_tokens, scrape_at })
    }
}

impl Scraper {
    fn new(policy: Policy, at: usize, endpoints: usize) -> Self {
        let (rhythm, due) = match policy {
            Policy::Reference => {
                // Endpoints are read one after the other within the interval, which is kinder to
                // the policy than all at once.
                let share = at as f64 / endpoints.max(1) as f64;
                let due = Timestamp::ZERO + REFERENCE_INTERVAL.mul_f64(share);
                (Rhythm::Every(REFERENCE_INTERVAL), due)
            }
            _ => {
                let id = EndpointId(u32::try_from(at).unwrap_or(u32::MAX));
                let mut cadence = Cadence::new(CadenceConfig::default(), id);
                let due = cadence.first(Timestamp::ZERO);
                (Rhythm::Cadence(Box::new(cadence)), due)
            }
        };
        Self { rhythm, due, begun: None, last: EndpointMetrics::default() }
    }

    /// A request goes there: its page will change.
    fn wake(&mut self, now: Timestamp) -> Option<Timestamp> {
        let Rhythm::Cadence(cadence) = &mut self.rhythm else { return None };
        if self.begun.is_some() {
            return None;
        }
        let due = cadence.woken(now).max(now);
        (std::mem::replace(&mut self.due, due) != due).then_some(due)
    }
}

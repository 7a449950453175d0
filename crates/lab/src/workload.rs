//! What is asked: lengths and sharing, and when.

mod adapters;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{AdapterId, Timestamp};

use crate::arrivals::Arrivals;
use crate::capacity::Mix;
use crate::lengths::{Lengths, normal};
use crate::prompt::{Seen, Segment, chained_hashes, mix};
use crate::trace::TraceName;
pub(crate) use adapters::Adapters;

/// One request of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub at: Timestamp,
    pub prompt: Box<[Segment]>,
    /// What the model will say; no gateway knows its length.
    pub answer: Segment,
    /// The LoRA adapter that it names; `None`: the base model.
    pub adapter: Option<AdapterId>,
}

impl Request {
    pub fn prompt_tokens(&self) -> u32 {
        self.prompt.iter().map(|segment| segment.tokens).sum()
    }

    /// Appends the hashes of the prompt's whole blocks. Adapters share nothing.
    pub(crate) fn prompt_hashes(&self, block_tokens: u32, out: &mut Vec<u64>) {
        chained_hashes(self.seed(), self.prompt.iter(), block_tokens, out);
    }

    /// The same of prompt and answer together.
    pub(crate) fn whole_hashes(&self, block_tokens: u32, out: &mut Vec<u64>) {
        let whole = self.prompt.iter().chain([&self.answer]);
        chained_hashes(self.seed(), whole, block_tokens, out);
    }

    fn seed(&self) -> u64 {
        self.adapter.map_or(0, |adapter| adapter.0)
    }
}

/// A kind of traffic.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub(crate) arrivals: Arrivals,
    pub(crate) sharing: Sharing,
    pub(crate) adapters: Option<Adapters>,
}

/// Which prompts have a beginning in common.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sharing {
    /// None.
    Separate { prompt: Lengths, answer: Lengths },
    /// Each begins with the prefix of one of `groups`.
    Groups {
        groups: u32,
        /// Tokens of a group's prefix.
        prefix: u32,
        /// Share of requests that belong to the first group; the rest is uniform over the others.
        hot: f64,
        question: Lengths,
        answer: Lengths,
    },
    /// Conversations: each turn repeats all before it.
    Chat {
        /// System prompts, one for each conversation, uniform.
        systems: u32,
        system: u32,
        /// Turns on average; geometric.
        turns: f64,
        /// Median pause before the next turn, seconds; log-normal with spread [`PAUSE_SIGMA`].
        pause: f64,
        /// A conversation ends when its next prompt would be longer, tokens.
        prompt_max: u32,
        question: Lengths,
        answer: Lengths,
    },
    /// As recorded, arrivals included.
    Trace(TraceName),
}

/// Conversations begin so long before a run, so that all ages are there from its start.
const CHAT_LEAD: Duration = Duration::from_secs(900);
/// Mean pause is 1.13 times the median.
const PAUSE_SIGMA: f64 = 0.5;
/// How long a user is taken to watch an answer: a second, and 20 ms for each token. Fixed
/// beforehand, so that a slow policy does not slow the load down.
const READ: (f64, f64) = (1.0, 0.02);

impl Workload {
    pub(crate) const fn new(arrivals: Arrivals, sharing: Sharing) -> Self {
        Self { arrivals, sharing, adapters: None }
    }

    /// All requests up to `until`, `rate` per second on average, in order of time.
    pub fn requests(&self, seed: u64, rate: f64, until: Duration) -> Vec<Request> {
        let mut requests = self.bare_requests(seed, rate, until);
        if let Some(adapters) = &self.adapters {
            adapters.assign(mix(seed, 4), &mut requests);
        }
        requests
    }

    /// All but their adapters.
    fn bare_requests(&self, seed: u64, rate: f64, until: Duration) -> Vec<Request> {
        // Streams apart, so that the rate does not change what is asked.
        let mut rng = Pcg64Mcg::seed_from_u64(mix(seed, 1));
        let arrivals_seed = mix(seed, 2);
        let mut content = Contents(mix(seed, 3));
        match self.sharing {
            Sharing::Separate { prompt, answer } => {
                let instants = self.arrivals.instants(arrivals_seed, rate, until).into_iter();
                let mut request = |at| Request {
                    at,
                    prompt: Box::new([content.fresh(prompt.draw(&mut rng).max(1))]),
                    answer: content.fresh(answer.draw(&mut rng).max(1)),
                    adapter: None,
                };
                instants.map(&mut request).collect()
            }
            Sharing::Groups { groups, prefix, hot, question, answer } => {
                let instants = self.arrivals.instants(arrivals_seed, rate, until).into_iter();
                let request = |at| {
                    let (is_hot, place) = (rng.random::<f64>() < hot, rng.random::<f64>());
                    let others = f64::from(groups.saturating_sub(1).max(1));
                    let group = match hot > 0.0 {
                        true if is_hot => 0,
                        true => 1 + (place * others) as u64,
                        false => (place * f64::from(groups)) as u64,
                    };
                    let prefix = Segment { content: mix(group, 0x9f0), tokens: prefix };
                    Request {
                        at,
                        prompt: Box::new([prefix, content.fresh(question.draw(&mut rng).max(1))]),
                        answer: content.fresh(answer.draw(&mut rng).max(1)),
                        adapter: None,
                    }
                };
                instants.map(request).collect()
            }
            Sharing::Trace(name) => name.trace().requests(mix(seed, 1), rate, until),
            Sharing::Chat { .. } => {
                let mean_turns = self.mean_turns();
                let begins =
                    self.arrivals.instants(arrivals_seed, rate / mean_turns, CHAT_LEAD + until);
                let mut all = Vec::new();
                for begin in begins {
                    self.conversation(begin, &mut rng, &mut content, &mut all);
                }
                let lead = Timestamp::from_duration(CHAT_LEAD);
                let end = lead + until;
                all.retain(|request| (lead..end).contains(&request.at));
                for request in &mut all {
                    request.at = Timestamp::from_duration(request.at.since(lead));
                }
                all.sort_by_key(|request| request.at);
                all
            }
        }
    }

    /// Appends one conversation that begins at `at`; nothing for other kinds of traffic.
    fn conversation(
        &self,
        mut at: Timestamp,
        rng: &mut Pcg64Mcg,
        content: &mut Contents,
        all: &mut Vec<Request>,
    ) {
        let Sharing::Chat { systems, system, turns, pause, prompt_max, question, answer } =
            self.sharing
        else {
            return;
        };
        let which = (rng.random::<f64>() * f64::from(systems)) as u64;
        let mut prompt = vec![Segment { content: mix(which, 0x5e5), tokens: system }];
        let mut tokens = system;
        loop {
            let asked = content.fresh(question.draw(rng).max(1));
            let said = content.fresh(answer.draw(rng).max(1));
            tokens += asked.tokens;
            if tokens > prompt_max {
                return;
            }
            prompt.push(asked);
            let prompt_now = prompt.clone().into();
            all.push(Request { at, prompt: prompt_now, answer: said, adapter: None });
            prompt.push(said);
            tokens += said.tokens;
            let read = READ.0 + READ.1 * f64::from(said.tokens);
            let think = pause * (PAUSE_SIGMA * normal(rng)).exp();
            at = at + Duration::from_secs_f64(read + think);
            if rng.random::<f64>() >= 1.0 - 1.0 / turns {
                return;
            }
        }
    }

    /// Turns of a conversation, with those that grew too long cut.
    fn mean_turns(&self) -> f64 {
        const CONVERSATIONS: u32 = 2000;
        let mut rng = Pcg64Mcg::seed_from_u64(0);
        let mut content = Contents(0);
        let mut all = Vec::new();
        for _ in 0..CONVERSATIONS {
            self.conversation(Timestamp::ZERO, &mut rng, &mut content, &mut all);
        }
        (all.len() as f64 / f64::from(CONVERSATIONS)).max(1.0)
    }

    /// The average request, with caches that hold all that was asked before.
    ///
    /// * `endpoints`: the common beginnings are spread over so many.
    pub(crate) fn mix(&self, endpoints: usize) -> Mix {
        const SAMPLE: f64 = 6000.0;
        const RATE: f64 = 4.0;
        const BLOCK: u32 = 16;
        let (rate, span) = match self.sharing {
            Sharing::Trace(name) => (name.trace().rate(), name.trace().span()),
            _ => (RATE, Duration::from_secs_f64(SAMPLE / RATE)),
        };
        let requests = self.requests(0, rate, span);
        // The first half fills the cache.
        let uncached = uncached_tokens(&requests, BLOCK);
        let from = requests.len() / 2;
        let counted = (requests.len() - from).max(1) as f64;
        let mean = |of: &dyn Fn(&Request, f64) -> f64| {
            let pairs = requests.iter().zip(&uncached).skip(from);
            pairs.map(|(request, uncached)| of(request, f64::from(*uncached))).sum::<f64>()
                / counted
        };
        let prompt = mean(&|request, _| f64::from(request.prompt_tokens()));
        let output = mean(&|request, _| f64::from(request.answer.tokens));
        let (common, shared) = match self.sharing {
            Sharing::Separate { .. } => (0.0, 0.0),
            Sharing::Groups { groups, prefix, .. } => {
                (f64::from(prefix), f64::from(groups) * f64::from(prefix) / endpoints.max(1) as f64)
            }
            Sharing::Chat { systems, system, .. } => {
                (f64::from(system), f64::from(systems) * f64::from(system))
            }
            Sharing::Trace(name) => {
                let common = f64::from(name.trace().common_tokens());
                (common, common)
            }
        };
        Mix {
            prompt,
            output,
            uncached: mean(&|_, uncached| uncached),
            pairs: mean(&|request, uncached| {
                uncached * (f64::from(request.prompt_tokens()) - uncached / 2.0)
            }),
            own: prompt - common + output / 2.0,
            shared,
        }
    }
}

/// Tokens of each request that a cache without bounds would not hold when it comes, answers of
/// earlier turns included. At least one token is always computed.
pub(crate) fn uncached_tokens(requests: &[Request], block_tokens: u32) -> Vec<u32> {
    let mut seen = Seen::default();
    let mut hashes = Vec::new();
    let mut one = |request: &Request| {
        let tokens = request.prompt_tokens();
        hashes.clear();
        request.whole_hashes(block_tokens, &mut hashes);
        let usable = (tokens.saturating_sub(1) / block_tokens) as usize;
        let held = hashes.iter().take(usable).take_while(|hash| seen.contains(*hash)).count();
        seen.extend(hashes.drain(..));
        tokens - held as u32 * block_tokens
    };
    requests.iter().map(&mut one).collect()
}

/// Gives out contents that occur once.
struct Contents(u64);

impl Contents {
    fn fresh(&mut self, tokens: u32) -> Segment {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Segment { content: mix(self.0, 0xf5e5), tokens }
    }
}

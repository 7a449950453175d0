//! What is asked: lengths and sharing, and when.

use std::collections::HashSet;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Timestamp;

use crate::arrivals::Arrivals;
use crate::capacity::Mix;
use crate::lengths::{Lengths, normal};
use crate::prompt::{Segment, block_hashes, mix};

/// One request of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub at: Timestamp,
    pub prompt: Box<[Segment]>,
    /// What the model will say; no gateway knows its length.
    pub answer: Segment,
}

impl Request {
    pub fn prompt_tokens(&self) -> u32 {
        self.prompt.iter().map(|segment| segment.tokens).sum()
    }
}

/// A kind of traffic.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub(crate) arrivals: Arrivals,
    pub(crate) sharing: Sharing,
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
}

/// Conversations begin so long before a run, so that all ages are there from its start.
const CHAT_LEAD: Duration = Duration::from_secs(900);
/// Mean pause is 1.13 times the median.
const PAUSE_SIGMA: f64 = 0.5;
/// How long a user is taken to watch an answer: a second, and 20 ms for each token. Fixed
/// beforehand, so that a slow policy does not slow the load down.
const READ: (f64, f64) = (1.0, 0.02);

impl Workload {
    /// All requests up to `until`, `rate` per second on average, in order of time.
    pub fn requests(&self, seed: u64, rate: f64, until: Duration) -> Vec<Request> {
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
                    }
                };
                instants.map(request).collect()
            }
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
            all.push(Request { at, prompt: prompt.clone().into(), answer: said });
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
        let requests = self.requests(0, RATE, Duration::from_secs_f64(SAMPLE / RATE));
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
    let mut seen = HashSet::new();
    let (mut hashes, mut whole) = (Vec::new(), Vec::new());
    let mut one = |request: &Request| {
        let tokens = request.prompt_tokens();
        hashes.clear();
        whole.clear();
        whole.extend(request.prompt.iter().copied());
        whole.push(request.answer);
        block_hashes(&whole, block_tokens, &mut hashes);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_seed_fixes_what_is_asked_and_when() {
        for scenario in SCENARIOS {
            let workload = scenario.workload;
            let all = workload.requests(5, 10.0, MINUTE);
            assert_eq!(all, workload.requests(5, 10.0, MINUTE), "{}", scenario.name);
            assert_ne!(all, workload.requests(6, 10.0, MINUTE), "{}", scenario.name);
            assert!(all.is_sorted_by_key(|request| request.at), "{}", scenario.name);
        }
    }

    #[test]
    fn every_kind_of_traffic_keeps_its_rate() {
        for scenario in SCENARIOS {
            let until = Duration::from_secs(1200);
            let rate = scenario.workload.requests(1, 10.0, until).len() as f64 / 1200.0;
            assert!((rate / 10.0 - 1.0).abs() < 0.06, "{}: {rate}", scenario.name);
        }
    }

    #[test]
    fn the_next_turn_of_a_chat_begins_with_the_turn_before_and_its_answer() {
        let chat = SCENARIOS.iter().find(|scenario| scenario.name == "chat").unwrap();
        let all = chat.workload.requests(1, 4.0, Duration::from_secs(300));
        let followed = all.iter().filter(|turn| {
            let said = [&turn.prompt[..], &[turn.answer]].concat();
            all.iter().any(|next| next.at > turn.at && next.prompt.starts_with(&said))
        });
        assert!(followed.count() * 2 > all.len());
    }

    #[test]
    fn with_endless_memory_only_the_new_text_is_computed() {
        let groups = SCENARIOS.iter().find(|scenario| scenario.name == "prefix-8b").unwrap();
        let mix = groups.workload.mix(8);
        assert!((1200.0..1220.0).contains(&mix.uncached), "{mix:?}");
        assert_eq!((mix.prompt, mix.output, mix.own), (7200.0, 1000.0, 1700.0));
    }
}

//! The load: chats that begin with one of a few system prompts and go on turn by turn.
//!
//! What is asked follows from the seed alone, when it is asked from the seed and the rate. The
//! history of a later turn quotes answers that the client made up beforehand; so prompts are the
//! same whoever answered and however late, and a cached prefix ends where the last answer begins.

use std::time::Duration;

use lab::capacity::Mix;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::fleet::MODEL;

/// System prompts, by falling popularity (Zipf, exponent 1).
const SYSTEMS: usize = 8;
const SYSTEM_TOKENS: usize = 600;
/// Share of requests that continue a chat.
const FOLLOW_UPS: f64 = 0.5;
/// A chat pauses for this many requests of other chats, at least.
const PAUSE: usize = 40;
/// A chat ends when its prompt would be longer, tokens.
const PROMPT_MAX: usize = 3000;
/// Median, log-normal spread and bounds of what a user writes, tokens.
const QUESTION: Lengths = Lengths { median: 180.0, sigma: 0.8, min: 20, max: 1500 };
/// The same of answers.
const ANSWER: Lengths = Lengths { median: 90.0, sigma: 0.6, min: 16, max: 400 };
/// Requests over which [`mix`] averages.
const AVERAGED: usize = 2000;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    /// JSON for `/v1/chat/completions`, streamed, with a fixed length of the answer.
    pub(super) body: String,
    pub(super) prompt_tokens: usize,
    /// Tokens of the prompt that an endless cache would not hold.
    pub(super) uncached_tokens: usize,
    pub(super) output_tokens: usize,
}

/// A chat, as far as it has come.
#[derive(Clone, Debug)]
struct Chat {
    /// JSON objects, joined by commas.
    messages: String,
    tokens: usize,
    /// The length of the answer that the last turn gets.
    answer: usize,
    /// When it was last continued, counted in requests.
    last: usize,
}

/// Endless requests.
pub(super) struct Chats {
    rng: Pcg64Mcg,
    systems: Vec<String>,
    open: Vec<Chat>,
    count: usize,
}

impl Chats {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let systems = (0..SYSTEMS).map(|_| words(&mut rng, SYSTEM_TOKENS)).collect();
        Self { rng, systems, open: Vec::new(), count: 0 }
    }

    /// A chat that paused long enough, or a new one with the tokens it finds in a cache.
    fn chat(&mut self) -> (Chat, usize) {
        let ready = self.open.iter().position(|chat| chat.last + PAUSE <= self.count);
        if let Some(at) = ready
            && self.rng.random::<f64>() < FOLLOW_UPS
        {
            let mut chat = self.open.swap_remove(at);
            let cached = chat.tokens;
            let answer = words(&mut self.rng, chat.answer);
            chat.say("assistant", &answer);
            return (chat, cached);
        }
        let system = self.system();
        let mut chat = Chat { messages: String::new(), tokens: 0, answer: 0, last: self.count };
        chat.say("system", &self.systems[system]);
        let cached = chat.tokens;
        (chat, cached)
    }

    fn system(&mut self) -> usize {
        let all: f64 = (1..=SYSTEMS).map(|rank| 1.0 / rank as f64).sum();
        let mut left = self.rng.random::<f64>() * all;
        for rank in 1..SYSTEMS {
            left -= 1.0 / rank as f64;
            if left < 0.0 {
                return rank - 1;
            }
        }
        SYSTEMS - 1
    }
}

impl Iterator for Chats {
    type Item = Ask;

    fn next(&mut self) -> Option<Ask> {
        let (mut chat, cached) = self.chat();
        let tokens = QUESTION.draw(&mut self.rng);
        let question = words(&mut self.rng, tokens);
        chat.say("user", &question);
        chat.answer = ANSWER.draw(&mut self.rng);
        chat.last = self.count;
        self.count += 1;
        let ask = Ask {
            body: format!(
                r#"{{"model":"{MODEL}","messages":[{}],"stream":true,"max_tokens":{},"ignore_eos":true}}"#,
                chat.messages, chat.answer
            ),
            prompt_tokens: chat.tokens,
            uncached_tokens: chat.tokens - cached,
            output_tokens: chat.answer,
        };
        if chat.tokens + chat.answer + QUESTION.max < PROMPT_MAX {
            self.open.push(chat);
        }
        Some(ask)
    }
}

impl Chat {
    fn say(&mut self, role: &str, text: &str) {
        if !self.messages.is_empty() {
            self.messages.push(',');
        }
        self.messages.push_str(&format!(r#"{{"role":"{role}","content":"{text}"}}"#));
        // The template adds a token for the role and one for the end.
        self.tokens += text.len() / 4 + 2;
    }
}

/// A log-normal distribution with bounds.
struct Lengths {
    median: f64,
    sigma: f64,
    min: usize,
    max: usize,
}

impl Lengths {
    fn draw(&self, rng: &mut Pcg64Mcg) -> usize {
        // Box-Muller; `1 - u` keeps the logarithm finite.
        let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
        let length = self.median * (self.sigma * normal).exp();
        (length.round() as usize).clamp(self.min, self.max)
    }
}

/// Pseudo-words of four bytes, each of which the simulated tokenizer takes for one token.
fn words(rng: &mut Pcg64Mcg, count: usize) -> String {
    const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
    const VOWELS: &[u8; 4] = b"aeio";
    let mut text = String::with_capacity(count * 4);
    for _ in 0..count {
        let bits: u32 = rng.random();
        let consonant = |shift: u32| char::from(CONSONANTS[(bits >> shift & 15) as usize]);
        text.push(consonant(0));
        text.push(char::from(VOWELS[(bits >> 4 & 3) as usize]));
        text.push(consonant(8));
        text.push(' ');
    }
    text
}

/// The average of what this seed asks, given caches that hold all that was asked before.
pub(super) fn mix(seed: u64) -> Mix {
    let (mut prompt, mut uncached, mut output) = (0, 0, 0);
    for ask in Chats::new(seed).take(AVERAGED) {
        prompt += ask.prompt_tokens;
        uncached += ask.uncached_tokens;
        output += ask.output_tokens;
    }
    let mean = |sum: usize| sum as f64 / AVERAGED as f64;
    let (prompt, uncached, output) = (mean(prompt), mean(uncached), mean(output));
    Mix {
        prompt,
        uncached,
        pairs: uncached * (prompt - uncached / 2.0),
        output,
        own: prompt - SYSTEM_TOKENS as f64 + output / 2.0,
        shared: (SYSTEMS * SYSTEM_TOKENS) as f64,
    }
}

/// When requests are sent: a Poisson process of `rate` per second, up to `until`.
pub(super) fn arrivals(seed: u64, rate: f64, until: Duration) -> Vec<Duration> {
    // Another stream than the chats', so that the rate does not change what is asked.
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed_0fa2_21fa_1500);
    let mut at = 0.0;
    let mut all = Vec::new();
    loop {
        at -= (1.0 - rng.random::<f64>()).ln() / rate;
        if at >= until.as_secs_f64() {
            return all;
        }
        all.push(Duration::from_secs_f64(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(seed: u64, count: usize) -> Vec<Ask> {
        Chats::new(seed).take(count).collect()
    }

    #[test]
    fn the_same_seed_asks_the_same_at_the_same_times() {
        let until = Duration::from_secs(20);
        assert_eq!(asks(7, 200), asks(7, 200));
        assert_eq!(arrivals(7, 30.0, until), arrivals(7, 30.0, until));
        assert_ne!(asks(7, 200), asks(8, 200));
        assert_ne!(arrivals(7, 30.0, until), arrivals(8, 30.0, until));
    }

    #[test]
    fn arrivals_keep_their_rate_and_their_order() {
        let all = arrivals(3, 50.0, Duration::from_secs(200));
        assert!((all.len() as f64 / 10_000.0 - 1.0).abs() < 0.05, "{} arrivals", all.len());
        assert!(all.is_sorted());
    }

    #[test]
    fn another_rate_stretches_the_arrivals_and_changes_nothing_else() {
        let (slow, fast) = (
            arrivals(3, 10.0, Duration::from_secs(20)),
            arrivals(3, 20.0, Duration::from_secs(10)),
        );
        assert!(slow.len().abs_diff(fast.len()) <= 1);
        for (slow, fast) in slow.iter().zip(&fast) {
            assert!((slow.as_secs_f64() / fast.as_secs_f64() - 2.0).abs() < 1e-6);
        }
    }

    #[test]
    fn a_later_turn_begins_with_the_whole_turn_before() {
        let asks = asks(1, 300);
        let messages = |ask: &Ask| {
            let from = ask.body.find('[').unwrap() + 1;
            let to = ask.body.rfind(']').unwrap();
            ask.body[from..to].to_owned()
        };
        let later = asks.iter().filter(|ask| ask.body.contains("assistant"));
        let mut turns = 0;
        for ask in later {
            let this = messages(ask);
            let before = this.rfind(r#",{"role":"assistant""#).unwrap();
            assert!(asks.iter().any(|other| messages(other) == this[..before]));
            turns += 1;
        }
        assert!((90..=160).contains(&turns), "{turns} of 300 requests continue a chat");
    }

    #[test]
    fn bodies_are_json_and_prompts_stay_below_the_limit() {
        for ask in asks(5, 300) {
            serde_json::from_str::<serde_json::Value>(&ask.body).unwrap();
            assert!(ask.prompt_tokens <= PROMPT_MAX && ask.uncached_tokens <= ask.prompt_tokens);
            assert!(ask.output_tokens >= ANSWER.min);
        }
    }
}

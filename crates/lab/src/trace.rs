//! Recorded traffic, replayed at other rates.
//!
//! A higher rate is several copies of the trace on top of each other, each begun elsewhere and with
//! content of its own: compressing time instead would change how soon a prompt is used again. The
//! last copy, if not a whole one is needed, keeps a share of its conversations, each entirely.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Timestamp;

use crate::prompt::{Segment, mix};
use crate::workload::Request;

/// Tokens of the blocks that ids name.
const ID_TOKENS: u32 = 512;

/// A trace that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceName {
    /// 600 s of a chat service with long prompts; sharing by block ids.
    MooncakeConversation,
    /// An hour of a code-completion service with bursts; sharing not recorded.
    AzureCode,
}

/// Requests as recorded, in order of time.
#[derive(Debug)]
pub(crate) struct Trace {
    rows: Vec<Row>,
    span: Duration,
    /// Arrivals are stamped so coarsely; each is moved to anywhere within.
    stamp: Duration,
}

#[derive(Debug, PartialEq)]
struct Row {
    at: Duration,
    prompt_tokens: u32,
    answer_tokens: u32,
    ids: Box<[u32]>,
}

static MOONCAKE: LazyLock<Trace> = LazyLock::new(|| {
    let rows = include_str!("../data/mooncake_conversation_600s.txt").lines();
    Trace {
        rows: rows.filter_map(Row::of_mooncake).collect(),
        span: Duration::from_secs(600),
        stamp: Duration::from_secs(3),
    }
});

static AZURE_CODE: LazyLock<Trace> = LazyLock::new(|| {
    let mut at = Duration::ZERO;
    let rows = include_str!("../data/azure2023_code.txt").lines();
    let rows = rows.filter_map(|line| Row::of_azure(line, &mut at)).collect();
    // As long again after the last as requests are apart on average.
    Trace { rows, span: Duration::from_millis(3_436_300), stamp: Duration::ZERO }
});

impl TraceName {
    pub(crate) fn trace(self) -> &'static Trace {
        match self {
            Self::MooncakeConversation => &MOONCAKE,
            Self::AzureCode => &AZURE_CODE,
        }
    }
}

impl Row {
    /// `second prompt answer ids`.
    fn of_mooncake(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let mut number = || fields.next()?.parse::<u32>().ok();
        let (second, prompt_tokens, answer_tokens) = (number()?, number()?, number()?);
        let mut ids = Vec::new();
        for run in fields.next()?.split(',') {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            ids.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
        }
        let at = Duration::from_secs(u64::from(second));
        Some(Self { at, prompt_tokens, answer_tokens, ids: ids.into() })
    }

    /// `milliseconds since the row before, prompt, answer`.
    fn of_azure(line: &str, at: &mut Duration) -> Option<Self> {
        let mut numbers = line.split(' ').map_while(|field| field.parse::<u32>().ok());
        *at += Duration::from_millis(u64::from(numbers.next()?));
        let (prompt_tokens, answer_tokens) = (numbers.next()?, numbers.next()?);
        Some(Self { at: *at, prompt_tokens, answer_tokens, ids: Box::default() })
    }

    /// What tells conversations apart: their first block that not all have.
    fn conversation(&self, at: usize) -> u64 {
        self.ids.get(1).map_or(at as u64 | 1 << 40, |id| u64::from(*id))
    }

    /// * `contents`: of this copy.
    fn prompt(&self, at: usize, contents: u64) -> Box<[Segment]> {
        if self.ids.is_empty() {
            let content = mix(contents, at as u64 | 1 << 40);
            return Box::new([Segment { content, tokens: self.prompt_tokens.max(1) }]);
        }
        let mut left = self.prompt_tokens.max(1);
        let segments = self.ids.iter().map_while(|id| {
            let tokens = left.min(ID_TOKENS);
            left -= tokens;
            let segment = Segment { content: mix(contents, u64::from(*id)), tokens };
            (tokens > 0).then_some(segment)
        });
        segments.collect()
    }
}

impl Trace {
    /// Requests per second as recorded.
    pub(crate) fn rate(&self) -> f64 {
        self.rows.len() as f64 / self.span.as_secs_f64()
    }

    pub(crate) fn span(&self) -> Duration {
        self.span
    }

    /// Tokens that all prompts begin with.
    pub(crate) fn common_tokens(&self) -> u32 {
        let first = self.rows.first().and_then(|row| row.ids.first());
        let is_common = first.is_some() && self.rows.iter().all(|row| row.ids.first() == first);
        if is_common { ID_TOKENS } else { 0 }
    }

    /// Requests up to `until`, `rate` per second on average over the whole trace. The seed decides
    /// where in the trace each copy begins; the trace is repeated with other content when it ends.
    pub(crate) fn requests(&self, seed: u64, rate: f64, until: Duration) -> Vec<Request> {
        let mut all = Vec::new();
        let mut copies = rate / self.rate();
        for copy in 0.. {
            if copies <= 0.0 {
                break;
            }
            self.copy(mix(seed, copy), copies.min(1.0), until, &mut all);
            copies -= 1.0;
        }
        all.sort_by_key(|request| request.at);
        all
    }

    fn copy(&self, seed: u64, share: f64, until: Duration, all: &mut Vec<Request>) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let begun = self.span.mul_f64(rng.random::<f64>());
        let laps = (until + begun).as_secs_f64() / self.span.as_secs_f64();
        for lap in 0..laps.ceil() as u32 {
            let contents = mix(mix(seed, 7), u64::from(lap));
            for (at, row) in self.rows.iter().enumerate() {
                let late = self.stamp.mul_f64(rng.random::<f64>());
                let drawn = mix(contents, row.conversation(at)) as f64 / u64::MAX as f64;
                let Some(when) = (self.span * lap + row.at + late).checked_sub(begun) else {
                    continue;
                };
                if when >= until || drawn >= share {
                    continue;
                }
                let answer = Segment {
                    content: mix(contents, at as u64 | 1 << 41),
                    tokens: row.answer_tokens.max(1),
                };
                all.push(Request {
                    at: Timestamp::from_duration(when),
                    prompt: row.prompt(at, contents),
                    answer,
                    adapter: None,
                });
            }
        }
    }
}

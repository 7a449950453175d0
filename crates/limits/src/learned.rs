//! What requests usually need: bytes of a prompt's token, and tokens of an answer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use types::Timestamp;

use crate::moment::Moment;
use crate::shards::{Entry, Rest};

/// Tokens of an answer of which nothing is known yet.
const OUTPUT_UNKNOWN: u64 = 512;
/// Answers that are enough to go by.
const ANSWERS_MIN: u32 = 8;
/// Answers after which all counts are halved, so that the newer ones decide.
const ANSWERS_HALVED: u32 = 512;
/// Steps of the scale of lengths: four for each doubling, up to 2^16 tokens.
const STEPS: usize = 65;
/// Bytes of text for one token, before anything is known and as bounds. Source: the field's estimate
/// is 4; ideographs in UTF-8 come near 1, whitespace and base64 beyond 6.
const BYTES_PER_TOKEN: f64 = 4.0;
const BYTES_PER_TOKEN_MIN: f64 = 1.0;
const BYTES_PER_TOKEN_MAX: f64 = 8.0;
/// Tokens after which the density learned so far counts half.
const DENSITY_TOKENS: f64 = 1e6;
/// How long something unused is remembered.
const IDLE: Duration = Duration::from_secs(3600);

/// How long the answers are that one key gets from one model.
#[derive(Debug)]
pub(crate) struct Outputs(Mutex<Histogram>);

#[derive(Debug)]
struct Histogram {
    counts: [u16; STEPS],
    answers: u32,
    touched: Timestamp,
}

/// How many bytes of prompt make a token of one model.
#[derive(Debug)]
pub(crate) struct Density {
    sums: Mutex<(f64, f64)>,
    /// Bits of the quotient, for reading without a lock; 0: nothing learned.
    bytes_per_token: AtomicU64,
}

impl Default for Outputs {
    fn default() -> Self {
        let touched = Timestamp::ZERO;
        Self(Mutex::new(Histogram { counts: [0; STEPS], answers: 0, touched }))
    }
}

impl Outputs {
    /// The length that 95 of 100 answers do not exceed.
    pub(crate) fn p95(&self) -> u64 {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if histogram.answers < ANSWERS_MIN {
            return OUTPUT_UNKNOWN;
        }
        let wanted = (histogram.answers * 95).div_ceil(100);
        let mut seen = 0;
        let step = histogram.counts.iter().position(|count| {
            seen += u32::from(*count);
            seen >= wanted
        });
        upper_end(step.unwrap_or(STEPS - 1))
    }

    pub(crate) fn learn(&self, tokens: u64, now: Timestamp) {
        let mut histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = &mut *histogram;
        histogram.touched = now;
        histogram.counts[step_of(tokens)] += 1;
        histogram.answers += 1;
        if histogram.answers >= ANSWERS_HALVED {
            histogram.counts.iter_mut().for_each(|count| *count /= 2);
            histogram.answers = histogram.counts.iter().map(|count| u32::from(*count)).sum();
        }
    }
}

/// Smallest step whose upper end holds so many tokens.
fn step_of(tokens: u64) -> usize {
    (0..STEPS - 1).find(|step| tokens <= upper_end(*step)).unwrap_or(STEPS - 1)
}

fn upper_end(step: usize) -> u64 {
    2_f64.powf(step as f64 / 4.0).ceil() as u64
}

impl Default for Density {
    fn default() -> Self {
        Self { sums: Mutex::new((0.0, 0.0)), bytes_per_token: AtomicU64::new(0) }
    }
}

impl Density {
    /// Tokens that so many bytes of text make, rounded up.
    pub(crate) fn tokens(&self, bytes: u64) -> u64 {
        let learned = f64::from_bits(self.bytes_per_token.load(Relaxed));
        let per_token = if learned > 0.0 { learned } else { BYTES_PER_TOKEN };
        (bytes as f64 / per_token).ceil() as u64
    }

    pub(crate) fn learn(&self, bytes: u64, tokens: u64) {
        if bytes == 0 || tokens == 0 {
            return;
        }
        // One hostile count must not outweigh all others.
        let bytes = bytes as f64;
        let tokens =
            (tokens as f64).clamp(bytes / BYTES_PER_TOKEN_MAX, bytes / BYTES_PER_TOKEN_MIN);
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.0 += bytes;
        sums.1 += tokens;
        if sums.1 > DENSITY_TOKENS {
            *sums = (sums.0 / 2.0, sums.1 / 2.0);
        }
        self.bytes_per_token.store((sums.0 / sums.1).to_bits(), Relaxed);
    }
}

impl Entry for Outputs {
    type Memory = ();

    fn at_rest(&self, moment: Moment) -> Rest<()> {
        let histogram = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if moment.now.since(histogram.touched) > IDLE { Rest::Gone } else { Rest::No }
    }

    fn recall(&self, (): ()) {}

    fn still_counts((): &mut (), _: Moment) -> bool {
        false
    }
}

impl Entry for Density {
    type Memory = ();

    fn at_rest(&self, _: Moment) -> Rest<()> {
        // As many as there are served models.
        Rest::No
    }

    fn recall(&self, (): ()) {}

    fn still_counts((): &mut (), _: Moment) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_answers_is_the_one_that_95_of_100_do_not_exceed() {
        let outputs = Outputs::default();
        assert_eq!(outputs.p95(), OUTPUT_UNKNOWN);
        for answer in 0..200 {
            outputs.learn(if answer % 25 == 0 { 4000 } else { 100 }, Timestamp(1));
        }
        let p95 = outputs.p95();
        assert!((100..120).contains(&p95), "{p95}");
        for answer in 0..2000 {
            outputs.learn(if answer % 10 == 0 { 4000 } else { 100 }, Timestamp(1));
        }
        let p95 = outputs.p95();
        assert!((4000..4800).contains(&p95), "{p95}");
    }

    #[test]
    fn hostile_lengths_are_harmless() {
        let outputs = Outputs::default();
        (0..100_000).for_each(|_| outputs.learn(u64::MAX, Timestamp(1)));
        assert_eq!(outputs.p95(), 1 << 16);
        (0..2000).for_each(|_| outputs.learn(0, Timestamp(1)));
        assert_eq!(outputs.p95(), 1);
    }

    #[test]
    fn bytes_of_a_token_are_learned_within_bounds() {
        let density = Density::default();
        assert_eq!(density.tokens(4000), 1000);
        (0..100).for_each(|_| density.learn(3000, 1000));
        assert_eq!(density.tokens(3000), 1000);
        (0..100_000).for_each(|_| density.learn(1000, u64::MAX));
        let tokens = density.tokens(1000);
        assert!((990..=1000).contains(&tokens), "{tokens}");
        (0..100_000).for_each(|_| density.learn(u64::MAX, 1));
        assert!((124..=126).contains(&density.tokens(1000)), "{}", density.tokens(1000));
    }
}

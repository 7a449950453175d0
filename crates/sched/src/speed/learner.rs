//! Takes samples in and gives the learned speed out.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use types::Timestamp;

use super::fit::Line;
use super::typical::Typical;
use super::{CONTEXT_TOKENS, Speed, step_share};

/// Work at which constant part and prefill weigh the same, tokens.
const PREFILL_SCALE: f64 = 256.0;
/// Time after which nothing that was learned counts any more, nanoseconds: ten minutes.
const FORGET_AFTER: u64 = 600_000_000_000;
/// Shortest answer whose pace says something, tokens after the first.
const OUTPUT_TOKENS_MIN: u32 = 4;
/// Share of a new answer's length in the mean.
const OUTPUT_SHARE: f32 = 1.0 / 32.0;

/// The circumstances under which a request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dispatch {
    /// Tokens of its prompt that must be computed.
    pub(crate) uncached_tokens: u32,
    /// Tokens of others that were to be computed before.
    pub(crate) tokens_ahead: f32,
    /// Answers that were being written.
    pub(crate) decoding: f32,
    /// Requests of other gateways that waited there: work that we cannot count.
    pub(crate) foreign_waiting: f32,
    /// Adapters that were being brought in for others.
    pub(crate) loads_ahead: u32,
    /// Its adapter was not resident.
    pub(crate) loads_adapter: bool,
    /// It has an adapter, and requests with adapters waited there for a slot. How long they do has
    /// nothing to do with speed.
    pub(crate) may_be_deferred: bool,
}

/// Requests' worth of waiting that a slot for an adapter may mean, where others wait for one.
const DEFERRED: f32 = 3.0;

impl Dispatch {
    /// Waits that we cannot count, in requests: others' prompts, adapters being brought in, slots.
    fn hidden(&self) -> f32 {
        let deferred = if self.may_be_deferred { DEFERRED } else { 0.0 };
        self.foreign_waiting + self.loads_ahead as f32 + deferred
    }
}

/// Learns one endpoint's speed. Samples take a small lock; reading is atomic loads.
#[derive(Debug)]
pub(crate) struct Learner {
    samples: Mutex<Samples>,
    published: Published,
}

#[derive(Debug)]
struct Samples {
    prefill: Line,
    step: Typical,
    adapter_load: Typical,
    output_tokens: f32,
    prompt_tokens: f32,
    prefill_at: Timestamp,
    step_at: Timestamp,
}

/// Bits of `f32`, each written whole. Two of them may stem from two fits; both were near the truth.
#[derive(Debug)]
struct Published {
    base_ms: AtomicU32,
    prefill_ms_per_token: AtomicU32,
    prefill_samples: AtomicU32,
    prefill_at: AtomicU64,
    step_ms: AtomicU32,
    step_samples: AtomicU32,
    step_at: AtomicU64,
    output_tokens: AtomicU32,
    prompt_tokens: AtomicU32,
    adapter_load_ms: AtomicU32,
    adapter_samples: AtomicU32,
}

impl Default for Learner {
    fn default() -> Self {
        let speed = Speed::default();
        let bits = |value: f32| AtomicU32::new(value.to_bits());
        Self {
            samples: Mutex::new(Samples {
                prefill: Line::new(PREFILL_SCALE, speed.base_ms, speed.prefill_ms_per_token),
                step: Typical::new(speed.step_ms),
                adapter_load: Typical::new(speed.adapter_load_ms),
                output_tokens: speed.output_tokens,
                prompt_tokens: speed.prompt_tokens,
                prefill_at: Timestamp::ZERO,
                step_at: Timestamp::ZERO,
            }),
            published: Published {
                base_ms: bits(speed.base_ms),
                prefill_ms_per_token: bits(speed.prefill_ms_per_token),
                prefill_samples: bits(0.0),
                prefill_at: AtomicU64::new(0),
                step_ms: bits(speed.step_ms),
                step_samples: bits(0.0),
                step_at: AtomicU64::new(0),
                output_tokens: bits(speed.output_tokens),
                prompt_tokens: bits(speed.prompt_tokens),
                adapter_load_ms: bits(speed.adapter_load_ms),
                adapter_samples: bits(0.0),
            },
        }
    }
}

impl Learner {
    /// What is known now; the sample counts shrink with the time since the last sample.
    pub(crate) fn speed(&self, now: Timestamp) -> Speed {
        let load = |cell: &AtomicU32| f32::from_bits(cell.load(Ordering::Relaxed));
        let fresh = |at: &AtomicU64| fresh(Timestamp(at.load(Ordering::Relaxed)), now);
        let published = &self.published;
        Speed {
            base_ms: load(&published.base_ms),
            prefill_ms_per_token: load(&published.prefill_ms_per_token),
            prefill_samples: load(&published.prefill_samples) * fresh(&published.prefill_at),
            step_ms: load(&published.step_ms),
            step_samples: load(&published.step_samples) * fresh(&published.step_at),
            output_tokens: load(&published.output_tokens),
            prompt_tokens: load(&published.prompt_tokens),
            adapter_load_ms: load(&published.adapter_load_ms),
            adapter_samples: load(&published.adapter_samples),
        }
    }

    /// A first token came, so long after its request was sent.
    pub(crate) fn first_token(&self, dispatch: &Dispatch, elapsed: Duration, now: Timestamp) {
        let own = dispatch.uncached_tokens as f32;
        let tokens = own + dispatch.tokens_ahead;
        let elapsed_ms = elapsed.as_secs_f32() * 1000.0;
        let speed = self.speed(now);
        let interference = speed.interference_ms(dispatch.decoding, tokens);
        if dispatch.loads_adapter {
            let alone_ms = speed.base_ms + tokens * speed.prefill_ms_per_token;
            let loads = (dispatch.loads_ahead + 1) as f32;
            self.adapter_loaded((elapsed_ms - alone_ms - interference) / loads);
        }
        if dispatch.loads_adapter {
            return;
        }
        // A request that finds the endpoint idle says most; one of many in a queue says little.
        let scale = PREFILL_SCALE as f32;
        let clean = (own + scale) / (tokens + scale);
        let credit = 1.0 / (1.0 + dispatch.hidden());
        let mut samples = self.lock();
        let kept = fresh(samples.prefill_at, now);
        samples.prefill.fade(kept);
        let alone_ms = (elapsed_ms - interference).max(0.1 * elapsed_ms);
        let weight = clean * clean * credit;
        samples.prefill.add(f64::from(tokens), f64::from(alone_ms), weight, credit);
        samples.prefill_at = samples.prefill_at.max(now);
        samples.prompt_tokens += OUTPUT_SHARE * (own - samples.prompt_tokens);
        store(&self.published.prompt_tokens, samples.prompt_tokens);
        let published = &self.published;
        store(&published.base_ms, samples.prefill.base());
        store(&published.prefill_ms_per_token, samples.prefill.slope());
        store(&published.prefill_samples, samples.prefill.samples());
        published.prefill_at.store(samples.prefill_at.as_nanos(), Ordering::Relaxed);
    }

    /// A first token came with its adapter's load in it, which took about so long.
    fn adapter_loaded(&self, load_ms: f32) {
        let mut samples = self.lock();
        samples.adapter_load.add(load_ms, 1.0);
        store(&self.published.adapter_load_ms, samples.adapter_load.value());
        store(&self.published.adapter_samples, samples.adapter_load.samples());
    }

    /// An answer ended.
    ///
    /// * `output_tokens`: with the first.
    /// * `elapsed`: since the first token.
    /// * `batch`: mean number of requests there meanwhile, itself included.
    pub(crate) fn finished(
        &self,
        output_tokens: u32,
        elapsed: Duration,
        batch: f32,
        now: Timestamp,
    ) {
        let mut samples = self.lock();
        let length = output_tokens as f32;
        samples.output_tokens += OUTPUT_SHARE * (length - samples.output_tokens);
        let gaps = output_tokens.saturating_sub(1);
        if gaps >= OUTPUT_TOKENS_MIN {
            let kept = fresh(samples.step_at, now);
            samples.step.fade(kept);
            let gap_ms = elapsed.as_secs_f32() * 1000.0 / gaps as f32;
            // A short answer's pace is that of a moment.
            let weight = (gaps as f32 / 32.0).min(1.0);
            samples.step.add(gap_ms / (1.0 + step_share(CONTEXT_TOKENS) * batch), weight);
            samples.step_at = samples.step_at.max(now);
        }
        let published = &self.published;
        store(&published.step_ms, samples.step.value());
        store(&published.step_samples, samples.step.samples());
        store(&published.output_tokens, samples.output_tokens);
        published.step_at.store(samples.step_at.as_nanos(), Ordering::Relaxed);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn store(cell: &AtomicU32, value: f32) {
    cell.store(value.to_bits(), Ordering::Relaxed);
}

/// 1.0 just after the last sample, down to 0.0 when it is forgotten.
fn fresh(at: Timestamp, now: Timestamp) -> f32 {
    let age = now.as_nanos().saturating_sub(at.as_nanos());
    1.0 - age.min(FORGET_AFTER) as f32 * (1.0 / FORGET_AFTER as f32)
}

//! How fast an endpoint is, learned from what it answered.
//!
//! Nobody configures GPU types. Three things are learned: the prefill of one token, the constant
//! part of a first token, and the step of the running batch. What queueing adds must not look like
//! slowness, so each sample is set against all the work that was ahead of it, counts the less the
//! more that was, and the fit leans to the lower edge of the samples ([`fit`]).

mod fit;
mod learner;
#[cfg(test)]
mod tests;

pub(crate) use learner::{Dispatch, Learner};

/// Prefill of one token while nobody knows better, milliseconds: between an H100 (0.024) and an
/// A10G (0.33) with an 8B model.
const PREFILL_MS_DEFAULT: f32 = 0.1;
/// Constant part of a first token, milliseconds: 15 for tokenising, scheduling and the first
/// flush, plus one step.
const BASE_MS_DEFAULT: f32 = 25.0;
/// One step of a batch of one, milliseconds.
const STEP_MS_DEFAULT: f32 = 10.0;
/// What one more request adds to a step, milliseconds: 40 µs of host work and the reading of some
/// 1,200 tokens of context.
const STEP_MS_PER_REQUEST_DEFAULT: f32 = 0.1;
/// Tokens of an answer: mean of the Azure conversation trace.
const OUTPUT_TOKENS_DEFAULT: f32 = 211.0;
/// Tokens that one step computes at most: vLLM's default for servers of 70 GiB and more.
const STEP_TOKENS_MAX: f32 = 8192.0;

/// An endpoint's learned speed, or what is assumed of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Constant part of the time to the first token, milliseconds.
    pub base_ms: f32,
    /// Milliseconds to compute one prompt token that is not cached.
    pub prefill_ms_per_token: f32,
    /// What these two rest on: samples, an old one or one from among other gateways' queues counting
    /// less. 0.0: nothing learned.
    pub prefill_samples: f32,
    /// One step of an empty batch, milliseconds.
    pub step_ms: f32,
    /// What each request in the batch adds to a step, milliseconds.
    pub step_ms_per_request: f32,
    /// What the step rests on, likewise.
    pub step_samples: f32,
    /// Mean length of an answer.
    pub output_tokens: f32,
}

impl Default for Speed {
    /// Nothing learned: a middling GPU.
    fn default() -> Self {
        Self {
            base_ms: BASE_MS_DEFAULT,
            prefill_ms_per_token: PREFILL_MS_DEFAULT,
            prefill_samples: 0.0,
            step_ms: STEP_MS_DEFAULT,
            step_ms_per_request: STEP_MS_PER_REQUEST_DEFAULT,
            step_samples: 0.0,
            output_tokens: OUTPUT_TOKENS_DEFAULT,
        }
    }
}

impl Speed {
    /// What to assume of an endpoint in this company: the mean of those that have learned, each by
    /// the trust in it.
    pub fn prior<'a>(pool: impl Iterator<Item = &'a Speed>) -> Self {
        let [mut base, mut prefill, mut step, mut per_request, mut output] = [Mean::default(); 5];
        let mut prior = Self::default();
        for speed in pool {
            let trust = speed.prefill_trust();
            if trust > 0.0 {
                prior.prefill_samples += trust;
                base.add(speed.base_ms, trust);
                prefill.add(speed.prefill_ms_per_token, trust);
            }
            let trust = speed.step_trust();
            if trust > 0.0 {
                prior.step_samples += trust;
                step.add(speed.step_ms, trust);
                per_request.add(speed.step_ms_per_request, trust);
                output.add(speed.output_tokens, trust);
            }
        }
        prior.base_ms = base.or(prior.base_ms);
        prior.prefill_ms_per_token = prefill.or(prior.prefill_ms_per_token);
        prior.step_ms = step.or(prior.step_ms);
        prior.step_ms_per_request = per_request.or(prior.step_ms_per_request);
        prior.output_tokens = output.or(prior.output_tokens);
        prior
    }

    /// This speed as far as it is to be trusted, the rest from `prior`. Keeps its own sample counts.
    #[must_use]
    pub fn with_prior(&self, prior: &Speed) -> Self {
        let (prefill, step) = (self.prefill_trust(), self.step_trust());
        let blend = |own: f32, prior: f32, trust: f32| trust * own + (1.0 - trust) * prior;
        let prefill = |own: f32, prior: f32| blend(own, prior, prefill);
        let step = |own: f32, prior: f32| blend(own, prior, step);
        Self {
            base_ms: prefill(self.base_ms, prior.base_ms),
            prefill_ms_per_token: prefill(self.prefill_ms_per_token, prior.prefill_ms_per_token),
            prefill_samples: self.prefill_samples,
            step_ms: step(self.step_ms, prior.step_ms),
            step_ms_per_request: step(self.step_ms_per_request, prior.step_ms_per_request),
            step_samples: self.step_samples,
            output_tokens: step(self.output_tokens, prior.output_tokens),
        }
    }

    /// How far to believe the prefill over a prior, `0.0..=1.0`.
    pub fn prefill_trust(&self) -> f32 {
        trust(self.prefill_samples)
    }

    /// How far to believe the step over a prior, `0.0..=1.0`.
    pub fn step_trust(&self) -> f32 {
        trust(self.step_samples)
    }

    /// One step of a batch of so many, milliseconds: the gap between two tokens of an answer.
    pub fn step_ms_at(&self, batch: f32) -> f32 {
        self.step_ms + self.step_ms_per_request * batch
    }

    /// What running answers add to the prefill of so many tokens, milliseconds. They share each of
    /// its steps, and half a step is under way when a request arrives.
    ///
    /// `(steps + ½) · max(d − tw, 0.3 · d)`, with `d` the step time and `tw` that of a batch of one.
    pub fn interference_ms(&self, decoding: f32, tokens: f32) -> f32 {
        if decoding <= 0.0 {
            return 0.0;
        }
        let steps = (tokens / STEP_TOKENS_MAX).ceil().max(1.0);
        let shared = self.step_ms_per_request * decoding;
        (steps + 0.5) * shared.max(0.3 * self.step_ms_at(decoding))
    }
}

/// 0.0 for the first sample, which may be a warm-up; 0.5 at two, 0.9 at four, then towards 1.0.
fn trust(samples: f32) -> f32 {
    let more = (samples - 1.0).clamp(0.0, 1e6);
    let squared = more * more;
    squared / (squared + 1.0)
}

/// The middle of many speeds: geometric mean of the mean of times, which the slowest rules, and of
/// the mean of speeds, which the fastest rules. So neither one broken endpoint nor one large GPU
/// speaks for the pool.
#[derive(Clone, Copy, Default)]
struct Mean {
    weight: f32,
    times: f32,
    speeds: f32,
}

impl Mean {
    fn add(&mut self, time: f32, weight: f32) {
        let time = time.max(f32::MIN_POSITIVE);
        self.weight += weight;
        self.times += weight * time;
        self.speeds += weight / time;
    }

    fn or(self, default: f32) -> f32 {
        if self.weight > 0.0 { (self.times / self.speeds).sqrt() } else { default }
    }
}

//! How fast an endpoint is, learned from what it answered.
//!
//! Nobody configures GPU types. Four things are learned: the prefill of one token, the constant
//! part of a first token, the step of the running batch, and the load of an adapter. What queueing adds must not look like
//! slowness, so each sample is set against all the work that was ahead of it, counts the less the
//! more that was, and the fit leans to the lower edge of the samples ([`fit`]). What is left of noise
//! goes when endpoints that look alike are taken to be alike ([`company`]).

mod company;
mod fit;
mod learner;
#[cfg(test)]
mod tests;
mod typical;

pub use company::Company;
pub(crate) use learner::{Dispatch, Learner};

/// Prefill of one token while nobody knows better, milliseconds: between an H100 (0.024) and an
/// A10G (0.33) with an 8B model.
const PREFILL_MS_DEFAULT: f32 = 0.1;
/// Constant part of a first token, milliseconds: 15 for tokenising, scheduling and the first
/// flush, plus one step.
const BASE_MS_DEFAULT: f32 = 25.0;
/// One step of a batch of one, milliseconds.
const STEP_MS_DEFAULT: f32 = 10.0;
/// What one more answer adds to a step as a share of the empty step: host work, and reading its
/// context. A fit to the rows of the engine table, all of which are between a half and twice this;
/// under one kind of load an endpoint shows one size of batch, so it could not be learned.
const STEP_SHARE: f32 = 0.003;
const STEP_SHARE_PER_TOKEN: f32 = 4e-6;
/// Context taken for the answers of which nothing is known, tokens.
const CONTEXT_TOKENS: f32 = 1200.0;
/// Tokens of an answer: mean of the Azure conversation trace.
const OUTPUT_TOKENS_DEFAULT: f32 = 211.0;
/// Loading an adapter that is not resident, milliseconds: 40 from host memory, 300 to 2,000 from disk.
const ADAPTER_LOAD_MS_DEFAULT: f32 = 300.0;
/// Tokens that one step computes at most: vLLM's default for servers of 70 GiB and more.
pub(crate) const STEP_TOKENS_MAX: f32 = 8192.0;

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
    /// What the step rests on, likewise.
    pub step_samples: f32,
    /// Mean length of an answer.
    pub output_tokens: f32,
    /// Mean of the prompt tokens that a request has to compute.
    pub prompt_tokens: f32,
    /// Bringing in an adapter that is not resident, milliseconds.
    pub adapter_load_ms: f32,
    /// What this rests on, likewise.
    pub adapter_samples: f32,
}

impl Default for Speed {
    /// Nothing learned: a middling GPU.
    fn default() -> Self {
        Self {
            base_ms: BASE_MS_DEFAULT,
            prefill_ms_per_token: PREFILL_MS_DEFAULT,
            prefill_samples: 0.0,
            step_ms: STEP_MS_DEFAULT,
            step_samples: 0.0,
            output_tokens: OUTPUT_TOKENS_DEFAULT,
            prompt_tokens: 500.0,
            adapter_load_ms: ADAPTER_LOAD_MS_DEFAULT,
            adapter_samples: 0.0,
        }
    }
}

impl Speed {
    /// Prompt tokens computed in a second; `None` while nothing is learned that could be believed.
    pub fn prefill_tokens_per_second(&self) -> Option<f32> {
        let is_learned = self.prefill_trust() > 0.0 && self.prefill_ms_per_token > 0.0;
        is_learned.then_some(1000.0 / self.prefill_ms_per_token)
    }

    /// Time to the first token of a prompt with so many uncached tokens on the idle endpoint, milliseconds;
    /// `None` as above. Where prompts are mostly cached this is known far better than the rate.
    pub fn idle_ttft_ms(&self, tokens: f32) -> Option<f32> {
        let is_learned = self.prefill_trust() > 0.0;
        is_learned.then_some(self.base_ms + tokens * self.prefill_ms_per_token)
    }

    /// How far to believe the prefill over a prior, `0.0..=1.0`.
    pub fn prefill_trust(&self) -> f32 {
        trust(self.prefill_samples)
    }

    /// How far to believe the step over a prior, `0.0..=1.0`.
    pub fn step_trust(&self) -> f32 {
        trust(self.step_samples)
    }

    /// How far to believe the adapter load over a prior, `0.0..=1.0`.
    pub fn adapter_trust(&self) -> f32 {
        trust(self.adapter_samples)
    }

    /// One step of a batch of so many answers, milliseconds: the gap between two tokens of one.
    pub fn step_ms_at(&self, batch: f32) -> f32 {
        self.step_ms * (1.0 + step_share(CONTEXT_TOKENS) * batch)
    }

    /// What one more answer with so much context adds to a step, milliseconds.
    pub fn step_ms_per_answer(&self, context_tokens: f32) -> f32 {
        self.step_ms * step_share(context_tokens)
    }

    /// What running answers add to the prefill of so many tokens, milliseconds. They share each of
    /// its steps, and half a step is under way when a request arrives.
    ///
    /// `(steps + ½) · max(d − tw, 0.3 · d)`, with `d` the step time and `tw` that of a batch of one.
    pub fn interference_ms(&self, decoding: f32, tokens: f32) -> f32 {
        if decoding <= 0.0 {
            return 0.0;
        }
        // Counted in whole steps, the last one begun as well; without a call of the C library.
        let steps = 1.0 + (tokens * (1.0 / STEP_TOKENS_MAX)) as u32 as f32;
        let step = self.step_ms_at(decoding);
        (steps + 0.5) * (step - self.step_ms).max(0.3 * step)
    }
}

fn step_share(context_tokens: f32) -> f32 {
    STEP_SHARE + STEP_SHARE_PER_TOKEN * context_tokens
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

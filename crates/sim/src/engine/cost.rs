//! How long one engine step takes.

/// Constants of one model on one node. With `n` tokens scheduled in a step, prefill chunks `c`
/// on top of `x` computed tokens, and `d` decodes with contexts `y`:
///
/// ```text
/// T = t0 + sqrt(tw² + (tc·n)²) + a·Σ c·(x + c/2) + k·Σ y + s·d
/// ```
///
/// The root is a smooth maximum of two rooflines: reading the weights, and computing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepCosts {
    /// `t0`: host and launch overhead of a step, milliseconds.
    pub overhead_ms: f64,
    /// `tw`: reading the weights once, milliseconds.
    pub weights_ms: f64,
    /// `tc`: dense compute and all-reduce of one token, microseconds.
    pub token_us: f64,
    /// `a`: prefill attention of one token pair, nanoseconds.
    pub prefill_pair_ns: f64,
    /// `k`: reading one context token's KV while decoding, nanoseconds.
    pub context_token_ns: f64,
    /// `s`: host work of one decoding sequence, microseconds.
    pub sequence_us: f64,
    /// Mixture of experts, 8 of 128 active: only the experts that the step's tokens touch are read.
    pub experts: bool,
}

/// What one step computes, summed over its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepWork {
    /// Prompt and output tokens computed in this step.
    pub tokens: u32,
    /// Requests that decode.
    pub decodes: u32,
    /// `Σ c·(x + c/2)` over the prefill chunks.
    pub prefill_pairs: f64,
    /// `Σ y` over the decodes.
    pub decode_context: f64,
    /// Distinct LoRA adapters in the step.
    pub adapters: u32,
}

impl StepWork {
    /// Adds a prompt chunk of `chunk` tokens on top of `computed` tokens.
    pub fn prefill(&mut self, chunk: u32, computed: u32) {
        self.tokens += chunk;
        self.prefill_pairs += f64::from(chunk) * (f64::from(computed) + f64::from(chunk) / 2.0);
    }

    /// Adds one decode of a request whose KV holds `context` tokens.
    pub fn decode(&mut self, context: u32) {
        self.tokens += 1;
        self.decodes += 1;
        self.decode_context += f64::from(context);
    }
}

/// What steps of one batch cost, before their contexts are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchCost {
    fixed_ms: f64,
    context_token_ms: f64,
    factor: f64,
}

impl BatchCost {
    /// Milliseconds of the step whose decodes have contexts of `decode_context` tokens in all.
    pub fn step_ms(&self, decode_context: f64) -> f64 {
        (self.fixed_ms + self.context_token_ms * decode_context) * self.factor
    }
}

impl StepCosts {
    /// Milliseconds that a step takes; `adapter_factor` is the slow-down by each distinct adapter.
    pub fn step_ms(&self, work: &StepWork, adapter_factor: f64) -> f64 {
        self.batch_ms(work, adapter_factor).step_ms(work.decode_context)
    }

    /// The part of [`StepCosts::step_ms`] that does not depend on the length of the contexts, for
    /// steps that decode the same batch again and again. Gives the very same numbers.
    pub fn batch_ms(&self, work: &StepWork, adapter_factor: f64) -> BatchCost {
        let tokens = f64::from(work.tokens);
        let touched = if self.experts {
            0.034 + 0.966 * (1.0 - (1.0 - 8.0 / 128.0_f64).powf(tokens))
        } else {
            1.0
        };
        let (weights, compute) = (self.weights_ms * touched, self.token_us * 1e-3 * tokens);
        let dense = (weights * weights + compute * compute).sqrt();
        BatchCost {
            fixed_ms: self.overhead_ms
                + dense
                + self.prefill_pair_ns * 1e-6 * work.prefill_pairs
                + self.sequence_us * 1e-3 * f64::from(work.decodes),
            context_token_ms: self.context_token_ns * 1e-6,
            factor: 1.0 + adapter_factor * f64::from(work.adapters),
        }
    }

    /// The same engine, `factor` times slower in every part.
    pub const fn slower(self, factor: f64) -> Self {
        Self {
            overhead_ms: self.overhead_ms * factor,
            weights_ms: self.weights_ms * factor,
            token_us: self.token_us * factor,
            prefill_pair_ns: self.prefill_pair_ns * factor,
            context_token_ns: self.context_token_ns * factor,
            sequence_us: self.sequence_us * factor,
            experts: self.experts,
        }
    }
}

//! What a request would cost on each endpoint, in milliseconds.
//!
//! Everything that speaks for or against an endpoint is turned into time by that endpoint's own
//! learned speed, so an H100 with nine requests and an A10G with one can be compared.

#[cfg(test)]
mod tests;

use crate::speed::STEP_TOKENS_MAX;
use crate::{Candidate, LoraFit, RequestView, Speed};

/// Share of KV memory from which on requests begin to wait for blocks.
const MEMORY_LIMIT: f32 = 0.9;
/// How much more each token ahead counts on an endpoint of which nothing is known: it gets a
/// first request at the pool's price, and more once it has answered.
const COLD_AHEAD: f32 = 3.0;

/// Prices that are not learned. Found by sweeps of the routing laboratory over all of its scenarios
/// (docs/benchmarks.md); none changes an outcome by more than a few per cent when halved or doubled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Share of the work ahead charged once more. Default 1.
    ///
    /// Where a queue stands, this request also delays those who come after it. The shortest
    /// expected delay alone is selfish: it overloads the fast endpoints of a mixed pool and lets
    /// requests meet on the holder of a prefix.
    pub ahead: f32,
    /// Share of a long prompt's prefill charged for each request that waits, and half of it for
    /// each answer being written. Default 0.7.
    ///
    /// A prompt that shares a step with others costs them that step once. One that fills step after
    /// step stands in the way of all who come meanwhile, and they come in proportion to those who
    /// are there. So the share grows with the part of a step that the prompt fills (a half at
    /// [`STEP_TOKENS_MAX`]): long prompts go where few are, short ones avoid to wait behind them.
    ///
    /// [`STEP_TOKENS_MAX`]: crate::speed::STEP_TOKENS_MAX
    pub inflicted: f32,
    /// Adapter loads charged for each load and each request that waits, and half of it for each answer
    /// being written. Default 8: a load holds up all who are there, and the adapter that it pushes out
    /// will have to come back.
    pub load: f32,
    /// Share charged of the time by which one more answer slows down all others. Default 0.015.
    pub decode: f32,
    /// Mean answers' durations waited for blocks, for each whole memory over the limit. Default 1.5.
    pub memory: f32,
}

impl Default for Prices {
    fn default() -> Self {
        Self { ahead: 1.0, inflicted: 0.7, load: 8.0, decode: 0.015, memory: 1.5 }
    }
}

/// One request before its candidates, whose speeds are settled: [`Profile::pick`] leaves them so.
///
/// [`Profile::pick`]: crate::Profile::pick
#[derive(Clone, Copy, Debug)]
pub struct Forecast<'a> {
    prices: Prices,
    request: &'a RequestView<'a>,
}

impl<'a> Forecast<'a> {
    pub fn new(prices: Prices, request: &'a RequestView<'a>) -> Self {
        Self { prices, request }
    }

    /// Expected time from now to the first token, milliseconds: constant part, work ahead and own
    /// prefill, steps shared with running answers, adapter load, wait for memory, and for whatever
    /// else holds the endpoint up.
    ///
    /// Above 0, finite.
    pub fn ttft_ms(&self, candidate: &Candidate) -> f32 {
        positive(self.terms(candidate).ttft_ms)
    }

    /// What to minimise, milliseconds: the expected time to the first token and a part of the delay
    /// inflicted on others, those present and those to come. Above 0, finite.
    pub fn cost_ms(&self, candidate: &Candidate) -> f32 {
        let (speed, prices) = (&candidate.speed, &self.prices);
        let Terms { own, ahead_ms, own_ms, adapter_ms, ttft_ms } = self.terms(candidate);
        let waiting = candidate.prefilling as f32 + candidate.foreign_waiting;
        // Who writes an answer is only slowed down; who waits, waits for all of it.
        let crowd = waiting + 0.5 * candidate.decoding;
        let stall_ms = own_ms * own / (own + STEP_TOKENS_MAX);

        let context = self.request.prompt_tokens as f32 + 0.5 * speed.output_tokens;
        let answers = waiting + candidate.decoding + 1.0;
        let slow_down_ms = speed.step_ms_per_answer(context) * speed.output_tokens * answers;

        positive(
            ttft_ms
                + self.eviction_ms(candidate)
                + prices.ahead * ahead_ms
                + prices.inflicted * crowd * stall_ms
                + prices.load * crowd * adapter_ms
                + prices.decode * slow_down_ms,
        )
    }

    fn terms(&self, candidate: &Candidate) -> Terms {
        let speed = &candidate.speed;
        let own = self.request.uncached_tokens(candidate);
        let ahead = self.tokens_ahead(candidate);
        let own_ms = own * speed.prefill_ms_per_token;
        let ahead_ms = ahead * speed.prefill_ms_per_token;
        let adapter_ms = self.adapter_ms(candidate);
        let ttft_ms = speed.base_ms
            + ahead_ms
            + own_ms
            + speed.interference_ms(candidate.decoding, ahead + own)
            // Who is before this one waits as long as the first has so far, one after the other.
            + candidate.stuck_ms * candidate.prefilling as f32
            // Loads are one at a time, and everyone there waits for them.
            + candidate.loading as f32 * speed.adapter_load_ms
            + adapter_ms
            + self.memory_ms(candidate, speed);
        Terms { own, ahead_ms, own_ms, adapter_ms, ttft_ms }
    }

    /// What is to be computed before, others' too: nobody tells what waits there for them, so this
    /// request stands for it.
    fn tokens_ahead(&self, candidate: &Candidate) -> f32 {
        let foreign = candidate.foreign_waiting * self.request.prompt_tokens as f32;
        let ahead = candidate.tokens_ahead + foreign;
        if ahead <= 0.0 {
            return 0.0;
        }
        let stranger = 1.0 - candidate.speed.prefill_trust();
        ahead * (1.0 + COLD_AHEAD * stranger)
    }

    /// Bringing in this request's adapter. Half of it where the engine does not say what it has.
    fn adapter_ms(&self, candidate: &Candidate) -> f32 {
        let own = match candidate.lora {
            _ if self.request.adapter.is_none() => 0.0,
            LoraFit::Resident => 0.0,
            LoraFit::Unknown => 0.5,
            LoraFit::Room | LoraFit::Waiting | LoraFit::Full => 1.0,
            LoraFit::NotServed => 100.0,
        };
        own * candidate.speed.adapter_load_ms
    }

    /// A load that pushes out an adapter will be followed by another, when someone wants that back.
    fn eviction_ms(&self, candidate: &Candidate) -> f32 {
        let is_full = matches!(candidate.lora, LoraFit::Waiting | LoraFit::Full);
        let pushes_out = is_full && self.request.adapter.is_some();
        if pushes_out { candidate.speed.adapter_load_ms } else { 0.0 }
    }

    /// Expected wait for blocks: what does not fit must wait until running answers end.
    fn memory_ms(&self, candidate: &Candidate, speed: &Speed) -> f32 {
        let Some(used) = candidate.scraped.kv_usage else { return 0.0 };
        let coming =
            candidate.tokens_ahead + self.request.prompt_tokens as f32 + 0.5 * speed.output_tokens;
        let share = used + candidate.kv_tokens_max.map_or(0.0, |most| coming / most);
        if share <= MEMORY_LIMIT {
            return 0.0;
        }
        let excess = (share - MEMORY_LIMIT) * candidate.freshness;
        let answer_ms = speed.step_ms_at(candidate.decoding) * speed.output_tokens;
        self.prices.memory * excess * answer_ms
    }
}

/// What both the time and the cost are made of.
struct Terms {
    /// Prompt tokens to be computed for this request.
    own: f32,
    ahead_ms: f32,
    own_ms: f32,
    adapter_ms: f32,
    ttft_ms: f32,
}

/// A time that can be divided by; what is not a number is the worst.
fn positive(ms: f32) -> f32 {
    if ms.is_nan() { f32::MAX } else { ms.clamp(1e-3, f32::MAX) }
}

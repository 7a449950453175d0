//! What a request would cost on each endpoint, in milliseconds.
//!
//! Everything that speaks for or against an endpoint is turned into time by that endpoint's own
//! learned speed, so an H100 with nine requests and an A10G with one can be compared.

#[cfg(test)]
mod tests;

use crate::{Candidate, LoraFit, RequestView, Speed};

/// Share of KV memory from which on requests begin to wait for blocks.
const MEMORY_LIMIT: f32 = 0.9;
/// How much more each token ahead counts on an endpoint of which nothing is known: it gets a
/// first request at the pool's price, and more once it has answered.
const COLD_AHEAD: f32 = 3.0;

/// Prices that are not learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Share of the work ahead charged a second time. Default 0.5.
    ///
    /// Where a queue stands, this request also delays those who come after it. The shortest
    /// expected delay alone is selfish and overloads the fast endpoints of a mixed pool: with 0.5
    /// the mean wait of a simulated one at load 0.85 is a tenth shorter, P95 and P99 likewise, and
    /// speeds that are wrong hurt less. Equal endpoints do not notice.
    pub ahead: f32,
    /// Share of a request's prefill time charged for each request that it delays. Default 0.04: a
    /// pilot found 0.03 to 0.05 never worse than none, better in bursts and overload.
    pub inflicted: f32,
    /// Share charged of the time by which one more answer slows down all others. Default 0.04.
    pub decode: f32,
    /// Mean answers' durations waited for blocks, for each whole memory over the limit. Default 1.5.
    pub memory: f32,
    /// Loading an adapter that is not resident, milliseconds. Default 300: 40 from host memory,
    /// from disk up to 2,000.
    pub adapter_load_ms: f32,
}

impl Default for Prices {
    fn default() -> Self {
        Self { ahead: 0.5, inflicted: 0.04, decode: 0.04, memory: 1.5, adapter_load_ms: 300.0 }
    }
}

/// One request before its candidates.
#[derive(Clone, Copy, Debug)]
pub struct Forecast<'a> {
    prices: Prices,
    request: &'a RequestView<'a>,
    /// What is assumed of an endpoint that has not been learned yet.
    prior: Speed,
}

impl<'a> Forecast<'a> {
    /// * `candidates`: those who may get the request; their speeds are the prior of strangers.
    pub fn new(prices: Prices, request: &'a RequestView<'a>, candidates: &[Candidate]) -> Self {
        let prior = Speed::prior(candidates.iter().map(|candidate| &candidate.speed));
        Self { prices, request, prior }
    }

    /// Expected time from now to the first token, milliseconds: constant part, work ahead and own
    /// prefill, steps shared with running answers, adapter load, wait for memory.
    ///
    /// Above 0, finite.
    pub fn ttft_ms(&self, candidate: &Candidate) -> f32 {
        let speed = candidate.speed.with_prior(&self.prior);
        positive(self.ttft(candidate, &speed))
    }

    /// What to minimise, milliseconds: the expected time to the first token and a part of the delay
    /// inflicted on others, those present and those to come. Above 0, finite.
    pub fn cost_ms(&self, candidate: &Candidate) -> f32 {
        let speed = candidate.speed.with_prior(&self.prior);
        let present = candidate.in_flight as f32
            + candidate.foreign_waiting
            + (candidate.decoding - own_decoding(candidate)).max(0.0);
        let own_ms = self.request.uncached_tokens(candidate) * speed.prefill_ms_per_token;
        let ahead_ms = candidate.tokens_ahead * speed.prefill_ms_per_token;
        let stall_ms = own_ms + self.adapter_ms(candidate);
        let inflicted = self.prices.ahead * ahead_ms + self.prices.inflicted * present * stall_ms;
        let slow_down = speed.step_ms_per_request * speed.output_tokens * (present + 1.0);
        positive(self.ttft(candidate, &speed) + inflicted + self.prices.decode * slow_down)
    }

    fn ttft(&self, candidate: &Candidate, speed: &Speed) -> f32 {
        let own = self.request.uncached_tokens(candidate);
        // Nobody tells what waits there for others; this request stands for it.
        let foreign = candidate.foreign_waiting * self.request.prompt_tokens as f32;
        let stranger = 1.0 - candidate.speed.prefill_trust();
        let ahead = (candidate.tokens_ahead + foreign) * (1.0 + COLD_AHEAD * stranger);
        let tokens = ahead + own;
        speed.base_ms
            + tokens * speed.prefill_ms_per_token
            + speed.interference_ms(candidate.decoding, tokens)
            + self.adapter_ms(candidate)
            + self.memory_ms(candidate, speed)
    }

    /// Loads are one at a time, so one that waits for others takes twice as long; so does one that
    /// pushes out an adapter which someone will want back. Half of it where the engine does not say.
    fn adapter_ms(&self, candidate: &Candidate) -> f32 {
        if self.request.adapter.is_none() {
            return 0.0;
        }
        let loads = match candidate.lora {
            LoraFit::Resident => 0.0,
            LoraFit::Unknown => 0.5,
            LoraFit::Room => 1.0,
            LoraFit::Waiting | LoraFit::Full => 2.0,
            LoraFit::NotServed => 100.0,
        };
        loads * self.prices.adapter_load_ms
    }

    /// Expected wait for blocks: what does not fit must wait until running answers end.
    fn memory_ms(&self, candidate: &Candidate, speed: &Speed) -> f32 {
        let Some(used) = candidate.scraped.kv_usage else { return 0.0 };
        let coming =
            candidate.tokens_ahead + self.request.prompt_tokens as f32 + 0.5 * speed.output_tokens;
        let share = used + candidate.kv_tokens_max.map_or(0.0, |most| coming / most);
        let excess = (share - MEMORY_LIMIT).max(0.0) * candidate.freshness;
        let answer_ms = speed.step_ms_at(candidate.decoding) * speed.output_tokens;
        self.prices.memory * excess * answer_ms
    }
}

/// Answers that this gateway has running there.
fn own_decoding(candidate: &Candidate) -> f32 {
    candidate.in_flight.saturating_sub(candidate.prefilling) as f32
}

/// A time that can be divided by; what is not a number is the worst.
fn positive(ms: f32) -> f32 {
    if ms.is_nan() { f32::MAX } else { ms.clamp(1e-3, f32::MAX) }
}

//! What an engine can do at most: the fluid bound that load factors are given in.
//!
//! An engine that decodes `B` requests at once must, to keep going, take up `B / O` new ones in
//! each step and so read `B · U / O` prompt tokens. Its rate is then
//!
//! ```text
//! λ(B) = B / (O · T),   B ≤ min(sequences, (KV − shared) / own)
//! ```
//!
//! with `T` the time of such a step, and the capacity is the largest of them. Real queues, whose
//! requests differ, reach 85 to 95 % of it.

use sim::engine::EngineSpec;

/// The average request, tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mix {
    /// `I`: the prompt.
    pub(super) prompt: f64,
    /// `U`: its part that no cache holds.
    pub(super) uncached: f64,
    /// `O`: the answer.
    pub(super) output: f64,
    /// KV that a running request shares with no other: its prompt without the common beginning,
    /// and half of its answer.
    pub(super) own: f64,
    /// KV of all common beginnings together.
    pub(super) shared: f64,
}

/// Most requests per second. 0 where not one fits.
pub(super) fn capacity(engine: &EngineSpec, mix: &Mix) -> f64 {
    let kv = f64::from(engine.block_count) * f64::from(engine.block_size);
    let fit = ((kv - mix.shared) / mix.own).floor().min(f64::from(engine.sequences_max));
    let mut best = 0.0_f64;
    let mut running = 1.0;
    while running <= fit {
        let tokens = running * (1.0 + mix.uncached / mix.output);
        if tokens > f64::from(engine.batched_tokens_max) {
            break;
        }
        best = best.max(running * 1e3 / (mix.output * step_ms(engine, mix, running)));
        running += 1.0;
    }
    best
}

/// The step formula for fractions of requests, which `StepCosts::step_ms` has no place for.
fn step_ms(engine: &EngineSpec, mix: &Mix, running: f64) -> f64 {
    let costs = &engine.costs;
    let begun = running / mix.output;
    let tokens = running + begun * mix.uncached;
    let pairs = begun * mix.uncached * (mix.prompt - mix.uncached / 2.0);
    let context = running * (mix.prompt + mix.output / 2.0);
    costs.overhead_ms
        + costs.weights_ms.hypot(costs.token_us * 1e-3 * tokens)
        + costs.prefill_pair_ns * 1e-6 * pairs
        + costs.context_token_ns * 1e-6 * context
        + costs.sequence_us * 1e-3 * running
}

#[cfg(test)]
mod tests {
    use sim::engine::{Hardware, StepWork};
    use types::EngineKind;

    use super::*;

    fn engine(row: &str) -> EngineSpec {
        EngineSpec::new(EngineKind::Vllm, Hardware::find(row).unwrap(), 0, 0)
    }

    fn alone(prompt: f64, uncached: f64, output: f64) -> Mix {
        Mix { prompt, uncached, output, own: prompt + output / 2.0, shared: 0.0 }
    }

    #[test]
    fn capacity_is_that_of_the_published_table() {
        for (row, mix, expected) in [
            ("llama-3.1-8b/h100", alone(1155.0, 1155.0, 211.0), 18.6),
            ("llama-3.1-8b/a10g", alone(1155.0, 1155.0, 211.0), 1.58),
            ("llama-3.1-8b/h100", alone(2048.0, 2048.0, 28.0), 18.1),
            ("llama-3.1-8b/a10g", alone(2048.0, 2048.0, 28.0), 1.35),
            ("llama-3.1-8b/h100", alone(2500.0, 350.0, 250.0), 17.4),
            ("llama-3.1-8b/a10g", alone(2500.0, 350.0, 250.0), 1.06),
        ] {
            let found = capacity(&engine(row), &mix);
            assert!((found / expected - 1.0).abs() < 0.03, "{row}: {found}, table {expected}");
        }
    }

    #[test]
    fn a_step_takes_what_the_simulated_engine_takes() {
        let engine = engine("llama-3.1-8b/a10g");
        let mix = alone(1000.0, 400.0, 100.0);
        let mut work = StepWork::default();
        work.prefill(400, 600);
        (0..100).for_each(|_| work.decode(1050));
        let simulated = engine.costs.step_ms(&work, 0.0);
        assert!((step_ms(&engine, &mix, 100.0) / simulated - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_engine_that_holds_no_request_has_no_capacity() {
        assert_eq!(capacity(&engine("llama-3.1-8b/a10g"), &alone(40_000.0, 1.0, 10.0)), 0.0);
    }
}

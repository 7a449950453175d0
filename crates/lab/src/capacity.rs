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

use sim::engine::{EngineSpec, StepWork};

/// The average request, tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// `I`: the prompt.
    pub prompt: f64,
    /// `U`: its part that no cache holds.
    pub uncached: f64,
    /// `O`: the answer.
    pub output: f64,
    /// Token pairs that the prompt's attention computes: `U · (I − U / 2)`. Long prompts weigh more
    /// than their number, so the mean of this is more than this of the means.
    pub pairs: f64,
    /// KV that a running request shares with no other: its prompt without the common beginning,
    /// and half of its answer.
    pub own: f64,
    /// KV of all common beginnings together.
    pub shared: f64,
}

/// Most requests per second. 0 where not one fits.
pub fn capacity(engine: &EngineSpec, mix: &Mix) -> f64 {
    capacity_with_adapters(engine, mix, 0)
}

/// The same where requests name one of so many LoRA adapters: those in a step slow it down. Loading
/// them is not counted.
pub(crate) fn capacity_with_adapters(engine: &EngineSpec, mix: &Mix, adapters: u32) -> f64 {
    let kv = f64::from(engine.block_count) * f64::from(engine.block_size);
    let fit = ((kv - mix.shared) / mix.own).floor().min(f64::from(engine.sequences_max));
    let mut best = 0.0_f64;
    let mut running = 1.0;
    while running <= fit {
        let tokens = running * (1.0 + mix.uncached / mix.output);
        if tokens > f64::from(engine.batched_tokens_max) {
            break;
        }
        best = best.max(running * 1e3 / (mix.output * step_ms(engine, mix, running, adapters)));
        running += 1.0;
    }
    best
}

/// A step in the middle of such a run.
fn step_ms(engine: &EngineSpec, mix: &Mix, running: f64, adapters: u32) -> f64 {
    let begun = running / mix.output;
    let work = StepWork {
        tokens: (running + begun * mix.uncached).round() as u32,
        decodes: running as u32,
        prefill_pairs: begun * mix.pairs,
        decode_context: running * (mix.prompt + mix.output / 2.0),
        adapters: adapters.min(engine.lora.gpu_slots).min(running as u32),
    };
    engine.costs.step_ms(&work, engine.lora.step_factor)
}

#[cfg(test)]
mod tests {
    use sim::engine::Hardware;
    use types::EngineKind;

    use super::*;

    fn engine(row: &str) -> EngineSpec {
        EngineSpec::new(EngineKind::Vllm, Hardware::find(row).unwrap(), 0, 0)
    }

    fn alone(prompt: f64, uncached: f64, output: f64) -> Mix {
        let pairs = uncached * (prompt - uncached / 2.0);
        Mix { prompt, uncached, output, pairs, own: prompt + output / 2.0, shared: 0.0 }
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
    fn an_engine_that_holds_no_request_has_no_capacity() {
        assert_eq!(capacity(&engine("llama-3.1-8b/a10g"), &alone(40_000.0, 1.0, 10.0)), 0.0);
    }
}

//! Step times that can be checked by hand. Those of whole tables of measurements:
//! `tests/calibration`.

use types::{EngineKind, Timestamp};

use super::{finished, request};
use crate::engine::{Engine, EngineSpec, Event, Hardware, StepWork, TABLE};

#[test]
fn an_a10g_is_fourteen_times_slower_in_prefill_and_four_to_six_in_decode() {
    let row = |name| Hardware::find(name).unwrap();
    let (h100, a10g) = (row("llama-3.1-8b/h100"), row("llama-3.1-8b/a10g"));
    let ratio = |work: &StepWork| a10g.costs.step_ms(work, 0.0) / h100.costs.step_ms(work, 0.0);
    let mut prefill = StepWork::default();
    prefill.prefill(2048, 0);
    let mut decode = StepWork::default();
    for _ in 0..16 {
        decode.decode(1000);
    }
    assert!((13.0..15.0).contains(&ratio(&prefill)), "{}", ratio(&prefill));
    assert!((4.0..6.0).contains(&ratio(&decode)), "{}", ratio(&decode));
}

#[test]
fn an_unloaded_first_token_takes_the_api_delay_and_one_step() {
    let hardware = Hardware::find("llama-3.1-8b/h100").unwrap();
    let mut engine = Engine::new(EngineSpec::new(EngineKind::Vllm, hardware, 0, 0), 0);
    engine.submit(request(1, 1, 1024, 2)).unwrap();
    let (events, _) = super::run(&mut engine, Timestamp::ZERO);
    let (_, times) = finished(&events)[0];
    let ttft = times.first_token.since(times.arrived).as_secs_f64() * 1e3;
    // 15 + 1.2 + sqrt(6.8² + 24.576²) + 0.77e-6 · 1024² / 2
    assert!((ttft - 42.10).abs() < 0.01, "{ttft}");
    assert!(events.iter().any(|event| matches!(event, Event::Token { .. })));
}

#[test]
fn a_mixture_of_experts_reads_few_weights_for_few_tokens() {
    let costs = Hardware::find("qwen3-235b-a22b-fp8/8xh100-trtllm").unwrap().costs;
    let step = |decodes: u32| {
        let mut work = StepWork::default();
        (0..decodes).for_each(|_| work.decode(0));
        costs.step_ms(&work, 0.0) - costs.sequence_us * 1e-3 * f64::from(decodes)
    };
    assert!((step(1) - (9.32 + 6.26 * (0.034 + 0.966 / 16.0))).abs() < 0.01);
    assert!(step(256) > 9.32 + 6.26);
}

#[test]
fn every_row_has_a_unique_name_memory_and_a_source() {
    for (at, row) in TABLE.iter().enumerate() {
        assert!(TABLE[..at].iter().all(|other| other.name != row.name), "{} twice", row.name);
        assert!(row.kv_tokens >= row.sequences_max && row.kv_bytes_per_token > 0, "{}", row.name);
        assert!(!row.source.is_empty() && !row.error.is_empty() && !row.model.is_empty());
        let spec = EngineSpec::new(EngineKind::Vllm, row, 4, 8);
        assert!(spec.block_count > 1000, "{}", row.name);
        assert!(spec.context_tokens_max() >= 16_000, "{}", row.name);
    }
}

//! Engines of learned speed behave as the speed says.

use sched::Speed;
use types::Timestamp;

use super::{LearnedEngine, Replay, policy_of};
use crate::policy::Policy;
use crate::prompt::Segment;
use crate::workload::Request;

const SPEED: Speed = Speed {
    base_ms: 30.0,
    prefill_ms_per_token: 0.05,
    prefill_samples: 100.0,
    step_ms: 10.0,
    step_samples: 100.0,
    output_tokens: 100.0,
    prompt_tokens: 500.0,
    adapter_load_ms: 300.0,
    adapter_samples: 0.0,
};

fn engine(speed: Speed) -> LearnedEngine {
    LearnedEngine { speed, block_size_tokens: Some(16), block_count: Some(4000), running_max: None }
}

fn request(at: u64, content: u64, prompt: u32, answer: u32) -> Request {
    Request {
        at: Timestamp::from_millis(at),
        prompt: Box::new([Segment { content, tokens: prompt }]),
        answer: Segment { content: content + 1000, tokens: answer },
        adapter: None,
    }
}

fn ttft_ms(requests: Vec<Request>, at: usize) -> f64 {
    let run = Replay::new(&[engine(SPEED)], requests).run(Policy::RoundRobin, 1);
    run.records[at].ttft().unwrap().as_secs_f64() * 1e3
}

#[test]
fn a_first_token_takes_the_base_and_the_prefill_of_what_is_not_cached() {
    // 0.5 ms of network beside 30 and 2,000 times 0.05.
    let cold = ttft_ms(vec![request(0, 1, 2000, 1)], 0);
    assert!((cold - 130.5).abs() < 1.0, "{cold}");
    let warm = ttft_ms(vec![request(0, 1, 2000, 1), request(5000, 1, 2000, 1)], 1);
    assert!((warm - 31.3).abs() < 1.0, "{warm}");
}

#[test]
fn a_token_after_the_first_takes_a_step_of_its_batch() {
    let requests = vec![request(0, 1, 16, 101)];
    let run = Replay::new(&[engine(SPEED)], requests).run(Policy::RoundRobin, 1);
    let record = &run.records[0];
    let rest = record.finished.unwrap().since(record.first_token.unwrap()).as_secs_f64() * 1e3;
    assert!((rest - 100.0 * 10.078).abs() < 1.0, "{rest}");
}

#[test]
fn speeds_beyond_reason_still_make_an_engine() {
    for ms in [f32::NAN, f32::INFINITY, -5.0, 0.0] {
        let speed = Speed { base_ms: ms, prefill_ms_per_token: ms, step_ms: ms, ..SPEED };
        let odd = LearnedEngine { block_count: Some(u64::MAX), ..engine(speed) };
        let run = Replay::new(&[odd], vec![request(0, 1, 100, 3)]).run(Policy::LeastRequest, 1);
        assert!(run.records[0].finished.is_some(), "{ms}");
    }
}

#[test]
fn a_recorded_profile_is_found_by_what_it_weighs_and_by_its_name() {
    let owned = |scorers: &[(&str, f32)]| -> Vec<(String, f32)> {
        scorers.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect()
    };
    assert_eq!(policy_of("least-request", &[]), Some(Policy::LeastRequest));
    assert_eq!(policy_of("round-robin", &[]), Some(Policy::RoundRobin));
    let alone = policy_of("weighted", &owned(&[("expected-time", 1.0), ("lora-affinity", 2.0)]));
    assert_eq!(alone, Some(Policy::Wicketgate));
    assert_eq!(policy_of("weighted", &owned(&[("queue", 7.0)])), None);
    assert_eq!(policy_of("unheard-of", &[]), None);
}

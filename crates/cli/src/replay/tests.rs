//! Round trips: a simulated gateway's traffic, written down as a recording, and played again.

use std::time::Duration;

use lab::{LearnedEngine, Policy, Replay, Request, Segment};
use telemetry::recording::{
    EndpointState, Header, PoolState, Request as Recorded, Speed, State, VERSION,
};
use types::Timestamp;

use super::outcome::Outcome;
use super::read::Recording;
use super::traffic::{Traffic, TrafficError};

const SPEEDS: [Speed; 2] = [speed(0.03, 8.0), speed(0.3, 35.0)];

const fn speed(prefill_ms_per_token: f32, step_ms: f32) -> Speed {
    Speed {
        base_ms: 15.0 + step_ms,
        prefill_ms_per_token,
        prefill_samples: 500.0,
        step_ms,
        step_samples: 500.0,
        output_tokens: 40.0,
    }
}

fn engines() -> Vec<LearnedEngine> {
    let engine = |speed: &Speed| LearnedEngine {
        speed: lab::Speed {
            base_ms: speed.base_ms,
            prefill_ms_per_token: speed.prefill_ms_per_token,
            prefill_samples: speed.prefill_samples,
            step_ms: speed.step_ms,
            step_samples: speed.step_samples,
            output_tokens: speed.output_tokens,
            ..lab::Speed::default()
        },
        block_size_tokens: Some(16),
        block_count: Some(8000),
        running_max: Some(256),
    };
    SPEEDS.iter().map(engine).collect()
}

/// 600 requests in a minute: ten groups share four blocks, 20 tokens fill no block.
fn recorded() -> Vec<Recorded> {
    let one = |at: u64| Recorded {
        at_us: at * 100_000 + (at * at * 7919) % 90_000,
        pool: "llama".to_owned(),
        route: "chat_completions".to_owned(),
        stream: true,
        prompt_tokens: 10 * 64 + 20,
        blocks: vec![(at % 10 * 4, 4), (1000 + at * 6, 6)],
        output_tokens: Some(20 + at % 40),
        endpoint: Some(0),
        attempts: 1,
        status: 200,
        outcome: "ok".to_owned(),
        ..Recorded::default()
    };
    (0..600).map(one).collect()
}

fn recording(requests: Vec<Recorded>, policy: &str) -> Recording {
    let endpoint = |(id, speed): (u32, &Speed)| EndpointState {
        id,
        name: format!("gpu-{id}:8000"),
        engine: "vllm".to_owned(),
        state: "ready".to_owned(),
        block_size_tokens: Some(16),
        block_count: Some(8000),
        running_max: Some(256),
        speed: *speed,
        ..EndpointState::default()
    };
    let pool = PoolState {
        name: "llama".to_owned(),
        policy: policy.to_owned(),
        endpoints: (0..).zip(&SPEEDS).map(endpoint).collect(),
        ..PoolState::default()
    };
    Recording {
        header: Header {
            version: VERSION,
            recording: "a1".to_owned(),
            part: 0,
            started: "2026-11-29T12:00:00Z".to_owned(),
            block_tokens: 64,
            software: "wicketgate".to_owned(),
        },
        states: vec![State { pools: vec![pool], ..State::default() }],
        requests,
        notes: Vec::new(),
    }
}

/// The same traffic as a gateway with round robin would have recorded it, `slower` times as slow.
fn as_recorded(slower: f64) -> Recording {
    let traffic = Traffic::of(&recording(recorded(), "round-robin"), None).unwrap();
    let run = Replay::new(&engines(), traffic.requests).run(Policy::RoundRobin, 9);
    let mut requests = recorded();
    requests.sort_by_key(|request| request.at_us);
    for (request, record) in requests.iter_mut().zip(&run.records) {
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3 * slower);
        request.ttft_ms = ms(record.ttft());
        request.duration_ms = ms(record.e2e()).unwrap();
    }
    recording(requests, "round-robin")
}

fn outcome(recording: &Recording, tried: Policy) -> Outcome {
    let traffic = Traffic::of(recording, None).unwrap();
    let replay = Replay::new(&traffic.engines, traffic.requests.clone());
    let base = [replay.run(Policy::RoundRobin, 1)];
    let tried_runs = [replay.run(tried, 1)];
    Outcome::new(
        &traffic,
        (Policy::RoundRobin, &base),
        (tried.name(), &tried_runs),
        &base,
        Vec::new(),
    )
}

#[test]
fn a_recording_of_simulated_traffic_is_reproduced_and_the_better_policy_predicted_better() {
    let json = outcome(&as_recorded(1.0), Policy::LeastRequest).json();
    assert_eq!(json["trust"], "good", "{json}");
    let of = |list: &str, what: &str| {
        let lines = json[list].as_array().unwrap().clone();
        lines.into_iter().find(|line| line["what"] == what).unwrap()
    };
    assert!(of("recorded_to_simulated", "TTFT P95")["change"].as_f64().unwrap().abs() < 0.05);
    let predicted = of("predicted", "TTFT P95");
    let interval = predicted["interval"].as_array().unwrap();
    let change = predicted["change"].as_f64().unwrap();
    assert!(interval[0].as_f64().unwrap() <= change && change <= interval[1].as_f64().unwrap());
    let slower = of("predicted", "TTFT P50");
    assert!(slower["change"].as_f64().unwrap() < 0.0, "the slow engine gets less: {slower}");
}

#[test]
fn a_recording_that_the_simulation_does_not_reproduce_is_not_trusted() {
    let outcome = outcome(&as_recorded(4.0), Policy::LeastRequest);
    assert_eq!(outcome.json()["trust"], "poor");
    assert!(outcome.text().contains("trust: poor"), "{}", outcome.text());
}

#[test]
fn the_same_policy_changes_nothing() {
    let json = outcome(&as_recorded(1.0), Policy::RoundRobin).json();
    for line in json["predicted"].as_array().unwrap() {
        assert_eq!(line["change"], 0.0, "{line}");
    }
}

#[test]
fn shared_blocks_stay_shared_and_the_rest_is_each_ones_own() {
    let traffic = Traffic::of(&recording(recorded(), "round-robin"), None).unwrap();
    let hashes = |request: &Request| {
        let mut out = Vec::new();
        lab::block_hashes(&request.prompt, 64, &mut out);
        out
    };
    let (first, same, other) = (&traffic.requests[0], &traffic.requests[10], &traffic.requests[11]);
    assert_eq!(first.prompt_tokens(), 660);
    let shared = |a, b| {
        let (a, b) = (hashes(a), hashes(b));
        a.iter().zip(&b).take_while(|(a, b)| a == b).count()
    };
    assert_eq!((shared(first, same), shared(first, other)), (4, 0));
}

#[test]
fn odd_requests_are_bounded_and_small_recordings_refused() {
    let mut odd = recorded();
    odd[3].blocks = vec![(u64::MAX, u32::MAX); 3];
    odd[4].prompt_tokens = 0;
    odd[5].output_tokens = None;
    odd[6].at_us = u64::MAX;
    let traffic = Traffic::of(&recording(odd, "round-robin"), None).unwrap();
    assert!(traffic.requests.iter().all(|request| (1..=660).contains(&request.prompt_tokens())));
    assert_eq!(traffic.notes.len(), 1, "{:?}", traffic.notes);
    let few = recording(recorded()[..10].to_vec(), "round-robin");
    assert!(matches!(Traffic::of(&few, None), Err(TrafficError::TooFew(10, _))));
    let whole = recording(recorded(), "round-robin");
    assert!(matches!(Traffic::of(&whole, Some("qwen")), Err(TrafficError::NoPool(..))));
}

#[test]
fn a_prompt_is_made_of_its_blocks_and_a_rest() {
    let traffic = Traffic::of(&recording(recorded(), "round-robin"), None).unwrap();
    let prompt = &traffic.requests[0].prompt;
    assert_eq!(
        prompt[..2],
        [Segment { content: 0, tokens: 256 }, Segment { content: 1000, tokens: 384 }]
    );
    assert_eq!((prompt.len(), prompt[2].tokens), (3, 20));
    assert!(
        traffic.requests.is_sorted_by_key(|request| request.at)
            && traffic.requests[0].at >= Timestamp::ZERO
    );
}

#[test]
fn an_endpoint_that_has_hardly_learned_gets_the_mean_of_the_others() {
    let mut recording = recording(recorded(), "round-robin");
    let endpoints = &mut recording.states[0].pools[0].endpoints;
    let stranger = EndpointState {
        id: 2,
        speed: Speed { prefill_samples: 0.0, step_samples: 0.0, ..speed(5.0, 500.0) },
        ..endpoints[0].clone()
    };
    endpoints.push(stranger);
    let traffic = Traffic::of(&recording, None).unwrap();
    let found = traffic.engines[2].speed.prefill_ms_per_token;
    assert!((found - (0.03_f32 * 0.3).sqrt()).abs() < 1e-4, "{found}");
    assert!(traffic.notes[0].contains("1 of 3 endpoints"), "{:?}", traffic.notes);
}

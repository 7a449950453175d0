//! Tests of the laboratory itself: queueing theory, conservation, determinism.

use std::time::Duration;

use sim::engine::{EngineSpec, Hardware, StepWork};
use types::EngineKind;

use super::Simulation;
use crate::arrivals::Arrivals;
use crate::lengths::{AZURE_ANSWER, AZURE_PROMPT, Lengths};
use crate::measure::Run;
use crate::plan::{Plan, Settings};
use crate::policy::Policy;
use crate::scenario::{SCENARIOS, Scenario};
use crate::workload::{Sharing, Workload};

fn engine(row: &str) -> EngineSpec {
    EngineSpec::new(EngineKind::Vllm, Hardware::find(row).unwrap(), 0, 0)
}

fn settings(seconds: u64) -> Settings {
    Settings::new(Duration::from_secs(seconds))
}

fn play(name: &str, load: f64, policy: Policy, seconds: u64) -> (Plan, Run) {
    let plan = Plan::new(Scenario::find(name).unwrap(), None).unwrap();
    let settings = settings(seconds);
    let traffic = plan.traffic(load, 3, &settings);
    let run = plan.run(&traffic, policy, &settings);
    (plan, run)
}

#[test]
fn an_engine_for_one_prompt_at_a_time_waits_as_pollaczek_and_khinchine_say() {
    let spec = EngineSpec { sequences_max: 1, prefix_caching: false, ..engine("qwen3-32b/2xh100") };
    let prompt = Lengths::LogNormal { median: 600.0, sigma: 0.7, min: 50, max: 8000 };
    let sharing = Sharing::Separate { prompt, answer: Lengths::Fixed(1) };
    let workload = Workload { arrivals: Arrivals::Poisson, sharing };
    let settings = Settings {
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(20_000),
        network: Duration::ZERO,
    };
    let rate = 8.0;
    let requests = workload.requests(1, rate, settings.duration);
    let services: Vec<f64> = requests
        .iter()
        .map(|request| {
            let mut work = StepWork::default();
            work.prefill(request.prompt_tokens(), 0);
            spec.costs.step_ms(&work, 0.0) * 1e-3
        })
        .collect();
    let count = services.len() as f64;
    let lambda = count / settings.duration.as_secs_f64();
    let mean = services.iter().sum::<f64>() / count;
    let second_moment = services.iter().map(|service| service * service).sum::<f64>() / count;
    let expected = lambda * second_moment / (2.0 * (1.0 - lambda * mean));

    let run =
        Simulation::new(std::slice::from_ref(&spec), &requests, Policy::RoundRobin, &settings, 1)
            .run();
    let waits = run.records.iter().zip(&services).map(|(record, service)| {
        record.ttft().unwrap().as_secs_f64() - spec.api_delay.as_secs_f64() - service
    });
    let found = waits.sum::<f64>() / count;
    assert!((0.3..0.9).contains(&(lambda * mean)), "load {}", lambda * mean);
    assert!((found / expected - 1.0).abs() < 0.02, "waits {found}, expected {expected}");
}

#[test]
fn requests_inside_are_their_rate_times_their_stay() {
    let (_, run) = play("mixed-8b", 0.5, Policy::Wicketgate, 20);
    for (at, endpoint) in run.endpoints.iter().enumerate() {
        let mine = run.records.iter().filter(|record| record.endpoint == Some(at));
        let stays: f64 = mine.map(|record| record.inside.as_secs_f64()).sum();
        let found = endpoint.request_seconds;
        assert!((found - stays).abs() <= 0.01 * stays, "endpoint {at}: {found}, stays {stays}");
    }
}

#[test]
fn no_block_no_token_and_no_request_is_lost() {
    for (name, load) in [("mixed-8b", 0.7), ("prefix-8b", 0.5), ("chat", 0.4)] {
        let (_, run) = play(name, load, Policy::Reference, 8);
        let answered: u64 = run
            .records
            .iter()
            .filter(|record| record.finished.is_some())
            .map(|record| u64::from(record.output_tokens))
            .sum();
        let generated: u64 = run.endpoints.iter().map(|e| e.stats.generation_tokens).sum();
        assert_eq!(generated, answered, "{name}");
        for endpoint in &run.endpoints {
            assert_eq!((endpoint.requests_left, endpoint.stats.blocks_used), (0, 0), "{name}");
        }
        assert!(run.records.iter().all(|record| record.finished.is_some()), "{name}");
    }
}

#[test]
fn a_token_never_comes_before_its_request_was_there() {
    let (_, run) = play("mixed-8b", 0.3, Policy::OracleTtft, 20);
    let least = Duration::from_millis(15) + Duration::from_micros(500);
    for record in &run.records {
        let (first, finished) = (record.first_token.unwrap(), record.finished.unwrap());
        assert!(record.ttft().unwrap() > least && finished >= first, "{record:?}");
    }
}

/// Answers per second of one engine under 1.6 times its fluid capacity, as a share of it, and
/// preemptions for each request.
fn saturation(row: &str) -> (f64, f64) {
    let sharing = Sharing::Separate { prompt: AZURE_PROMPT, answer: AZURE_ANSWER };
    let workload = Workload { arrivals: Arrivals::Poisson, sharing };
    let spec = engine(row);
    let capacity = crate::capacity::capacity(&spec, &workload.mix(1));
    let half = Duration::from_secs_f64(250.0 / capacity);
    let settings = Settings { warm_up: half, duration: half, network: Duration::ZERO };
    let requests = workload.requests(2, 1.6 * capacity, half * 2);
    let specs = [spec];
    let run = Simulation::new(&specs, &requests, Policy::RoundRobin, &settings, 2).run();
    let window = settings.window();
    let ended = |at| window.contains(&at);
    let answered = run.records.iter().filter(|record| record.finished.is_some_and(ended)).count();
    let preempted: u32 = run.records.iter().map(|record| record.preemptions).sum();
    (
        answered as f64 / half.as_secs_f64() / capacity,
        f64::from(preempted) / run.records.len() as f64,
    )
}

#[test]
fn an_overloaded_engine_answers_nearly_what_its_fluid_capacity_says() {
    for row in ["llama-3.1-8b/h100", "qwen3-32b/2xh100"] {
        let (share, _) = saturation(row);
        assert!((0.85..=1.02).contains(&share), "{row}: {share}");
    }
}

#[test]
fn an_overloaded_engine_of_little_memory_loses_a_part_of_its_capacity_to_preemption() {
    let (share, preempted) = saturation("llama-3.1-8b/a10g");
    assert!((0.65..0.95).contains(&share) && preempted > 0.1, "{share}, {preempted} preemptions");
}

#[test]
fn the_same_seed_gives_the_same_run_whatever_was_run_before() {
    let plan = Plan::new(Scenario::find("mixed-8b").unwrap(), None).unwrap();
    let settings = settings(10);
    let traffic = plan.traffic(0.5, 9, &settings);
    let all = |policies: &[Policy]| -> Vec<Run> {
        policies.iter().map(|policy| plan.run(&traffic, *policy, &settings)).collect()
    };
    let forth = all(&Policy::ALL);
    let mut back: Vec<Policy> = Policy::ALL.to_vec();
    back.reverse();
    let mut back = all(&back);
    back.reverse();
    assert_eq!(forth, back);
    let other = plan.traffic(0.5, 10, &settings);
    assert_ne!(plan.run(&other, Policy::Random, &settings).records, forth[4].records);
}

#[test]
fn every_policy_answers_every_request_of_every_scenario_at_a_low_load() {
    let settings = settings(3);
    for scenario in SCENARIOS {
        let plan = Plan::new(scenario, None).unwrap();
        let traffic = plan.traffic(0.15, 4, &settings);
        for policy in Policy::ALL {
            let result = plan.result(&plan.run(&traffic, policy, &settings));
            let what = format!("{} under {}", scenario.name, policy.name());
            assert_eq!(result.failed, 0, "{what}");
            assert!(result.ttft_p50_ms > 15.0, "{what}: {result:?}");
            assert!(result.prefix_hit_ratio <= traffic.prefix_hit_bound + 0.02, "{what}");
        }
    }
}

#[test]
fn who_knows_the_engines_is_far_ahead_of_equal_shares_on_a_mixed_fleet() {
    let p95 = |policy| {
        let (plan, run) = play("mixed-8b", 0.3, policy, 40);
        plan.result(&run).ttft_p95_ms
    };
    let (oracle, least, turns) =
        (p95(Policy::OracleTtft), p95(Policy::LeastRequest), p95(Policy::RoundRobin));
    assert!(oracle * 3.0 < least && least * 3.0 < turns, "{oracle} {least} {turns}");
}

#[test]
fn a_fleet_of_eight_answers_the_published_rates() {
    let capacity = |name: &str| {
        let plan = Plan::new(Scenario::find(name).unwrap(), None).unwrap();
        (plan.capacity(), plan.round_robin_knee())
    };
    let (fleet, knee) = capacity("mixed-8b");
    assert!((fleet / 43.5 - 1.0).abs() < 0.05 && (knee / 9.5 - 1.0).abs() < 0.05, "{fleet} {knee}");
    let (fleet, knee) = capacity("mixed-32b");
    assert!((fleet / 21.7 - 1.0).abs() < 0.05 && (knee / 6.1 - 1.0).abs() < 0.05, "{fleet} {knee}");
}

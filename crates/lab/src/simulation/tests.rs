//! Tests of the laboratory itself: queueing theory, conservation, determinism.

mod faults;
mod herds;

use std::time::Duration;

use sim::engine::{EngineSpec, Hardware, StepWork};
use types::EngineKind;

use super::{Scene, Simulation};
use crate::arrivals::Arrivals;
use crate::lengths::{AZURE_ANSWER, AZURE_PROMPT, Lengths};
use crate::measure::Run;
use crate::plan::{Plan, Settings};
use crate::policy::Policy;
use crate::scenario::{SCENARIOS, Scenario};
use crate::workload::{Request, Sharing, Workload};

fn engine(row: &str) -> EngineSpec {
    EngineSpec::new(EngineKind::Vllm, Hardware::find(row).unwrap(), 0, 0)
}

fn settings(seconds: u64) -> Settings {
    Settings::new(Duration::from_secs(seconds))
}

fn round_robin(specs: &[EngineSpec], requests: &[Request], settings: &Settings) -> Run {
    let scene = Scene {
        specs,
        requests,
        faults: &[],
        gateways: 1,
        settings,
        seed: 1,
        guests: None,
        is_stepwise: false,
    };
    Simulation::new(&scene, Policy::RoundRobin).run()
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
    let workload = Workload::new(Arrivals::Poisson, sharing);
    let settings = Settings {
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(20_000),
        network: Duration::ZERO,
        ..settings(0)
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

    let run = round_robin(std::slice::from_ref(&spec), &requests, &settings);
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
    let workload = Workload::new(Arrivals::Poisson, sharing);
    let spec = engine(row);
    let capacity = crate::capacity::capacity(&spec, &workload.mix(1));
    let half = Duration::from_secs_f64(250.0 / capacity);
    let network = Duration::ZERO;
    let settings = Settings { warm_up: half, duration: half, network, ..settings(0) };
    let requests = workload.requests(2, 1.6 * capacity, half * 2);
    let specs = [spec];
    let run = round_robin(&specs, &requests, &settings);
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
    for scenario in SCENARIOS.iter().filter(|scenario| scenario.duration_min.is_zero()) {
        let endpoints = (scenario.pools[0].count > 1).then_some(80);
        let settings = settings(2);
        let plan = Plan::new(scenario, endpoints).unwrap();
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
fn recorded_traffic_is_answered_and_found_again_in_the_caches() {
    for (name, load) in [("replay-mooncake", 0.3), ("replay-azure-code", 0.035)] {
        let plan = Plan::new(Scenario::find(name).unwrap(), None).unwrap();
        let settings = settings(0);
        let traffic = plan.traffic(load, 4, &settings);
        let result = plan.result(&plan.run(&traffic, Policy::LMetric, &settings));
        assert_eq!(result.failed, 0, "{name}");
        let (found, bound) = (result.prefix_hit_ratio, traffic.prefix_hit_bound);
        assert!(found <= bound + 0.005 && found >= 0.5 * bound, "{name}: {found} of {bound}");
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

#[test]
fn runs_of_steps_give_what_single_steps_give() {
    for (name, load) in [("prefix-8b", 0.5), ("mixed-8b", 0.7), ("lora-churn", 0.5)] {
        let plan = Plan::new(Scenario::find(name).unwrap(), None).unwrap();
        let settings = settings(6);
        let traffic = plan.traffic(load, 3, &settings);
        for policy in [Policy::Wicketgate, Policy::OracleE2e] {
            let by_runs = plan.play(&traffic, policy, &settings, false);
            let by_steps = plan.play(&traffic, policy, &settings, true);
            let what = format!("{name} under {}", policy.name());
            let both = by_runs.records.iter().zip(&by_steps.records);
            both.for_each(|(by_run, by_step)| assert_eq!(by_run, by_step, "{what}"));
            let stats = |run: &Run| -> Vec<_> {
                run.endpoints.iter().map(|endpoint| endpoint.stats.clone()).collect()
            };
            assert_eq!(stats(&by_runs), stats(&by_steps), "{what}");
            assert_eq!(by_runs.samples, by_steps.samples, "{what}");
            assert_eq!(plan.result(&by_runs), plan.result(&by_steps), "{what}");
        }
    }
}

#[test]
fn gateways_that_share_the_requests_see_each_others_load_on_the_pages() {
    let plan = Plan::new(Scenario::find("uniform").unwrap(), None).unwrap();
    let p95 = |gateways: usize| {
        let settings = Settings { gateways: Some(gateways), ..settings(20) };
        let traffic = plan.traffic(0.5, 3, &settings);
        let result = plan.result(&plan.run(&traffic, Policy::LeastRequest, &settings));
        assert_eq!(result.failed, 0);
        let ours = plan.result(&plan.run(&traffic, Policy::Wicketgate, &settings));
        (result.ttft_p95_ms, ours.ttft_p95_ms)
    };
    let ((alone, _), (shared, ours)) = (p95(1), p95(4));
    assert!(shared > 1.02 * alone, "a quarter of the view: {shared}, all of it: {alone}");
    assert!(ours < 1.5 * shared, "ours {ours}, least request {shared}");
}

/// Two gateways without a word between them halve each other's hits; with one they are as one.
#[test]
fn gateways_that_share_their_books_hit_and_wait_as_one_does() {
    let plan = Plan::new(Scenario::find("chat").unwrap(), None).unwrap();
    let play = |gateways, share_millis: Option<u64>| {
        let share_interval = share_millis.map(Duration::from_millis);
        let settings = Settings { gateways: Some(gateways), share_interval, ..settings(40) };
        let traffic = plan.traffic(0.5, 3, &settings);
        let result = plan.result(&plan.run(&traffic, Policy::Wicketgate, &settings));
        assert_eq!(result.failed, 0);
        result
    };
    let (one, apart, sharing) = (play(1, None), play(2, None), play(2, Some(20)));
    assert!(apart.prefix_hit_ratio < 0.9 * one.prefix_hit_ratio, "{apart:?} {one:?}");
    assert!(sharing.prefix_hit_ratio > 0.97 * one.prefix_hit_ratio, "{sharing:?} {one:?}");
    assert!(sharing.ttft_p95_ms < 1.15 * one.ttft_p95_ms, "{sharing:?} {one:?}");
}

#[test]
fn jitter_and_slower_gpus_change_the_engines_and_the_capacity_follows() {
    let scenario = Scenario::find("mixed-8b").unwrap();
    let plan = |settings: &Settings| Plan::with_settings(scenario, None, settings).unwrap();
    let (usual, slow) = (settings(10), Settings { a10g_factor: 1.4, ..settings(10) });
    let (as_is, slower) = (plan(&usual).capacities, plan(&slow).capacities);
    assert_eq!(as_is[0], slower[0]);
    assert!((as_is[5] / slower[5] - 1.4).abs() < 0.01, "{as_is:?} {slower:?}");

    let jittery = Settings { jitter: 0.3, ..usual.clone() };
    let traffic = plan(&usual).traffic(0.3, 3, &usual);
    let run = |settings: &Settings| plan(settings).run(&traffic, Policy::OracleTtft, settings);
    assert_ne!(run(&usual).records, run(&jittery).records);
    assert_eq!(run(&jittery), run(&jittery));
}

#[test]
fn affinity_to_adapters_saves_loads_and_the_pages_show_who_runs() {
    let loads = |policy| {
        let (plan, run) = play("lora-churn", 0.2, policy, 30);
        let result = plan.result(&run);
        assert_eq!(result.failed, 0, "{}", policy.name());
        result.adapter_loads
    };
    let (ours, turns) = (loads(Policy::Wicketgate), loads(Policy::RoundRobin));
    assert!(ours > 0 && ours < turns, "{ours} loads, in turn {turns}");
}

#[test]
fn loads_polled_all_at_once_leave_no_endpoint_out() {
    // Polled in turn, whoever was polled last would look idle and draw everything.
    let (plan, run) = play("uniform", 0.3, Policy::SmgLeastLoad, 40);
    let result = plan.result(&run);
    assert!(result.max_over_mean_load < 1.5, "{}", result.max_over_mean_load);
}

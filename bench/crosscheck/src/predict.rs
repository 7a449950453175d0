//! What the laboratory says beforehand about the same requests.

use std::time::Duration;

use lab::{LearnedEngine, Policy, Replay, Request, Run, Settings, Speed, Traffic};
use serde::Serialize;
use sim::engine::{EngineSpec, Hardware, StepWork};
use types::EngineKind;

use crate::measure::{Seen, Summary};
use crate::scene::{Groups, Stage};

/// A run of the laboratory.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    #[serde(flatten)]
    pub summary: Summary,
    /// Share of all requests that each server got.
    pub shares: Vec<f64>,
}

/// The run of `requests`, which are `traffic`'s as this stage sends them, cut off like the real one.
///
/// * `polls`: how often loads are read; the policy's own interval if `None`. A replay has only that,
///   so there is no prediction of another one for shortened groups.
///
/// Shortened groups are none of the laboratory's scenarios, so they are replayed, on engines whose
/// step time is a straight line in its tokens: right at the longest and the shortest step of this
/// traffic, too long by up to 4 ms in between.
pub fn predict(
    stage: &Stage,
    traffic: &Traffic,
    requests: &[Request],
    policy: Policy,
    polls: Option<Duration>,
    cut_off: Duration,
) -> Option<Prediction> {
    let (run, itl_p99_ms) = match &stage.scene.groups {
        None => {
            let settings = Settings { scrape_interval: polls, ..stage.settings.clone() };
            let run = stage.plan.run(traffic, policy, &settings);
            let itl_p99_ms = stage.plan.result(&run).itl_p99_ms;
            (run, Some(itl_p99_ms))
        }
        Some(_) if polls.is_some() => return None,
        Some(groups) => (replayed(stage, traffic, requests, groups, policy), None),
    };
    let warm_up = stage.settings.warm_up;
    let counted = run.records.iter().filter(|record| record.at.as_duration() >= warm_up);
    let seen: Vec<Seen> = counted.map(|record| Seen::of_record(record, cut_off)).collect();
    let sent = run.records.iter().filter_map(|record| record.endpoint);
    let share = |at| sent.clone().filter(|other| *other == at).count() as f64;
    let all = (sent.clone().count() as f64).max(1.0);
    Some(Prediction {
        summary: Summary::of(&seen, &stage.plan.scenario.slo, itl_p99_ms),
        shares: (0..stage.plan.rows.len()).map(|at| share(at) / all).collect(),
    })
}

fn replayed(
    stage: &Stage,
    traffic: &Traffic,
    requests: &[Request],
    groups: &Groups,
    policy: Policy,
) -> Run {
    let engine = |row: &&str| Hardware::find(row).map(|hardware| straight(hardware, groups));
    let engines: Vec<LearnedEngine> = stage.plan.rows.iter().filter_map(engine).collect();
    Replay::new(&engines, requests.to_vec()).run(policy, traffic.seed)
}

/// The line through the step of one token and that of a whole uncached prompt.
fn straight(hardware: &Hardware, groups: &Groups) -> LearnedEngine {
    let spec = EngineSpec::new(EngineKind::Vllm, hardware, 0, 0);
    let step_ms = |tokens| {
        let mut work = StepWork::default();
        work.prefill(tokens, 0);
        spec.costs.step_ms(&work, 0.0)
    };
    let prompt = groups.prefix + groups.question;
    let (one, whole) = (step_ms(1), step_ms(prompt));
    LearnedEngine {
        speed: Speed {
            base_ms: (spec.api_delay.as_secs_f64() * 1e3 + one) as f32,
            prefill_ms_per_token: ((whole - one) / f64::from(prompt)) as f32,
            step_ms: one as f32,
            ..Speed::default()
        },
        block_size_tokens: Some(spec.block_size),
        block_count: Some(u64::from(spec.block_count)),
        running_max: Some(spec.sequences_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::SCENES;

    #[test]
    fn prefix_aware_policies_find_more_in_caches_than_round_robin() {
        let stage = Stage::new(SCENES[1], 5.0, 1.0).unwrap();
        let traffic = stage.traffic(1);
        let requests = stage.requests(&traffic);
        let hits = |policy| {
            let cut_off = Duration::from_secs(60);
            let prediction = predict(&stage, &traffic, &requests, policy, None, cut_off);
            prediction.unwrap().summary.prefix_hit_ratio.unwrap()
        };
        assert!(hits(Policy::Wicketgate) > hits(Policy::RoundRobin) + 0.05);
    }

    #[test]
    fn a_line_meets_the_engine_at_both_ends() {
        let Some(groups) = SCENES[1].groups else { panic!("the scene has groups") };
        let hardware = Hardware::find("llama-3.1-8b/h100").unwrap();
        let (line, engine) =
            (straight(hardware, &groups).spec(), EngineSpec::new(EngineKind::Vllm, hardware, 0, 0));
        for tokens in [1, 3400] {
            let mut work = StepWork::default();
            work.prefill(tokens, 0);
            let (line, engine) = (line.costs.step_ms(&work, 0.0), engine.costs.step_ms(&work, 0.0));
            assert!((line / engine - 1.0).abs() < 0.02, "{tokens}: {line} for {engine}");
        }
    }
}

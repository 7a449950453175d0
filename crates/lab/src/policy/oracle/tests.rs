//! The clairvoyant is right where nothing else happens.

use std::time::Duration;

use sched::{Candidate, RequestView};
use sim::engine::{EngineSpec, Hardware};
use types::{AdapterId, EndpointId, EngineKind, Slot, Timestamp};

use super::Truth;
use crate::endpoint::Endpoint;
use crate::plan::Settings;
use crate::policy::{Asked, Policy};
use crate::prompt::Segment;
use crate::simulation::{Scene, Simulation};
use crate::workload::Request;

/// Seconds to the first and to the last token of one request on an idle engine: as foreseen, and as
/// it came.
fn foreseen_and_true(row: &str, adapter: Option<AdapterId>) -> ([f64; 2], [f64; 2]) {
    let hardware = Hardware::find(row).unwrap();
    let spec = EngineSpec::new(EngineKind::Vllm, hardware, 4, 4);
    let request = Request {
        at: Timestamp::ZERO,
        prompt: Box::new([Segment { content: 1, tokens: 9000 }]),
        answer: Segment { content: 2, tokens: 300 },
        adapter,
    };
    let view = RequestView { prompt_tokens: 9000, adapter, ..RequestView::default() };
    let asked =
        Asked { view, block_tokens: 64, hashes: &[], output_tokens: 300, is_sampled: false };
    let candidate = Candidate::idle(EndpointId(0), Slot(0));
    let endpoints = [Endpoint::new(spec.clone(), 1, false)];
    let truth = Truth { endpoints: &endpoints, progress: &[] };
    let foreseen = [truth.ttft_seconds(&asked, &candidate), truth.e2e_seconds(&asked, &candidate)];

    let mut settings = Settings::new(Duration::from_secs(1));
    settings.network = Duration::ZERO;
    let scene = Scene {
        specs: &[spec],
        requests: &[request],
        faults: &[],
        gateways: 1,
        settings: &settings,
        seed: 1,
        guests: None,
        is_stepwise: false,
    };
    let run = Simulation::new(&scene, Policy::RoundRobin).run();
    let record = &run.records[0];
    let came = [record.ttft().unwrap().as_secs_f64(), record.e2e().unwrap().as_secs_f64()];
    (foreseen, came)
}

#[test]
fn it_foresees_the_first_and_the_last_token_on_an_idle_engine() {
    for row in ["llama-3.1-8b/h100", "llama-3.1-8b/a10g", "llama-3.1-70b/4xh100"] {
        let (foreseen, came) = foreseen_and_true(row, None);
        for (foreseen, came) in foreseen.into_iter().zip(came) {
            assert!((foreseen / came - 1.0).abs() < 0.02, "{row}: {foreseen}, came {came}");
        }
    }
}

#[test]
fn it_counts_the_load_of_an_adapter() {
    let (with, _) = foreseen_and_true("llama-3.1-8b/h100", Some(AdapterId::of("a")));
    let (without, _) = foreseen_and_true("llama-3.1-8b/h100", None);
    // From disk: 1.15 s and 84 MB, then onto the GPU.
    assert!((1.2..1.35).contains(&(with[0] - without[0])), "{with:?} {without:?}");
}

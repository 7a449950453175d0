//! Many at once, and prompts that begin alike.

use std::time::Duration;

use types::Timestamp;

use crate::arrivals::Arrivals;
use crate::plan::Settings;
use crate::policy::Policy;
use crate::prompt::Segment;
use crate::simulation::{Scene, Simulation};
use crate::workload::Request;

use super::engine;

/// How many each of eight H100 got.
fn shares(policy: Policy, requests: &[Request]) -> Vec<usize> {
    let specs = vec![engine("llama-3.1-8b/h100"); 8];
    let settings = Settings { warm_up: Duration::ZERO, ..Settings::new(Duration::from_secs(60)) };
    let scene = Scene {
        specs: &specs,
        requests,
        faults: &[],
        gateways: 1,
        settings: &settings,
        seed: 1,
        guests: None,
        is_stepwise: false,
    };
    let run = Simulation::new(&scene, policy).run();
    assert!(run.records.iter().all(|record| record.finished.is_some()));
    let sent = |at| run.records.iter().filter(|record| record.endpoint == Some(at)).count();
    (0..8).map(sent).collect()
}

#[test]
fn two_hundred_cold_requests_in_twenty_milliseconds_are_spread_evenly() {
    // A second after the start, when pages have been read.
    let request = |at: u64| Request {
        at: Timestamp::from_duration(Duration::from_micros(1_000_000 + 100 * at)),
        prompt: Box::new([Segment { content: 1 + at, tokens: 800 }]),
        answer: Segment { content: 1000 + at, tokens: 100 },
        adapter: None,
    };
    let requests: Vec<Request> = (0..200).map(request).collect();
    let shares = shares(Policy::Wicketgate, &requests);
    assert!(shares.iter().all(|share| (22..=28).contains(share)), "{shares:?}");
}

/// The tenants' prompts part after 1,000 tokens; then each has 500 of its own, and the question.
#[test]
fn two_tenants_whose_prompts_begin_alike_do_not_collapse_onto_one_endpoint() {
    let instants = Arrivals::Poisson.instants(1, 60.0, Duration::from_secs(30));
    let request = |(at, instant): (usize, &Timestamp)| {
        let at = at as u64;
        let prompt = [(1, 1000), (2 + at % 2, 500), (10 + at, 400)];
        Request {
            at: *instant,
            prompt: prompt.map(|(content, tokens)| Segment { content, tokens }).into(),
            answer: Segment { content: 1_000_000 + at, tokens: 150 },
            adapter: None,
        }
    };
    let requests: Vec<Request> = instants.iter().enumerate().map(request).collect();
    let shares = shares(Policy::Wicketgate, &requests);
    let most = shares.iter().max().copied().unwrap_or(0) as f64;
    let mean = requests.len() as f64 / 8.0;
    assert!(most < 1.5 * mean, "{shares:?}");
}

//! Prints what queueing and draining requests costs: `cargo run --release -p wicketgate-flow --example drain`.

#![allow(clippy::print_stdout, clippy::disallowed_methods)]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use types::{Priority, Timestamp};
use wicketgate_flow::{Config, Fairness, FlowKey, Limits, Queue, Work};

const KNOWN: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "requests  flows  histories  fairness                 offer ms  drain ms  one pass ns"
    );
    for fairness in [Fairness::DeficitRoundRobin, Fairness::LeastAttainedService] {
        for (requests, flows, known) in
            [(10_000, 10, 0), (10_000, 10_000, 0), (10_000, 1_000, KNOWN), (100_000, 1_000, KNOWN)]
        {
            measure(fairness, requests, flows, known)?;
        }
    }
    Ok(())
}

fn measure(
    fairness: Fairness,
    requests: usize,
    flows: usize,
    known: usize,
) -> Result<(), Box<dyn Error>> {
    let mut config = Config::default();
    config.band.limits = Limits::default();
    config.band.fairness = fairness;
    let mut queue = Queue::new(config);
    let ids: Vec<Arc<str>> = (0..known.max(flows)).map(|id| id.to_string().into()).collect();
    let key = |id: usize| FlowKey { id: ids[id].clone(), priority: Priority::STANDARD };
    for id in 0..known {
        queue.charge(&key(id), 1, 1000 + id as u32, Timestamp::ZERO);
    }
    let works: Vec<Work> = (0..requests)
        .map(|number| Work {
            flow: key(number % flows),
            tokens: 100 + (number * 7919 % 4000) as u32,
            bytes: 4096,
            received: Timestamp::from_millis(number as u64 / 10),
            ttft: None,
            deadline: None,
            service: Duration::ZERO,
            fingerprint: Some(number as u64),
        })
        .collect();
    let passing = Work { fingerprint: None, ..works[0].clone() };
    let now = Timestamp::from_millis(20_000);
    let mut evicted = Vec::new();
    let begin = Instant::now();
    for work in works {
        queue.offer(work, (), 1.0, now, &mut evicted)?;
    }
    let offered = begin.elapsed();
    let begin = Instant::now();
    let mut drained = 0;
    while let Some(gone) = queue.next(0.5, now) {
        queue.drained(&gone.work.flow, gone.work.tokens, now);
        drained += 1;
    }
    let drain = begin.elapsed();
    assert_eq!(drained, requests);
    let begin = Instant::now();
    for _ in 0..100_000 {
        assert!(queue.pass(&passing, 0.5, now).is_some());
    }
    let pass = begin.elapsed() / 100_000;
    let fairness = format!("{fairness:?}");
    println!(
        "{requests:>8}  {flows:>5}  {known:>9}  {fairness:<23}  {:>8.1}  {:>8.1}  {:>11}",
        offered.as_secs_f64() * 1e3,
        drain.as_secs_f64() * 1e3,
        pass.as_nanos()
    );
    Ok(())
}

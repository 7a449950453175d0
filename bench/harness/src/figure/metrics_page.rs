//! A scrape of `/metrics` where endpoints are many: how long it takes, and whether requests notice.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::bail;

use super::{Effort, mib};
use crate::clock;
use crate::interrupt::pause;
use crate::load::open::Open;
use crate::load::page::{Page, fetch};
use crate::metric::{
    FAILED, PAGE_MAX, PAGE_MAX_SCRAPED, PAGE_MIB, PAGE_MS, PAGE_P99, PAGE_P99_SCRAPED,
};
use crate::mock::handle::Mock;
use crate::prompts::{Kind, Requests};
use crate::results::Results;
use crate::subject::{Plan, Subject, WICKETGATE};

const ENDPOINTS: u16 = 1_000;
const PER_SECOND: u64 = 200;
const CONNECTIONS: usize = 16;
const BETWEEN_SCRAPES: Duration = Duration::from_millis(250);
/// Until every endpoint has been scraped once.
const KNOWN_MAX: Duration = Duration::from_secs(60);

pub(super) fn run(plans: &[Plan], effort: Effort, results: &mut Results) -> anyhow::Result<()> {
    let mock = Mock::start_on_all_loopback(1)?;
    let port = mock.addresses[0].port();
    let endpoints: Vec<SocketAddr> = (0..ENDPOINTS)
        .map(|number| {
            let [high, low] = number.to_be_bytes();
            SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, high + 1, low)), port)
        })
        .collect();
    for plan in plans.iter().filter(|plan| plan.name == WICKETGATE) {
        let subject = plan.start(&endpoints)?;
        wait_known(&subject)?;
        for round in 0..effort.rounds {
            let quiet = visit(&subject, effort, round as u64, false, results)?;
            results.add(&PAGE_P99, subject.name, quiet.0);
            results.add(&PAGE_MAX, subject.name, quiet.1);
            let scraped = visit(&subject, effort, round as u64, true, results)?;
            results.add(&PAGE_P99_SCRAPED, subject.name, scraped.0);
            results.add(&PAGE_MAX_SCRAPED, subject.name, scraped.1);
        }
    }
    Ok(())
}

/// P99 in microseconds and the longest time in milliseconds.
fn visit(
    subject: &Subject,
    effort: Effort,
    seed: u64,
    is_scraped: bool,
    results: &mut Results,
) -> anyhow::Result<(f64, f64)> {
    let host = subject.targets[0].to_string();
    let requests = Requests::new(Kind::Shared, 500, &host, seed);
    let load = Open::start(&subject.targets, CONNECTIONS, PER_SECOND, &requests)?;
    pause(Duration::from_millis(500))?;
    load.measure();
    let end_ns = clock::now_ns() + effort.measured.as_nanos() as u64;
    while clock::now_ns() < end_ns {
        pause(BETWEEN_SCRAPES)?;
        if is_scraped {
            let page = fetch(subject.admin, "/metrics")?;
            results.add(&PAGE_MS, subject.name, page.ns as f64 / 1e6);
            results.add(&PAGE_MIB, subject.name, mib(page.body.len() as u64));
        }
    }
    let outcome = load.stop()?;
    results.add_to_sum(&FAILED, subject.name, outcome.failed as f64);
    let p99_us = outcome.latency.value_at_quantile(0.99) as f64 / 1e3;
    Ok((p99_us, outcome.latency.max() as f64 / 1e6))
}

/// Waits until the page speaks of all endpoints as ready: before that it is short.
fn wait_known(subject: &Subject) -> anyhow::Result<()> {
    let deadline_ns = clock::now_ns() + KNOWN_MAX.as_nanos() as u64;
    let mut ready = 0;
    while clock::now_ns() < deadline_ns {
        ready = count_ready(&fetch(subject.admin, "/metrics")?);
        if ready >= usize::from(ENDPOINTS) {
            return Ok(());
        }
        pause(Duration::from_millis(500))?;
    }
    bail!("`{}` knows {ready} of {ENDPOINTS} endpoints after {KNOWN_MAX:?}", subject.name)
}

fn count_ready(page: &Page) -> usize {
    let text = String::from_utf8_lossy(&page.body);
    let is_up = |line: &&str| line.starts_with("wicketgate_endpoint_up{") && line.ends_with(" 1");
    text.lines().filter(is_up).count()
}

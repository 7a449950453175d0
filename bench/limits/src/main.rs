//! What rate limits cost: memory of 100,000 tenants, time of a request's questions.
//!
//! `cargo run --release --manifest-path bench/limits/Cargo.toml`

use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use limits::{Amount, Cost, Limiter, Moment, Permit, Rule, Spent, Subject};
use tikv_jemalloc_ctl::{epoch, stats};
use types::{ModelName, Priority, TenantName, Timestamp};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const KNOWN: usize = 100_000;
const ACTIVE: usize = 1_000;
const AIM_MIB: u32 = 100;
const REQUESTS: usize = 1_000_000;

fn main() {
    println!("{KNOWN} tenants known, {ACTIVE} active; a rule has requests, tokens and places\n");
    let names: Vec<TenantName> =
        (0..KNOWN).map(|number| TenantName::new(&format!("tenant-{number:06}"))).collect();
    for rules in [1, 3] {
        memory(&names, rules, false);
        memory(&names, rules, true);
    }
    println!();
    for rules in [0, 1, 3] {
        for threads in [1, 2] {
            time(&names, rules, threads);
        }
    }
}

/// Rules for each tenant; with a day's budget, whose buckets stay until midnight.
fn rules(count: usize, with_budget: bool) -> Vec<Rule> {
    let many = NonZeroU64::new(1_000_000_000);
    let rates = Amount { per_minute: many, ..Amount::default() };
    let both = Amount { per_day: many.filter(|_| with_budget), ..rates };
    let rule = |number| {
        let mut rule = Rule::new(&format!("rule-{number}"));
        rule.per.tenant = true;
        Rule { requests: rates, tokens: both, concurrent: NonZeroU32::new(1 << 20), ..rule }
    };
    (0..count).map(rule).collect()
}

fn at(time: Duration) -> Moment {
    Moment { now: Timestamp::from_duration(time), unix: time }
}

fn ask(limiter: &Limiter, tenant: &TenantName, model: &ModelName, moment: Moment) {
    let mut permit = Permit::default();
    let route = "/v1/chat/completions";
    let head = Subject {
        tenant,
        key: None,
        model: None,
        asked_model: None,
        route,
        priority: Priority::STANDARD,
    };
    let subject = Subject { model: Some(model), ..head };
    let passed = limiter.arrive(&mut permit, &head, moment, |_| {}).is_ok() && {
        let cost = limiter.estimate(&subject, 4000, Some(1000), 1);
        limiter.reserve(&mut permit, &subject, cost, moment, |_| {}).is_ok()
    };
    assert!(passed, "the limits are beyond reach");
    let used = Cost::new(1000, 300);
    permit.settle(Spent { counts: true, tokens: Some(used) }, moment, |_| {});
    limiter.learn(&subject, Some((4000, 1000)), Some(300), moment);
}

fn memory(names: &[TenantName], count: usize, with_budget: bool) {
    let before = allocated();
    let limiter = Limiter::new(rules(count, with_budget), None);
    let model = ModelName::new("llama");
    for tenant in names {
        ask(&limiter, tenant, &model, at(Duration::from_secs(100)));
    }
    let all = allocated() - before;
    // Later: the others have rested, a thousand have not.
    for tenant in &names[..ACTIVE] {
        ask(&limiter, tenant, &model, at(Duration::from_secs(4000)));
    }
    limiter.sweep(at(Duration::from_secs(4001)));
    let rested = allocated() - before;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    // What is kept of tenants at rest is the aim; before it was numbers alone, three rules with budgets
    // took 129 MiB.
    println!(
        "{count} rules{}: {:.1} MiB with all tenants active at once ({} bytes for a bucket and what is learned), {:.1} MiB \
         when {ACTIVE} still are ({} buckets; the aim is under {AIM_MIB} MiB)",
        if with_budget { " with daily budgets" } else { "" },
        mib(all),
        all / (names.len() * count),
        mib(rested),
        (0..count).map(|rule| limiter.buckets(rule)).sum::<usize>(),
    );
}

fn time(names: &[TenantName], count: usize, threads: usize) {
    let limiter = Limiter::new(rules(count, false), None);
    let model = ModelName::new("llama");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (limiter, model) = (&limiter, &model);
            scope.spawn(move || {
                for number in 0..REQUESTS / threads {
                    let tenant = &names[(number * 7919 + thread * 13) % ACTIVE];
                    let now = at(Duration::from_secs(100) + Duration::from_micros(number as u64));
                    ask(limiter, tenant, model, now);
                }
            });
        }
    });
    let nanos = begun.elapsed().as_nanos() as usize * threads / REQUESTS;
    println!(
        "{count} rules, {threads} threads: {nanos} ns for a request's life: arrive, estimate, reserve, settle, learn"
    );
}

fn allocated() -> usize {
    // Fails only where statistics are not compiled in.
    let read = || epoch::advance().and_then(|_| stats::allocated::read());
    read().unwrap_or_default()
}

//! What a request would meet, without asking.

use types::{ModelName, Priority, TenantName};
use wicketgate_limits::{Cost, Kind, Subject};

use crate::desk::{ANA, Desk, concurrent, per_day, per_minute, requests, seconds, tokens};

/// Rule, kind of refusal, and what is left of the first measure, for `ana`.
fn previewed(desk: &Desk, cost: u64) -> Vec<(usize, Option<Kind>, u64)> {
    let (tenant, model, key) = (TenantName::new("ana"), ModelName::new("llama"), "ana-1".into());
    let subject = Subject {
        tenant: &tenant,
        key: Some(&key),
        model: Some(&model),
        asked_model: None,
        route: "/v1/completions",
        priority: Priority::STANDARD,
    };
    let previews = desk.limiter.preview(&subject, Cost::new(cost, 0), desk.moment);
    let told = previews.into_iter().map(|preview| {
        let kind = preview.refused.map(|refused| refused.kind);
        (preview.rule, kind, preview.bucket.meters[0].remaining)
    });
    told.collect()
}

#[test]
fn a_preview_takes_nothing_and_makes_no_bucket() {
    let mut other = requests("other", per_minute(9));
    other.matches.tenants.insert("ben".into());
    let desk = Desk::new(vec![requests("r", per_minute(2)), other, tokens("t", per_minute(100))]);
    for _ in 0..5 {
        assert_eq!(previewed(&desk, 50), [(0, None, 2), (2, None, 100)]);
    }
    assert_eq!(desk.limiter.buckets(0) + desk.limiter.buckets(2), 0);
}

#[test]
fn a_preview_refuses_what_would_be_refused() {
    let mut desk = Desk::new(vec![
        requests("r", per_minute(2)),
        tokens("t", per_minute(100)),
        concurrent("c", 1),
    ]);
    let open = desk.ask(ANA, Cost::new(60, 0)).unwrap();
    assert_eq!(
        previewed(&desk, 50),
        [(0, None, 1), (1, Some(Kind::Tokens), 40), (2, Some(Kind::Concurrent), 0)]
    );
    assert!(desk.ask(ANA, Cost::new(50, 0)).is_err());
    drop(open);
}

#[test]
fn a_preview_knows_what_was_used_of_a_budget_whose_bucket_rests() {
    let mut desk = Desk::new(vec![tokens("t", per_day(100))]);
    assert!(desk.passes(ANA, 70));
    desk.pass(seconds(400));
    desk.limiter.sweep(desk.moment);
    assert_eq!(previewed(&desk, 40), [(0, Some(Kind::Tokens), 30)]);
    assert_eq!(previewed(&desk, 30), [(0, None, 30)]);
    assert_eq!(desk.limiter.buckets(0), 1, "still at rest");
}

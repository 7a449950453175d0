//! Explanations of what comes before the pick.

use std::sync::Arc;

use openai::Route;

use super::*;
use crate::testing::{at, body, exchange_at, gateway};
use crate::{Exchange, Wishes};

const POOL: &str = "  schedulers:\n  - name: chat\n    modelName: llama\n    saturation: { concurrency: 1 }\n    endpoints: [{ url: 'http://10.0.0.1:8000' }]\n";
const FLOW: &str = "  objectives: [{ name: fast, priority: Critical }, { name: slow, priority: Sheddable }]\n  flowControl: {}\n";

fn sent(gateway: &Arc<Gateway>) -> Exchange {
    let mut exchange = exchange_at(gateway, at(0));
    exchange.arrive(at(0)).unwrap();
    exchange.place(&body("llama"), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    exchange
}

fn wishing(objective: &str) -> Asker {
    let wishes = Wishes { objective: Some(objective.into()), ..Wishes::default() };
    Asker { wishes, ..Asker::default() }
}

fn explain(gateway: &Arc<Gateway>, asker: &Asker) -> DecisionView {
    gateway.explain(Route::ChatCompletions, &body("llama"), asker, at(0)).unwrap()
}

#[test]
fn a_request_for_a_pool_with_room_goes_and_its_band_and_flow_are_told() {
    let gateway = gateway(&format!("{POOL}{FLOW}"));
    let flow = explain(&gateway, &wishing("fast")).flow.unwrap();
    assert_eq!((&*flow.outcome, &*flow.band, &*flow.flow), ("goes", "Critical", "anonymous"));
    assert_eq!((flow.unknown_objective, flow.ahead), (false, None));
    assert!(explain(&gateway, &wishing("fats")).flow.unwrap().unknown_objective);
}

#[test]
fn a_request_for_a_full_pool_is_told_whether_it_waits_and_behind_how_many() {
    let gateway = gateway(&format!("{POOL}{FLOW}"));
    let _first = sent(&gateway);
    let mut second = exchange_at(&gateway, at(0));
    let _waits = second.place(&body("llama"), None, at(0)).unwrap();
    let flow = explain(&gateway, &Asker::default()).flow.unwrap();
    assert_eq!((&*flow.outcome, flow.ahead), ("waits", Some(1)));
    assert_eq!(explain(&gateway, &wishing("fast")).flow.unwrap().ahead, Some(0));
    let flow = explain(&gateway, &wishing("slow")).flow.unwrap();
    assert_eq!((&*flow.outcome, flow.reason.as_deref()), ("refused", Some("saturated")));
    assert!(flow.retry_after_ms >= Some(1000));
    assert_eq!(gateway.bands(at(0))[0].requests, 1, "who asks does not queue");
    assert_eq!(gateway.bands(at(0)).iter().map(|band| band.promises).sum::<u64>(), 0);
}

#[test]
fn without_a_queue_and_without_limits_nothing_is_told_of_them() {
    let gateway = gateway(POOL);
    let view = explain(&gateway, &Asker::default());
    assert!(view.flow.is_none() && view.limits.is_empty());
}

#[test]
fn limits_are_told_with_what_is_left_and_asking_costs_nothing() {
    let rules = "  rateLimits:\n  - { name: few, requests: { perMinute: 1 } }\n  - { name: big, per: [model], tokens: { perDay: 1000000 } }\n  - { name: other, match: { models: [else] }, concurrent: 1 }\n  - { name: trial, shadow: true, concurrent: 1 }\n";
    let gateway = gateway(&format!("{POOL}{rules}"));
    for _ in 0..3 {
        let limits = explain(&gateway, &Asker::default()).limits;
        let told: Vec<_> = limits.iter().map(|limit| (&*limit.rule, limit.shadow)).collect();
        assert_eq!(told, [("few", false), ("big", false), ("trial", true)]);
        assert!(limits.iter().all(|limit| limit.refuses.is_none()));
        assert_eq!(limits[0].bucket.meters[0].remaining, 1);
        assert_eq!(limits[1].bucket.model.as_deref(), Some("llama"));
    }
    assert_eq!(
        gateway.rate_limit_views(9, at(0)).iter().map(|rule| rule.buckets).sum::<usize>(),
        0
    );
    let _open = sent(&gateway);
    let limits = explain(&gateway, &Asker::default()).limits;
    let refuses: Vec<_> = limits
        .iter()
        .map(|limit| limit.refuses.as_ref().map(|why| (&*why.kind, why.wait_ms)))
        .collect();
    assert_eq!(refuses[0], Some(("requests", 60_000)));
    assert_eq!(refuses[1], None);
    assert_eq!(refuses[2].unwrap().0, "concurrent");
    assert!(limits[1].bucket.meters[0].remaining < 1_000_000, "a reservation is open");
}

#[test]
fn it_is_asked_as_one_of_the_documents_callers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.yaml");
    std::fs::write(&file, "keys: []\n").unwrap();
    let auth = format!(
        "  auth: {{ apiKeys: {{ file: '{}' }}, callers: [{{ name: a, tenant: team, objective: slow, models: [llama] }}, {{ name: b, models: [sql] }}] }}\n  rateLimits: [{{ name: r, per: [tenant, key], concurrent: 1 }}]\n",
        file.display()
    );
    let gateway = gateway(&format!("{POOL}{FLOW}{auth}"));
    gateway.use_keys(crate::Keys::load(&gateway.spec(), Some(&gateway)).unwrap());
    let named = |name: &str| Asker { caller: Some(name.to_owned()), ..Asker::default() };
    let asker = Asker { credential: Some("key-1".to_owned()), ..named("a") };
    let view = explain(&gateway, &asker);
    let flow = view.flow.unwrap();
    assert_eq!((&*flow.flow, &*flow.band), ("team", "Sheddable"));
    let bucket = &view.limits[0].bucket;
    assert_eq!((bucket.tenant.as_deref(), bucket.key.as_deref()), (Some("team"), Some("key-1")));
    let refused = |name: &str| {
        let explained =
            gateway.explain(Route::ChatCompletions, &body("llama"), &named(name), at(0));
        explained.unwrap_err()
    };
    assert_eq!(refused("b").code, "model_not_found");
    let unknown = refused("c");
    assert_eq!(unknown.code, "unknown_caller");
    assert!(unknown.message.contains("callers: a, b"), "{}", unknown.message);
}

use std::sync::Arc;

use openai::Route;
use telemetry::metrics::labels::Shadow as Label;

use crate::Gateway;
use crate::testing::{at, body, document, exchange, gateway, pool_of, scrape};

/// One pool of two endpoints; the policy in force looks at queues alone.
fn spec(shadow: &str) -> String {
    format!(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    weights: {{ queue: 1, predictedLatency: 0 }}\n    {shadow}\n    \
         endpoints: [{{ url: 'http://10.0.0.1:8000' }}, {{ url: 'http://10.0.0.2:8000' }}]\n"
    )
}

const BY_MEMORY: &str = "shadow: { weights: { kvCache: 1, predictedLatency: 0 } }";

/// The first endpoint has the shorter queue, the second more memory.
fn contrary(gateway: &Gateway) {
    scrape(gateway, 0, 0, 0.8);
    scrape(gateway, 1, 20, 0.1);
}

fn place(gateway: &Arc<Gateway>, times: usize) {
    for _ in 0..times {
        exchange(gateway).place(&body("llama"), None, at(0)).unwrap();
    }
}

fn counts(gateway: &Gateway) -> [u64; 3] {
    let decisions = &gateway.catalog().pools[0].metrics.shadow_decisions;
    [Label::Same, Label::Different, Label::Refused].map(|outcome| decisions.of(outcome).get())
}

#[test]
fn without_a_shadow_there_is_no_second_decision() {
    let gateway = pool_of(2);
    place(&gateway, 10);
    assert_eq!(counts(&gateway), [0, 0, 0]);
    assert!(gateway.decisions(None, 1)[0].shadow.is_none());
}

#[test]
fn a_shadow_that_would_choose_otherwise_is_seen_and_not_followed() {
    let gateway = gateway(&spec(BY_MEMORY));
    contrary(&gateway);
    place(&gateway, 10);
    assert_eq!(counts(&gateway), [0, 10, 0]);
    let decision = &gateway.decisions(None, 1)[0];
    let shadow = decision.shadow.as_ref().unwrap();
    assert_eq!(decision.order[0], "10.0.0.1:8000");
    assert_eq!(shadow.endpoint.as_deref(), Some("10.0.0.2:8000"));
    assert!(!shadow.same);
    assert_eq!(shadow.scorers[0].name, "kv-cache");
    // Twenty requests wait where the shadow would have gone.
    assert!(shadow.regret_ms.unwrap() < 0.0, "{shadow:?}");
    let metrics = &gateway.catalog().pools[0].metrics;
    assert_eq!(metrics.shadow_regret.count(), 10);
    let regret_seconds = f64::from(shadow.regret_ms.unwrap()) / 1000.0;
    assert!((metrics.shadow_regret.sum() / 10.0 - regret_seconds).abs() < 1e-6);
}

#[test]
fn the_same_policy_always_agrees_even_where_chance_decides() {
    let gateway = gateway(&spec("shadow: { weights: { queue: 1, predictedLatency: 0 } }"));
    place(&gateway, 200);
    assert_eq!(counts(&gateway), [200, 0, 0]);
    assert_eq!(gateway.catalog().pools[0].metrics.shadow_regret.sum(), 0.0);
}

#[test]
fn a_share_of_requests_is_rated() {
    let gateway = gateway(&spec("shadow: { share: 0.25 }"));
    place(&gateway, 2000);
    let rated: u64 = counts(&gateway).iter().sum();
    assert!((400..600).contains(&rated), "{rated}");
}

#[test]
fn a_reload_switches_the_shadow() {
    let gateway = gateway(&spec(""));
    contrary(&gateway);
    place(&gateway, 3);
    gateway.apply(&document(&spec(BY_MEMORY)));
    place(&gateway, 4);
    assert_eq!(counts(&gateway), [0, 4, 0]);
    gateway.apply(&document(&spec("")));
    place(&gateway, 5);
    assert_eq!(counts(&gateway), [0, 4, 0]);
}

#[test]
fn a_shadow_that_asks_who_holds_the_prompt_has_it_hashed() {
    let gateway = gateway(&spec("shadow: { weights: { prefix: 1, predictedLatency: 0 } }"));
    let text = "word ".repeat(400);
    let body = format!(r#"{{"model":"llama","messages":[{{"role":"user","content":"{text}"}}]}}"#);
    let view = gateway
        .explain(Route::ChatCompletions, body.as_bytes(), &Default::default(), at(0))
        .unwrap();
    assert!(view.prompt_blocks > 0);
    assert!(view.shadow.is_some());
    assert_eq!(counts(&gateway), [0, 0, 0], "explaining counts nowhere");
}

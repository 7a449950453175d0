use serde_json::Value;
use std::time::Duration;

use super::*;
use crate::testing::{at, body, document, exchange, gateway, pool_of, scrape};

fn read(answer: &LiveAnswer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn shape(answer: &LiveAnswer) -> String {
    read(answer)["shape"].as_str().unwrap().to_owned()
}

#[test]
fn who_has_just_come_is_told_everything_and_then_only_what_changes() {
    let gateway = pool_of(2);
    scrape(&gateway, 0, 3, 0.5);
    let whole = gateway.live(None, at(1));
    let view = read(&whole);
    assert_eq!(view["who"]["pools"][0]["endpoints"][1], "10.0.0.2:8000");
    assert_eq!(view["pools"][0]["rows"]["waiting"][0], 3);
    assert_eq!(view["pools"][0]["rows"]["kv"], serde_json::json!([0.5, null]));
    let brief = gateway.live(Some(&shape(&whole)), at(1));
    assert!(read(&brief).get("who").is_none() && read(&brief).get("history").is_none());
    assert_eq!(read(&brief)["pools"], view["pools"]);
    assert_ne!(brief.etag, whole.etag);
}

#[test]
fn nothing_is_computed_twice_within_a_beat() {
    let gateway = pool_of(2);
    let first = gateway.live(None, at(1));
    scrape(&gateway, 0, 9, 0.5);
    let again = gateway.live(None, at(1) + Duration::from_millis(500));
    assert_eq!((&first.etag, first.body.as_ptr()), (&again.etag, again.body.as_ptr()));
    let next = gateway.live(None, at(2));
    assert_ne!(next.etag, first.etag);
    assert_eq!(read(&next)["pools"][0]["rows"]["waiting"][0], 9);
}

#[test]
fn other_endpoints_are_another_shape() {
    let gateway = pool_of(1);
    let before = shape(&gateway.live(None, at(1)));
    assert_eq!(shape(&gateway.live(None, at(2))), before);
    let two = "  schedulers:\n  - name: chat\n    modelName: llama\n    endpoints: \
               [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.2:8000' }]\n";
    gateway.apply(&document(two));
    let answer = gateway.live(Some(&before), at(3));
    assert_ne!(shape(&answer), before);
    assert_eq!(read(&answer)["who"]["pools"][0]["endpoints"].as_array().unwrap().len(), 2);
}

#[test]
fn every_column_has_a_value_for_every_endpoint() {
    let view = read(&pool_of(3).live(None, at(1)));
    let rows = view["pools"][0]["rows"].as_object().unwrap();
    assert!(rows.len() >= 12);
    for (name, column) in rows {
        assert_eq!(column.as_array().unwrap().len(), 3, "{name}");
    }
}

#[test]
fn rates_are_those_since_the_last_beat() {
    let gateway = pool_of(1);
    gateway.live(None, at(1));
    for _ in 0..8 {
        exchange(&gateway).place(&body("llama"), None, at(1)).unwrap();
    }
    let view = read(&gateway.live(None, at(3)));
    // All eight were dropped, which is how clients leave.
    assert_eq!(view["pools"][0]["pulse"]["requests"], 4.0);
    assert_eq!(view["pools"][0]["pulse"]["failed"], 0.0);
}

#[test]
fn decisions_come_newest_first_with_what_the_list_shows() {
    let gateway = pool_of(2);
    for _ in 0..40 {
        exchange(&gateway).place(&body("llama"), None, at(1)).unwrap();
    }
    let view = read(&gateway.live(None, at(1)));
    let decisions = view["decisions"].as_array().unwrap();
    assert_eq!((decisions.len(), &decisions[0]["number"]), (DECISIONS_MAX, &39.into()));
    assert_eq!((&decisions[0]["model"], &decisions[0]["candidates"]), (&"llama".into(), &2.into()));
    assert!(decisions[0]["endpoint"].as_str().unwrap().starts_with("10.0.0."));
    assert!(decisions[0].get("shadow_same").is_none());
}

#[test]
fn a_policy_on_trial_is_named_and_counted() {
    let gateway = gateway(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    shadow: { weights: { kvCache: 1, predictedLatency: 0 } }\n    \
         endpoints: [{ url: 'http://10.0.0.1:8000' }]\n",
    );
    exchange(&gateway).place(&body("llama"), None, at(1)).unwrap();
    let view = read(&gateway.live(None, at(1)));
    assert_eq!(view["who"]["pools"][0]["shadow"][0]["name"], "kv-cache");
    assert_eq!(view["pools"][0]["shadow"]["same"], 1);
    assert_eq!(view["decisions"][0]["shadow_same"], true);
}

#[test]
fn the_history_goes_on_while_nobody_looks() {
    let gateway = pool_of(1);
    for second in 0..20 {
        gateway.sample(at(second));
        exchange(&gateway).place(&body("llama"), None, at(second)).unwrap();
    }
    let view = read(&gateway.live(None, at(20)));
    assert_eq!(view["history"]["requests"].as_array().unwrap().len(), 20);
    assert_eq!(view["history"]["requests"][0], 0.0);
    assert_eq!(view["history"]["requests"][19], 1.0);
    assert_eq!(
        (&view["recent"]["first"], view["recent"]["at_ms"].as_array().unwrap().len()),
        (&10.into(), 10)
    );
}

#[test]
fn the_larger_the_fleet_the_longer_the_beat() {
    assert_eq!(interval_ms(0), 1000);
    assert_eq!(interval_ms(ENDPOINTS_PER_SECOND), 1000);
    assert_eq!(interval_ms(65_535), 14_000);
}

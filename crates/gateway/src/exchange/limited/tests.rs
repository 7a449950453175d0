//! Requests under rate limits, without a wire.

use std::sync::Arc;

use openai::Route;

use super::*;
use crate::testing::{at, body, exchange_at, gateway};
use crate::{Failure, Gateway, Verdict};

const USAGE: &[u8] = br#"{"object":"chat.completion","usage":{"prompt_tokens":7,"completion_tokens":20,"total_tokens":27}}"#;
const EVENT: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";

fn limited_to(rules: &str) -> Arc<Gateway> {
    gateway(&format!(
        "  schedulers:\n  - {{ name: chat, modelName: llama, endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}\n  rateLimits: [{rules}]\n"
    ))
}

/// Tokens and requests that are left of the first rule.
fn left(gateway: &Gateway) -> Vec<u64> {
    let views = gateway.rate_limit_views(1, at(0));
    let fullest = views[0].fullest.first();
    let of = |kind: &str| {
        let meters = fullest.into_iter().flat_map(|bucket| &bucket.meters);
        meters.filter(|meter| meter.kind == kind).map(|meter| meter.remaining).min()
    };
    [of("requests"), of("tokens")].into_iter().flatten().collect()
}

fn asked(gateway: &Arc<Gateway>) -> Result<Exchange, Refusal> {
    let mut exchange = exchange_at(gateway, at(0));
    exchange.arrive(at(0))?;
    exchange.place(&body("llama"), None, at(0))?;
    Ok(exchange)
}

fn answered(gateway: &Arc<Gateway>, content_type: &str, payload: &[u8]) -> Exchange {
    let mut exchange = asked(gateway).unwrap();
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange.watch(Some(content_type));
    exchange.payload(payload, at(0));
    exchange
}

const BOTH: &str = "{ name: a, requests: { perMinute: 10 }, tokens: { perMinute: 10000 } }";

#[test]
fn usage_takes_the_place_of_the_reservation() {
    let gateway = limited_to(BOTH);
    let mut exchange = answered(&gateway, "application/json", USAGE);
    let reserved = 10_000 - left(&gateway)[1];
    assert!(reserved > 500, "{reserved}");
    exchange.finish(Ending::Complete, at(0));
    assert_eq!(left(&gateway), [9, 10_000 - 27]);
    drop(exchange);
    assert_eq!(left(&gateway), [9, 10_000 - 27], "exactly once");
    let metrics = gateway.metrics.rate_limit("a");
    assert_eq!((metrics.reserved_tokens.get(), metrics.settled_tokens.get()), (reserved, 27));
}

#[test]
fn a_client_that_leaves_early_pays_for_what_it_got() {
    let gateway = limited_to(BOTH);
    let mut exchange = answered(&gateway, "text/event-stream", EVENT);
    exchange.payload(EVENT, at(0));
    let input = exchange.limited.as_ref().unwrap().permit.cost().input_tokens;
    drop(exchange);
    assert_eq!(left(&gateway), [9, 10_000 - input - 2]);
}

#[test]
fn a_client_that_leaves_before_any_answer_pays_the_reservation() {
    let gateway = limited_to(BOTH);
    let mut exchange = asked(&gateway).unwrap();
    exchange.attempt(at(0)).unwrap();
    let cost = exchange.limited.as_ref().unwrap().permit.cost().total();
    drop(exchange);
    assert_eq!(left(&gateway), [9, 10_000 - cost]);
}

#[test]
fn a_request_that_reached_no_endpoint_costs_nothing() {
    let gateway = limited_to(BOTH);
    let mut exchange = asked(&gateway).unwrap();
    exchange.attempt(at(0)).unwrap();
    let Verdict::Refuse(refusal) = exchange.failed(Failure::Connect, at(0)) else { panic!() };
    exchange.refused(&refusal, at(0));
    assert_eq!(left(&gateway), [10, 10_000]);
}

#[test]
fn a_body_that_cannot_be_read_counts_as_a_request_without_tokens() {
    let gateway = limited_to(BOTH);
    let mut exchange = exchange_at(&gateway, at(0));
    exchange.arrive(at(0)).unwrap();
    let refusal = exchange.place(b"no json", None, at(0)).unwrap_err();
    exchange.refused(&refusal, at(0));
    assert_eq!(left(&gateway), [9, 10_000]);
}

#[test]
fn a_retry_does_not_reserve_again() {
    let gateway = gateway(
        "  schedulers:\n  - { name: chat, modelName: llama, endpoints: [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.2:8000' }] }\n  rateLimits: [{ name: a, requests: { perMinute: 10 }, tokens: { perMinute: 10000 } }]\n",
    );
    let mut exchange = asked(&gateway).unwrap();
    exchange.attempt(at(0)).unwrap();
    let before = left(&gateway);
    assert_eq!(exchange.failed(Failure::Connect, at(0)), Verdict::Retry);
    exchange.attempt(at(0)).unwrap();
    assert_eq!(left(&gateway), before);
}

#[test]
fn the_one_beyond_the_limit_is_a_429_that_says_which_rule_and_when() {
    let gateway = limited_to("{ name: few, requests: { perMinute: 2 } }");
    let open = [asked(&gateway).unwrap(), asked(&gateway).unwrap()];
    let mut exchange = exchange_at(&gateway, at(0));
    let refusal = exchange.arrive(at(0)).unwrap_err();
    assert_eq!(
        (refusal.status, refusal.code, refusal.component),
        (429, "rate_limit_exceeded", Component::Limit)
    );
    assert_eq!(refusal.retry_after_seconds(), Some(30));
    assert!(
        refusal.message.contains("`few`") && refusal.message.contains("30s"),
        "{}",
        refusal.message
    );
    exchange.refused(&refusal, at(0));
    let fields = exchange.rate_limit_fields(at(0));
    let text: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(
        text,
        [
            "x-ratelimit-limit-requests: 2",
            "x-ratelimit-remaining-requests: 0",
            "x-ratelimit-reset-requests: 1m0s"
        ]
    );
    assert_eq!(gateway.metrics.rate_limit("few").refusals.of(labels::LimitKind::Requests).get(), 1);
    drop(open);
}

#[test]
fn a_days_budget_is_an_insufficient_quota() {
    let gateway = limited_to("{ name: day, requests: { perDay: 1 } }");
    let _open = asked(&gateway).unwrap();
    let refusal = asked(&gateway).map(|_| ()).unwrap_err();
    assert_eq!(refusal.code, "insufficient_quota");
    assert!(refusal.retry_after.unwrap() <= Duration::from_secs(86_400));
}

#[test]
fn the_length_of_answers_is_learned_and_the_reservation_follows() {
    let gateway = limited_to("{ name: a, tokens: { perMinute: 1000000 } }");
    for _ in 0..20 {
        answered(&gateway, "application/json", USAGE).finish(Ending::Complete, at(0));
    }
    let exchange = asked(&gateway).unwrap();
    let cost = exchange.limited.as_ref().unwrap().permit.cost();
    assert!((20..24).contains(&cost.output_tokens), "{cost:?}");
}

#[test]
fn a_reload_keeps_what_was_used() {
    let gateway = limited_to(BOTH);
    let _open = asked(&gateway).unwrap();
    let used = left(&gateway);
    let text = format!(
        "  schedulers:\n  - {{ name: chat, modelName: llama, endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}\n  rateLimits: [{{ name: b, concurrent: 1 }}, {BOTH}]\n"
    );
    gateway.apply(&crate::testing::document(&text));
    let kept = gateway.rate_limit_views(1, at(0));
    assert_eq!(
        kept[1].fullest[0].meters.iter().map(|meter| meter.remaining).min(),
        used.iter().copied().min()
    );
}

#[test]
fn without_rules_a_request_holds_nothing() {
    let gateway = crate::testing::pool_of(1);
    let exchange = asked(&gateway).unwrap();
    assert!(exchange.limited.is_none());
    assert!(exchange.rate_limit_fields(at(0)).is_empty());
}

#[test]
fn every_route_with_a_body_has_the_name_that_the_document_knows() {
    for route in Route::ALL.into_iter().chain([Route::Opened]) {
        let text =
            format!("{{ name: a, match: {{ routes: [{}] }}, concurrent: 1 }}", route_name(route));
        if route.body() != BodyKind::None {
            limited_to(&text);
        }
    }
}

#[test]
fn times_are_written_as_openai_writes_them() {
    let texts = [
        (0, "0ms"),
        (20, "20ms"),
        (1000, "1s"),
        (1001, "2s"),
        (360_000, "6m0s"),
        (3_600_000, "1h0m0s"),
        (86_399_000, "23h59m59s"),
    ];
    for (millis, text) in texts {
        assert_eq!(span(Duration::from_millis(millis)), text);
    }
}

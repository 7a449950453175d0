//! Rate limits on the wire.

use serde_json::{Value, json};
use sim::Outcome;

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, ask, chat, request};
use crate::rewriting::{NEXT, document_of, split, two_pools};
use crate::sims::{asked, fast, fleet, prompt, seen, slow, streamed};

/// The fullest bucket of the first rule.
async fn fullest(gateway: &Gateway) -> Value {
    gateway.admin("/debug/limits").await.json()["rules"][0]["fullest"][0].clone()
}

async fn remaining(gateway: &Gateway) -> u64 {
    fullest(gateway).await["meters"][0]["remaining"].as_u64().unwrap_or(u64::MAX)
}

fn rules(rules: Value) -> Value {
    json!({ "rateLimits": rules })
}

async fn the_request_beyond_a_limit_is_a_429_with_everything_a_client_needs() {
    let fleet = fleet(1, fast()).await;
    let limit = json!([{ "name": "few", "requests": { "perMinute": 2 } }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    for left in ["1", "0"] {
        let answer = chat(gateway.traffic, &prompt("Hi", 2)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-ratelimit-limit-requests"), Some("2"));
        assert_eq!(answer.header("x-ratelimit-remaining-requests"), Some(left));
        assert!(answer.header("x-ratelimit-reset-requests").unwrap().ends_with('s'));
    }
    let answer = chat(gateway.traffic, &prompt("Hi", 2)).await;
    assert_eq!((answer.status, answer.code().as_str()), (429, "rate_limit_exceeded"));
    assert_eq!(answer.header("x-wicketgate-component"), Some("limit"));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), Some("0"));
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("`few`"));
    assert_eq!(asked(fleet.server(0)).await.len(), 2, "the endpoint never saw the third");
    let refusals = gateway
        .metric("wicketgate_rate_limit_refusals_total", &["rule=\"few\"", "kind=\"requests\""]);
    assert_eq!(refusals.await, 1.0);
}

/// SEC-5 and litellm#10555: what is reserved on arrival is corrected by what was used.
async fn usage_settles_what_was_reserved() {
    let fleet = fleet(1, fast()).await;
    let limit = json!([{ "name": "day", "tokens": { "perDay": 100_000 } }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    let answer = chat(gateway.traffic, &prompt("Hello there", 40)).await;
    let usage = answer.json()["usage"]["total_tokens"].as_u64().unwrap();
    gateway.until("it was settled", async || remaining(&gateway).await == 100_000 - usage).await;
    assert_eq!(
        gateway.metric("wicketgate_rate_limit_settled_tokens_total", &[]).await as u64,
        usage
    );
}

async fn a_client_that_leaves_early_pays_for_the_events_it_got() {
    let fleet = fleet(1, slow()).await;
    let limit = json!([{ "name": "day", "outputTokens": { "perDay": 100_000 }, "concurrent": 5 }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    let mut client = Client::connect(gateway.traffic).await;
    let body = streamed("Hello", 2000).to_string();
    client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    client.until_count("data: ", 12).await;
    drop(client);
    seen(fleet.server(0), |request| request.outcome == Outcome::Cancelled).await;
    gateway.until("its place is free", async || fullest(&gateway).await["in_flight"] == 0).await;
    let used = 100_000 - remaining(&gateway).await;
    assert!((8..500).contains(&used), "{used} of 2000 tokens were paid");
}

async fn places_are_held_to_the_end_of_a_stream_and_no_longer() {
    let fleet = fleet(1, slow()).await;
    let limit = json!([{ "name": "two", "concurrent": 2 }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(gateway.traffic).await;
        client.send(&request("POST", CHAT, &[], streamed("Hi", 60).to_string().as_bytes())).await;
        client.until("data: ").await;
        open.push(client);
    }
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 429);
    for client in &mut open {
        assert!(client.answer().await.complete);
    }
    gateway
        .until("a place is free", async || {
            chat(gateway.traffic, &prompt("Hi", 2)).await.status == 200
        })
        .await;
}

/// Who waits for a body is not sent one in vain (`reliability.md` A.4).
#[tokio::test]
async fn a_body_is_not_asked_for_where_the_head_is_refused() {
    let fleet = fleet(1, fast()).await;
    let limit = json!([{ "name": "one", "requests": { "perHour": 1 } }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
    let mut client = Client::connect(gateway.traffic).await;
    let fields = [("Expect", "100-continue"), ("Content-Length", "1000000")];
    client.send(&request("POST", CHAT, &fields, b"")).await;
    assert_eq!(client.answer().await.status, 429);
}

async fn a_reload_keeps_what_was_used_and_changes_what_changed() {
    let fleet = fleet(1, fast()).await;
    let one = json!({ "name": "one", "requests": { "perHour": 1 } });
    let gateway = Gateway::over(&fleet.urls(), rules(json!([one]))).await;
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 200);
    let both = json!([{ "name": "new", "concurrent": 9 }, one]);
    gateway.rewrite(&document(&fleet.urls(), rules(both)).to_string());
    gateway
        .until("the new rule is there", async || {
            gateway.admin("/metrics").await.text().contains("rule=\"new\"")
        })
        .await;
    assert_eq!(chat(gateway.traffic, &prompt("Hi", 2)).await.status, 429);
    gateway.rewrite(&document(&fleet.urls(), json!({})).to_string());
    gateway
        .until("there is no rule", async || {
            chat(gateway.traffic, &prompt("Hi", 2)).await.status == 200
        })
        .await;
}

async fn a_shadow_rule_only_counts() {
    let fleet = fleet(1, fast()).await;
    let limit = json!([{ "name": "trial", "requests": { "perHour": 1 }, "shadow": true }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    for _ in 0..3 {
        let answer = chat(gateway.traffic, &prompt("Hi", 2)).await;
        assert_eq!((answer.status, answer.header("x-ratelimit-limit-requests")), (200, None));
    }
    let shadowed = gateway.metric("wicketgate_rate_limit_shadow_refusals_total", &[]).await;
    assert_eq!(shadowed, 2.0);
}

async fn lists_of_models_are_never_limited() {
    let fleet = fleet(1, fast()).await;
    let limit = json!([{ "name": "one", "requests": { "perHour": 1 } }]);
    let gateway = Gateway::over(&fleet.urls(), rules(limit)).await;
    for _ in 0..3 {
        assert_eq!(ask(gateway.traffic, "GET", "/v1/models", &[], b"").await.status, 200);
    }
}

/// People write the name that clients ask for; those that stand for it are meant as well.
async fn a_limit_holds_by_the_name_that_clients_ask_for() {
    let fleet = two_pools().await;
    for named in ["chat", NEXT] {
        let mut document = document_of(&fleet.urls(), split([0, 1]));
        let rule = json!({ "name": "few", "per": ["model"], "match": { "models": [named] }, "requests": { "perHour": 1 } });
        document["spec"]["rateLimits"] = json!([rule]);
        let gateway = Gateway::with_document(&document, &[]).await;
        gateway.scraped(2).await;
        let asked = |model: &str| {
            let mut body = prompt("Hi", 2);
            body["model"] = json!(model);
            body
        };
        assert_eq!(chat(gateway.traffic, &asked("chat")).await.status, 200);
        assert_eq!(chat(gateway.traffic, &asked("chat")).await.status, 429, "{named}");
        assert_eq!(fullest(&gateway).await["model"], named);
        assert_eq!(chat(gateway.traffic, &asked("llama-3.1-8b")).await.status, 200, "another");
    }
}

crate::front::on_both_paths!(
    the_request_beyond_a_limit_is_a_429_with_everything_a_client_needs,
    usage_settles_what_was_reserved,
    a_client_that_leaves_early_pays_for_the_events_it_got,
    places_are_held_to_the_end_of_a_stream_and_no_longer,
    a_reload_keeps_what_was_used_and_changes_what_changed,
    a_shadow_rule_only_counts,
    lists_of_models_are_never_limited,
    a_limit_holds_by_the_name_that_clients_ask_for,
);

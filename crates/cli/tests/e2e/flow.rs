//! Requests that wait for a full pool, on the wire.

use serde_json::{Value, json};
use sim::{Fleet, ServerSpec};

use crate::commands::run;
use crate::gateway::{Gateway, document};
use crate::http::{Answer, CHAT, Client, request};
use crate::sims::{asked_of_all, fast, fleet, prompt, slow, streamed};

const OBJECTIVE: &str = "x-gateway-inference-objective";

/// A gateway that lets each endpoint have one request at a time.
async fn one_at_a_time(fleet: &Fleet, flow: Value) -> Gateway {
    one_at_a_time_for(fleet, json!({ "flowControl": flow })).await
}

/// The same with more in its document.
async fn one_at_a_time_for(fleet: &Fleet, extra: Value) -> Gateway {
    let objectives = json!([
        { "name": "critical", "priority": "Critical" },
        { "name": "sheddable", "priority": "Sheddable" },
    ]);
    let mut document = document(&fleet.urls(), extra);
    document["spec"]["objectives"] = objectives;
    document["spec"]["schedulers"][0]["saturation"] = json!({ "concurrency": 1 });
    let gateway = Gateway::with_document(&document, &[]).await;
    gateway.scraped(fleet.servers().len()).await;
    gateway
}

/// Begins a chat and does not wait for its answer.
async fn begin(gateway: &Gateway, body: &Value, headers: &[(&str, &str)]) -> Client {
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&request("POST", CHAT, headers, body.to_string().as_bytes())).await;
    client
}

async fn ask(gateway: &Gateway, body: &Value, headers: &[(&str, &str)]) -> Answer {
    begin(gateway, body, headers).await.answer().await
}

/// Keeps the one endpoint busy until the client is dropped.
async fn occupy(gateway: &Gateway) -> Client {
    let mut client = begin(gateway, &streamed("Hello", 5000), &[]).await;
    client.until("data:").await;
    client
}

async fn queued(gateway: &Gateway, count: u64) {
    gateway
        .until("they wait", async || {
            let page = gateway.admin("/debug/flow").await.json();
            let bands = page["bands"].as_array().unwrap().clone();
            bands.iter().map(|band| band["requests"].as_u64().unwrap()).sum::<u64>() == count
        })
        .await;
}

async fn a_request_for_a_full_pool_waits_and_is_then_answered() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let first = occupy(&gateway).await;
    let mut second = begin(&gateway, &prompt("Hi", 2), &[]).await;
    queued(&gateway, 1).await;
    assert_eq!(asked_of_all(&fleet).await.len(), 1, "it has not been sent");
    assert_eq!(gateway.metric("wicketgate_flow_queue_requests", &["\"standard\""]).await, 1.0);
    drop(first);
    let answer = second.answer().await;
    assert_eq!((answer.status, answer.complete), (200, true));
    queued(&gateway, 0).await;
    let count = "wicketgate_flow_queue_duration_seconds_count";
    assert_eq!(gateway.metric(count, &["\"standard\""]).await, 2.0);
}

/// FC-1, FC-12: told apart by a reason in header and error, and when to come back.
async fn sheddable_requests_are_refused_at_once_while_others_wait() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let _first = occupy(&gateway).await;
    let answer = ask(&gateway, &prompt("Hi", 2), &[(OBJECTIVE, "sheddable")]).await;
    assert_eq!((answer.status, answer.code()), (429, "saturated".to_owned()));
    assert_eq!(answer.json()["error"]["reason"], "saturated");
    assert_eq!(answer.header("x-wicketgate-dropped-reason"), Some("saturated"));
    assert_eq!(answer.header("x-llm-d-request-dropped-reason"), Some("rejected-saturated"));
    assert_eq!(answer.header("x-wicketgate-component"), Some("flow"));
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    let shed = ["\"sheddable\"", "\"saturated\""];
    assert_eq!(gateway.metric("wicketgate_flow_shed_total", &shed).await, 1.0);
}

async fn critical_requests_go_before_those_that_came_earlier() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let first = occupy(&gateway).await;
    let mut standard = begin(&gateway, &streamed("Standard", 5000), &[]).await;
    queued(&gateway, 1).await;
    let mut critical = begin(&gateway, &prompt("Hi", 2), &[(OBJECTIVE, "critical")]).await;
    queued(&gateway, 2).await;
    drop(first);
    assert_eq!(critical.answer().await.status, 200);
    standard.until("data:").await;
    let sizes: Vec<_> = asked_of_all(&fleet).await.iter().map(|asked| asked.body_bytes).collect();
    assert!(sizes[1] < sizes[0] && sizes[1] < sizes[2], "the critical one went second: {sizes:?}");
}

/// Headroom: one tenant fills half of the pool, another finds room at once; without headroom it would wait.
async fn a_tenant_beyond_its_part_leaves_room_for_whoever_comes() {
    const TENANT: &str = "x-gateway-inference-fairness-id";
    let (noisy, quiet) = ([(TENANT, "noisy")], [(TENANT, "quiet")]);
    let fleet = fleet(1, slow()).await;
    let mut with = document(
        &fleet.urls(),
        json!({ "flowControl": { "headroom": { "share": 0.5, "stretch": 100 } } }),
    );
    with["spec"]["schedulers"][0]["saturation"] = json!({ "concurrency": 4 });
    let gateway = Gateway::with_document(&with, &[]).await;
    gateway.scraped(1).await;
    // Somebody else is there, if only now and then.
    assert_eq!(ask(&gateway, &prompt("Hi", 2), &quiet).await.status, 200);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = begin(&gateway, &streamed("Hello", 5000), &noisy).await;
        stream.until("data:").await;
        streams.push(stream);
    }
    let mut third = begin(&gateway, &streamed("Third", 5000), &noisy).await;
    queued(&gateway, 1).await;
    assert_eq!(
        ask(&gateway, &prompt("Hi", 2), &quiet).await.status,
        200,
        "past the one that waits"
    );
    queued(&gateway, 1).await;
    let beyond = "wicketgate_flow_dispatched_beyond_part_total";
    assert_eq!(gateway.metric(beyond, &["\"standard\""]).await, 1.0, "the second was");
    // The room is there all the same: it is kept.
    with["spec"]["flowControl"] = json!({ "headroom": { "enabled": false } });
    gateway.rewrite(&with.to_string());
    third.until("data:").await;
}

/// FC-5: to the millisecond, not to the second.
async fn a_wait_ends_with_its_ttl_and_says_so() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({ "defaultBand": { "ttl": "150ms" } })).await;
    let _first = occupy(&gateway).await;
    let begun = tokio::time::Instant::now();
    let answer = ask(&gateway, &prompt("Hi", 2), &[]).await;
    assert!(begun.elapsed() >= std::time::Duration::from_millis(150));
    assert_eq!((answer.status, answer.code()), (429, "ttl_expired".to_owned()));
    assert_eq!(answer.header("x-wicketgate-dropped-reason"), Some("ttl-expired"));
    assert_eq!(answer.header("x-llm-d-request-dropped-reason"), Some("rejected-ttl-expired"));
}

/// FC-6.
async fn a_client_that_leaves_the_queue_is_never_sent() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let first = occupy(&gateway).await;
    let second = begin(&gateway, &prompt("Hi", 2), &[]).await;
    queued(&gateway, 1).await;
    drop(second);
    queued(&gateway, 0).await;
    drop(first);
    assert_eq!(ask(&gateway, &prompt("Hi", 2), &[]).await.status, 200);
    assert_eq!(asked_of_all(&fleet).await.len(), 2);
}

/// FC-7: bodies in the queue are bounded in bytes.
async fn a_band_holds_no_more_bytes_than_it_may() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({ "defaultBand": { "bytesMax": "64KiB" } })).await;
    let _first = occupy(&gateway).await;
    let large = prompt(&"word ".repeat(8000), 2);
    let _second = begin(&gateway, &large, &[]).await;
    queued(&gateway, 1).await;
    let answer = ask(&gateway, &large, &[]).await;
    assert_eq!((answer.status, answer.code()), (429, "band_full".to_owned()), "{}", answer.text());
    assert!(answer.text().contains("bytes"), "{}", answer.text());
    let larger = prompt(&"word ".repeat(20_000), 2);
    assert_eq!(ask(&gateway, &larger, &[]).await.status, 413, "it could never wait");
}

/// FC-11: the victim gets a clean error, and its endpoint is free. Behind a proxy that is only so until the
/// endpoint's head has passed, which is tried in `tests/envoy` with an endpoint that sends none.
#[tokio::test]
async fn a_critical_request_calls_back_one_that_has_not_answered() {
    let stuck = ServerSpec { time_scale: 1000.0, ..ServerSpec::default() };
    let fleet = fleet(1, stuck).await;
    let flow =
        json!({ "revoke": true, "bands": [{ "priority": "Sheddable", "whenSaturated": "queue" }] });
    let gateway = one_at_a_time(&fleet, flow).await;
    let mut low = begin(&gateway, &streamed("Hello", 5), &[(OBJECTIVE, "sheddable")]).await;
    gateway.until("it was sent", async || asked_of_all(&fleet).await.len() == 1).await;
    let _critical = begin(&gateway, &streamed("Hi", 2), &[(OBJECTIVE, "critical")]).await;
    let answer = low.answer().await;
    assert_eq!((answer.status, answer.code()), (429, "evicted".to_owned()));
    assert_eq!(answer.header("x-llm-d-request-dropped-reason"), Some("evicted"));
    gateway
        .until("the critical one was sent", async || asked_of_all(&fleet).await.len() == 2)
        .await;
}

async fn a_deadline_that_cannot_be_met_is_refused_with_the_expected_time() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let long = prompt(&"word ".repeat(20_000), 2);
    let answer = ask(&gateway, &long, &[("x-wicketgate-deadline-ms", "10")]).await;
    assert_eq!((answer.status, answer.code()), (429, "deadline".to_owned()));
    let expected: u64 = answer.header("x-wicketgate-predicted-ttft-ms").unwrap().parse().unwrap();
    assert!(expected > 10, "{expected}");
    let patient = ask(&gateway, &long, &[("x-wicketgate-deadline-ms", "600000")]).await;
    assert_eq!(patient.status, 200);
}

/// Scale from zero.
async fn a_pool_without_endpoints_holds_requests_until_one_comes() {
    let fleet = fleet(1, fast()).await;
    let mut empty = document(&[], json!({ "flowControl": {} }));
    empty["spec"]["schedulers"][0]["modelSelector"] = json!({});
    let gateway = Gateway::with_document(&empty, &[]).await;
    let mut client = begin(&gateway, &prompt("Hi", 2), &[]).await;
    queued(&gateway, 1).await;
    gateway.rewrite(&document(&fleet.urls(), json!({ "flowControl": {} })).to_string());
    assert_eq!(client.answer().await.status, 200);
}

/// What was accepted before the shutdown is served, also from the queue.
async fn draining_finishes_what_waits() {
    let fleet = fleet(1, slow()).await;
    let mut gateway = one_at_a_time(&fleet, json!({})).await;
    let first = occupy(&gateway).await;
    let mut second = begin(&gateway, &prompt("Hi", 2), &[]).await;
    queued(&gateway, 1).await;
    gateway.signal("TERM");
    gateway.until("it drains", async || gateway.admin("/readyz").await.status == 503).await;
    drop(first);
    assert_eq!(second.answer().await.status, 200);
    assert!(gateway.ended().await.success());
}

async fn turning_flow_control_off_lets_those_go_that_wait() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let _first = occupy(&gateway).await;
    let mut second = begin(&gateway, &prompt("Hi", 2), &[]).await;
    queued(&gateway, 1).await;
    gateway.rewrite(&document(&fleet.urls(), json!({})).to_string());
    assert_eq!(second.answer().await.status, 200);
}

/// FC-13: a name that stands for nothing is told, and counts as none.
async fn an_objective_that_is_not_there_is_told_in_the_answer_and_counted() {
    let fleet = fleet(1, fast()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let warning = "x-wicketgate-warning";
    let answer = ask(&gateway, &prompt("Hi", 2), &[(OBJECTIVE, "critcal")]).await;
    assert_eq!((answer.status, answer.header(warning)), (200, Some("unknown-objective")));
    let answer = ask(&gateway, &prompt("Hi", 2), &[(OBJECTIVE, "critical")]).await;
    assert_eq!((answer.status, answer.header(warning)), (200, None));
    let impatient = [(OBJECTIVE, "critcal"), ("x-wicketgate-deadline-ms", "1")];
    let answer = ask(&gateway, &prompt(&"word ".repeat(20_000), 2), &impatient).await;
    assert_eq!((answer.status, answer.header(warning)), (429, Some("unknown-objective")));
    let unknown = gateway.metric("wicketgate_flow_unknown_objectives_total", &[]).await;
    assert_eq!(unknown, 2.0);
}

/// FC-13: what waits keeps the place that it was given.
async fn an_objective_that_goes_while_its_request_waits_harms_nobody() {
    let fleet = fleet(1, slow()).await;
    let gateway = one_at_a_time(&fleet, json!({})).await;
    let first = occupy(&gateway).await;
    let mut standard = begin(&gateway, &streamed("Standard", 5000), &[]).await;
    queued(&gateway, 1).await;
    let mut critical = begin(&gateway, &prompt("Hi", 2), &[(OBJECTIVE, "critical")]).await;
    queued(&gateway, 2).await;
    let mut without = document(&fleet.urls(), json!({ "flowControl": {} }));
    without["spec"]["schedulers"][0]["saturation"] = json!({ "concurrency": 1 });
    gateway.rewrite(&without.to_string());
    gateway.said("document reloaded").await;
    queued(&gateway, 2).await;
    drop(first);
    assert_eq!(critical.answer().await.status, 200, "it goes first all the same");
    standard.until("data:").await;
}

/// A caller's ceiling holds whatever its requests say; what they say below it counts.
async fn a_client_can_lower_its_priority_and_never_raise_it() {
    let fleet = fleet(1, slow()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.yaml").display().to_string();
    let keys = ["humble", "proud"].map(|caller| {
        let made = ["keys", "create", "--file", &file, "--name", caller, "--caller", caller];
        let (code, key, complained) = run(&made);
        assert_eq!(code, 0, "{complained}");
        format!("Bearer {}", key.trim())
    });
    let auth = json!({
        "apiKeys": { "file": file },
        "callers": [{ "name": "humble", "priorityMax": "Standard" }, { "name": "proud" }],
    });
    let gateway = one_at_a_time_for(&fleet, json!({ "auth": auth, "flowControl": {} })).await;
    let [humble, proud] = keys.each_ref().map(|key| ("authorization", key.as_str()));
    let mut first = begin(&gateway, &streamed("Hello", 5000), &[proud]).await;
    first.until("data:").await;
    let earlier = begin(&gateway, &streamed("Earlier", 5000), &[proud]).await;
    queued(&gateway, 1).await;
    // Its header asks for more than it may have.
    let raised = begin(&gateway, &prompt("Hi", 2), &[humble, (OBJECTIVE, "critical")]).await;
    queued(&gateway, 2).await;
    let bands = gateway.admin("/debug/flow").await.json()["bands"].clone();
    assert_eq!((&bands[0]["band"], &bands[0]["requests"]), (&json!("Standard"), &json!(2)));
    for who in [humble, proud] {
        let lowered = ask(&gateway, &prompt("Hi", 2), &[who, (OBJECTIVE, "sheddable")]).await;
        assert_eq!((lowered.status, lowered.code()), (429, "saturated".to_owned()));
    }
    let mut allowed = begin(&gateway, &prompt("Hello", 2), &[proud, (OBJECTIVE, "critical")]).await;
    queued(&gateway, 3).await;
    drop(first);
    assert_eq!(allowed.answer().await.status, 200, "who may goes first");
    drop((earlier, raised));
}

crate::front::on_both_paths!(
    a_request_for_a_full_pool_waits_and_is_then_answered,
    sheddable_requests_are_refused_at_once_while_others_wait,
    critical_requests_go_before_those_that_came_earlier,
    a_tenant_beyond_its_part_leaves_room_for_whoever_comes,
    a_wait_ends_with_its_ttl_and_says_so,
    a_client_that_leaves_the_queue_is_never_sent,
    a_band_holds_no_more_bytes_than_it_may,
    a_deadline_that_cannot_be_met_is_refused_with_the_expected_time,
    a_pool_without_endpoints_holds_requests_until_one_comes,
    draining_finishes_what_waits,
    turning_flow_control_off_lets_those_go_that_wait,
    an_objective_that_is_not_there_is_told_in_the_answer_and_counted,
    an_objective_that_goes_while_its_request_waits_harms_nobody,
    a_client_can_lower_its_priority_and_never_raise_it,
);

//! Endpoints that fail before the first byte of their answer reached the client.

use serde_json::json;
use sim::{Fault, FaultKind, Fleet, Outcome};

use crate::gateway::Gateway;
use crate::http::{Answer, End, chat};
use crate::sims::{asked, asked_of_all, fast, fleet, listens, prompt, seen, streamed};

/// Lets every server fail so, from now on.
fn all_fail(fleet: &Fleet, kind: &FaultKind) {
    for server in fleet.servers() {
        server.fault(kind.clone());
    }
}

/// Sends chats until the first server was asked. All must be answered with 200.
///
/// Bounded by time, not by number: light traffic may keep to one endpoint until the picker takes its
/// means anew.
async fn chats_until_the_first_is_asked(gateway: &Gateway, fleet: &Fleet, stream: bool) {
    gateway
        .until("the first server is chosen", async || {
            let body = if stream { streamed("Hello", 3) } else { prompt("Hello", 3) };
            let answer = chat(gateway.traffic, &body).await;
            assert_eq!((answer.status, answer.complete), (200, true), "{answer:?}");
            !asked(fleet.server(0)).await.is_empty()
        })
        .await;
}

fn error(status: u16, retry_after: Option<&str>) -> FaultKind {
    let retry_after = retry_after.map(str::to_owned);
    let body = Some(format!(r#"{{"error": {{"message": "sim {status}" , "code":{status}}}}}"#));
    FaultKind::Error { status, retry_after, body, content_type: None }
}

async fn answer_of_all_failing(kind: FaultKind, stream: bool) -> (Answer, usize) {
    let fleet = fleet(3, fast()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "timeouts": { "firstByte": "300ms" } })).await;
    all_fail(&fleet, &kind);
    let body = if stream { streamed("Hello", 5) } else { prompt("Hello", 5) };
    let answer = chat(gateway.traffic, &body).await;
    let attempts = asked_of_all(&fleet).await.len();
    (answer, attempts)
}

/// Fault model, rows 1 and 38 (peers.md §4 C 34): the failure is remembered across requests.
#[tokio::test]
async fn an_endpoint_that_refuses_is_replaced_at_once_ejected_and_taken_back() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({ "scrape": { "staleAfter": "60s" } })).await;
    let dead = fleet.server(0);
    dead.fault(FaultKind::Refuse);
    listens(dead, false).await;
    gateway
        .until("the dead endpoint was tried", async || {
            assert_eq!(chat(gateway.traffic, &prompt("Hello", 2)).await.status, 200);
            gateway.metric("wicketgate_endpoint_ejections_total", &[]).await > 0.0
        })
        .await;
    assert_eq!(gateway.state_of(&dead.url()).await, "ejected");
    for _ in 0..10 {
        assert_eq!(chat(gateway.traffic, &prompt("Hello", 2)).await.status, 200);
    }
    assert_eq!(
        gateway.metric("wicketgate_retries_total", &["connect"]).await,
        1.0,
        "tried once only"
    );

    dead.heal();
    listens(dead, true).await;
    gateway
        .until("the endpoint was taken back", async || {
            gateway.state_of(&dead.url()).await == "ready"
        })
        .await;
    chats_until_the_first_is_asked(&gateway, &fleet, false).await;
}

/// Fault model, row 1, for a whole pool.
#[tokio::test]
async fn a_pool_that_refuses_connections_answers_503_in_openai_form() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    all_fail(&fleet, &FaultKind::Refuse);
    for server in fleet.servers() {
        listens(server, false).await;
    }
    for _ in 0..3 {
        let answer = chat(gateway.traffic, &prompt("Hello", 2)).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
        assert!(["endpoint", "picker"].contains(&answer.header("x-wicketgate-component").unwrap()));
        let error = &answer.json()["error"];
        assert!(
            error["message"].is_string() && error["type"].is_string() && error["code"].is_string()
        );
        assert_eq!(answer.end, End::Open, "the connection stays usable");
    }
    for server in fleet.servers() {
        server.heal();
        listens(server, true).await;
    }
    gateway
        .until("requests flow again", async || {
            chat(gateway.traffic, &prompt("Hello", 2)).await.status == 200
        })
        .await;
}

/// Fault model, rows 2 and 24.
#[tokio::test]
async fn an_endpoint_that_dies_before_its_head_is_replaced_once() {
    for reset in [false, true] {
        let fleet = fleet(2, fast()).await;
        let gateway = Gateway::over(&fleet.urls(), json!({})).await;
        let cut = FaultKind::Cut { after_chunks: None, reset };
        fleet.server(0).fault(cut.clone());
        chats_until_the_first_is_asked(&gateway, &fleet, true).await;
        assert_eq!(
            seen(fleet.server(0), |request| request.outcome != Outcome::Open).await.outcome,
            Outcome::Cut
        );
        drop(gateway);

        let (answer, attempts) = answer_of_all_failing(cut, true).await;
        assert_eq!((answer.status, answer.code()), (502, "endpoint_closed".to_owned()));
        assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
        assert_eq!(attempts, 2, "one retry and no more");
    }
}

/// Fault model, row 3: the head alone commits nothing.
#[tokio::test]
async fn an_endpoint_that_dies_between_head_and_first_event_is_replaced_once() {
    let cut = FaultKind::Cut { after_chunks: Some(0), reset: false };
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    fleet.server(0).fault(cut.clone());
    chats_until_the_first_is_asked(&gateway, &fleet, true).await;
    drop(gateway);
    let (answer, attempts) = answer_of_all_failing(cut, true).await;
    assert_eq!((answer.status, attempts), (502, 2), "{answer:?}");
}

/// peers.md §3.3: other routers make five attempts. Fault model, row 13.
#[tokio::test]
async fn a_502_or_503_is_tried_once_more_and_then_passed_on() {
    for status in [502, 503] {
        let fleet = fleet(2, fast()).await;
        let gateway = Gateway::over(&fleet.urls(), json!({})).await;
        fleet.server(0).fault(error(status, None));
        chats_until_the_first_is_asked(&gateway, &fleet, false).await;
        drop(gateway);

        let (answer, attempts) = answer_of_all_failing(error(status, None), false).await;
        assert_eq!((answer.status, attempts), (status, 2));
        assert_eq!(
            answer.text(),
            format!(r#"{{"error": {{"message": "sim {status}" , "code":{status}}}}}"#)
        );
        assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
        assert_eq!(answer.header("retry-after").is_some(), status == 503);
    }
}

/// peers.md §3.3 and §4 C 32, 33; SSE-7. Fault model, row 12.
#[tokio::test]
async fn an_error_about_the_request_itself_is_passed_on_unchanged_and_ejects_nobody() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({ "ejection": { "failures": 1 } })).await;
    let mut attempts = 0;
    for status in [400, 404, 413, 422, 500] {
        all_fail(&fleet, &error(status, None));
        for stream in [false, true] {
            let body = if stream { streamed("Hello", 5) } else { prompt("Hello", 5) };
            let answer = chat(gateway.traffic, &body).await;
            attempts += 1;
            assert_eq!(answer.status, status);
            assert_eq!(
                answer.text(),
                format!(r#"{{"error": {{"message": "sim {status}" , "code":{status}}}}}"#)
            );
            assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
            assert_eq!(asked_of_all(&fleet).await.len(), attempts, "{status} was repeated");
        }
        for server in fleet.servers() {
            server.heal();
        }
    }
    assert_eq!(gateway.metric("wicketgate_endpoint_ejections_total", &[]).await, 0.0);
}

/// peers.md §3.3: others hammer a server that said `Retry-After: 7` five times in half a second.
#[tokio::test]
async fn a_429_is_tried_on_one_other_endpoint_and_then_passed_on_with_its_retry_after() {
    let overloaded = || error(429, Some("7"));
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({ "ejection": { "failures": 1 } })).await;
    fleet.server(0).fault(overloaded());
    chats_until_the_first_is_asked(&gateway, &fleet, false).await;
    assert_eq!(gateway.metric("wicketgate_endpoint_ejections_total", &[]).await, 0.0);
    drop(gateway);

    let (answer, attempts) = answer_of_all_failing(overloaded(), false).await;
    assert_eq!((answer.status, answer.header("retry-after"), attempts), (429, Some("7"), 2));
    let (answer, _) = answer_of_all_failing(error(429, None), false).await;
    assert!(
        answer.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1,
        "one of ours where it has none"
    );
}

/// peers.md §4 A 11, C 43; fault model, row 7. Nobody knows whether the first still works on it, so
/// no second one is asked.
#[tokio::test]
async fn an_endpoint_that_stays_silent_costs_a_504_and_one_attempt() {
    for (after_chunks, stream) in [(None, true), (None, false), (Some(0), true)] {
        let (answer, attempts) =
            answer_of_all_failing(FaultKind::Stall { after_chunks }, stream).await;
        assert_eq!(
            (answer.status, answer.code(), attempts),
            (504, "endpoint_timeout".to_owned(), 1)
        );
        assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
    }
}

/// A given-up attempt must not keep a GPU busy.
#[tokio::test]
async fn an_attempt_that_timed_out_is_cancelled_at_the_endpoint() {
    let fleet = fleet(1, fast()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "timeouts": { "firstByte": "100ms" } })).await;
    fleet.server(0).fault(FaultKind::Stall { after_chunks: None });
    assert_eq!(chat(gateway.traffic, &prompt("Hello", 5)).await.status, 504);
    seen(fleet.server(0), |request| request.outcome == Outcome::Cancelled).await;
}

/// peers.md §4 A 6; fault model, row 11.
#[tokio::test]
async fn a_stream_without_an_event_is_replaced_once_and_never_passed_on() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    fleet.server(0).fault(FaultKind::EmptyStream);
    chats_until_the_first_is_asked(&gateway, &fleet, true).await;
    drop(gateway);
    let (answer, attempts) = answer_of_all_failing(FaultKind::EmptyStream, true).await;
    assert_eq!((answer.status, answer.code(), attempts), (502, "empty_stream".to_owned(), 2));
}

/// peers.md §4 A 7 and 8; fault model, row 10: while nothing is committed, an error has a status.
#[tokio::test]
async fn a_stream_that_begins_with_an_error_becomes_an_answer_with_its_status() {
    for done in [false, true] {
        let (answer, attempts) =
            answer_of_all_failing(FaultKind::ErrorEvent { after_chunks: 0, done }, true).await;
        assert_eq!((answer.status, attempts), (500, 1));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
        assert!(
            answer.json()["error"]["message"].as_str().unwrap().contains("injected"),
            "{answer:?}"
        );
        assert!(!answer.text().contains("[DONE]"));
    }
}

/// Fault model, row 6.
#[tokio::test]
async fn a_body_that_ends_short_of_its_length_never_looks_complete() {
    for bytes in [1, 100] {
        let (answer, _) = answer_of_all_failing(FaultKind::TruncatedBody { bytes }, false).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.complete && answer.end != End::Open, "{answer:?}");
        assert!(answer.body.len() <= bytes);
    }
    let (answer, attempts) =
        answer_of_all_failing(FaultKind::TruncatedBody { bytes: 0 }, false).await;
    assert_eq!((answer.status, attempts), (502, 2), "nothing was committed: {answer:?}");
}

/// Fault model, row 14: a request that kills servers meets two of them at most.
#[tokio::test]
async fn a_request_that_kills_its_endpoint_kills_at_most_one_more() {
    let fleet = fleet(4, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    all_fail(&fleet, &FaultKind::Poison { marker: "poison".to_owned(), down_ms: 20 });
    let answer = chat(gateway.traffic, &prompt("poison", 5)).await;
    assert_eq!(answer.status, 502);
    assert_eq!(asked_of_all(&fleet).await.len(), 2);
}

/// peers.md §4 C 35: retries are a share of the traffic, not a multiple of it.
#[tokio::test]
async fn retries_stop_when_their_budget_is_spent() {
    let fleet = fleet(2, fast()).await;
    let retry = json!({ "retry": { "budgetRatio": 0.0, "budgetFloorPerSecond": 1 } });
    let gateway = Gateway::over(&fleet.urls(), retry).await;
    all_fail(&fleet, &error(503, Some("1")));
    let before = tokio::time::Instant::now();
    for _ in 0..30 {
        assert_eq!(chat(gateway.traffic, &prompt("Hello", 2)).await.status, 503);
    }
    let retries = asked_of_all(&fleet).await.len() - 30;
    let allowed = before.elapsed().as_secs() + 3;
    assert!(retries as u64 <= allowed, "{retries} retries where {allowed} were allowed");
}

/// Fault model, row 26: the endpoint closed its idle connection just as we wrote.
#[tokio::test]
async fn a_connection_that_the_endpoint_closed_while_idle_costs_nothing() {
    let fleet = fleet(1, fast()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "retry": { "budgetFloorPerSecond": 0 } })).await;
    let server = fleet.server(0);
    for round in 0..5 {
        assert_eq!(chat(gateway.traffic, &prompt("Hello", 2)).await.status, 200, "round {round}");
        server.fault(Fault { duration_ms: Some(1), ..FaultKind::Refuse.into() });
        listens(server, false).await;
        listens(server, true).await;
        gateway
            .until("it is back", async || gateway.state_of(&server.url()).await == "ready")
            .await;
    }
}

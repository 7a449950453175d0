mod beliefs;
mod journeys;
mod routed;

use openai::Route;
use telemetry::metrics::labels;

use super::*;
use crate::testing::{at, body, exchange, exchange_at, gateway, in_flight, pool_of, scrape};

fn placed(gateway: &Arc<Gateway>) -> Exchange {
    let mut exchange = exchange(gateway);
    exchange.place(&body("llama"), None, at(0)).unwrap();
    exchange
}

fn refusal(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Refuse(refusal) => refusal,
        other => panic!("{other:?} is no refusal"),
    }
}

fn requests(gateway: &Gateway, outcome: labels::Outcome) -> u64 {
    let catalog = gateway.catalog();
    catalog.pools[0].metrics.requests.of(labels::Route::ChatCompletions).of(outcome).get()
}

#[test]
fn an_attempt_reserves_credit_that_its_end_gives_back() {
    let gateway = pool_of(2);
    let mut exchange = placed(&gateway);
    assert_eq!(in_flight(&gateway), 0, "choosing reserves nothing");
    exchange.attempt(at(0)).unwrap();
    assert_eq!(in_flight(&gateway), 1);
    assert_eq!(exchange.answered(200, None, at(1)), Verdict::Forward);
    exchange.finish(Ending::Complete, at(1));
    assert_eq!(in_flight(&gateway), 0);
    assert_eq!(requests(&gateway, labels::Outcome::Ok), 1);
}

#[test]
fn a_dropped_exchange_is_booked_as_a_client_that_left() {
    let gateway = pool_of(1);
    let mut exchange = placed(&gateway);
    exchange.attempt(at(0)).unwrap();
    drop(exchange);
    assert_eq!(in_flight(&gateway), 0);
    assert_eq!(requests(&gateway, labels::Outcome::Cancelled), 1);
    assert_eq!(gateway.metrics.gateway().requests_open.get(), 0);
    assert_eq!(gateway.catalog().pools[0].metrics.requests_in_flight.get(), 0);
}

#[test]
fn connect_failures_walk_the_list_and_end_in_503_with_retry_after() {
    let gateway = pool_of(3);
    let mut exchange = placed(&gateway);
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(exchange.attempt(at(0)).unwrap().endpoint);
        assert_eq!(exchange.failed(Failure::Connect, at(0)), Verdict::Retry);
    }
    seen.push(exchange.attempt(at(0)).unwrap().endpoint);
    let refusal = refusal(exchange.failed(Failure::Connect, at(0)));
    assert_eq!((refusal.status, refusal.component), (503, Component::Endpoint));
    assert!(refusal.retry_after.is_some());
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "each endpoint was tried once");
    assert_eq!(in_flight(&gateway), 0);
}

#[test]
fn an_endpoint_that_died_is_replaced_once() {
    let gateway = pool_of(4);
    let mut exchange = placed(&gateway);
    exchange.attempt(at(0)).unwrap();
    assert_eq!(exchange.failed(Failure::Closed, at(0)), Verdict::Retry);
    exchange.attempt(at(0)).unwrap();
    assert_eq!(refusal(exchange.failed(Failure::Closed, at(0))).status, 502);
}

#[test]
fn silence_is_not_repeated_elsewhere() {
    let gateway = pool_of(4);
    let mut exchange = placed(&gateway);
    exchange.attempt(at(0)).unwrap();
    assert_eq!(refusal(exchange.failed(Failure::Timeout, at(0))).status, 504);
}

#[test]
fn only_answers_of_an_endpoint_that_did_no_work_are_repeated() {
    for (status, expected) in [
        (200, Verdict::Forward),
        (400, Verdict::Forward),
        (404, Verdict::Forward),
        (422, Verdict::Forward),
        (429, Verdict::Retry),
        (500, Verdict::Forward),
        (502, Verdict::Retry),
        (503, Verdict::Retry),
        (504, Verdict::Forward),
    ] {
        let gateway = pool_of(2);
        let mut exchange = placed(&gateway);
        exchange.attempt(at(0)).unwrap();
        assert_eq!(exchange.answered(status, None, at(0)), expected, "{status}");
        if expected == Verdict::Retry {
            exchange.attempt(at(0)).unwrap();
            assert_eq!(exchange.answered(status, None, at(0)), Verdict::Forward, "{status}, twice");
        }
    }
}

#[test]
fn retries_stay_within_the_budget_of_the_pool() {
    let gateway = gateway(
        "  retry: { budgetRatio: 0, budgetFloorPerSecond: 2 }\n  schedulers:\n  - name: chat\n    modelName: llama\n    \
         endpoints: [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.2:8000' }]\n",
    );
    let retried = (0..10)
        .filter(|_| {
            let mut exchange = placed(&gateway);
            exchange.attempt(at(0)).unwrap();
            exchange.answered(503, Some(Duration::ZERO), at(0)) == Verdict::Retry
        })
        .count();
    assert_eq!(retried, 2);
}

#[test]
fn a_missing_adapter_is_looked_for_on_another_endpoint() {
    let gateway = gateway(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    loraAdapters: [sql]\n    \
         endpoints: [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.2:8000' }]\n",
    );
    let mut exchange = exchange(&gateway);
    exchange.place(&body("sql"), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    assert_eq!(exchange.answered(404, None, at(0)), Verdict::Retry);
}

#[test]
fn a_saturated_pool_answers_429_with_retry_after() {
    let gateway = pool_of(2);
    scrape(&gateway, 0, 40, 0.5);
    scrape(&gateway, 1, 50, 0.5);
    let refusal = exchange(&gateway).place(&body("llama"), None, at(0)).unwrap_err();
    assert_eq!(
        (refusal.status, refusal.code, refusal.component),
        (429, "saturated", Component::Flow)
    );
    assert!(refusal.retry_after_seconds().unwrap() >= 1);
    scrape(&gateway, 1, 0, 0.5);
    assert!(exchange(&gateway).place(&body("llama"), None, at(0)).is_ok());
}

#[test]
fn an_unknown_model_is_404_with_the_nearest_names() {
    let gateway = pool_of(1);
    let refusal = exchange(&gateway).place(&body("lama"), None, at(0)).unwrap_err();
    assert_eq!((refusal.status, refusal.code), (404, "model_not_found"));
    assert!(refusal.message.contains("`llama`"), "{}", refusal.message);
    assert_eq!(gateway.metrics.gateway().requests_open.get(), 0);
}

#[test]
fn a_conversation_returns_to_the_endpoint_that_holds_it() {
    let gateway = pool_of(4);
    for number in 0..4 {
        scrape(&gateway, number, 0, 0.1);
    }
    let mut said = format!(
        r#"{{"model":"llama","messages":[{{"role":"user","content":"{}"#,
        "word ".repeat(400)
    );
    let mut endpoints = Vec::new();
    for turn in 0..10 {
        let mut exchange = exchange(&gateway);
        exchange.place(format!(r#"{said}"}}]}}"#).as_bytes(), None, at(0)).unwrap();
        endpoints.push(exchange.attempt(at(0)).unwrap().endpoint);
        exchange.answered(200, None, at(0));
        exchange.finish(Ending::Complete, at(0));
        said.push_str(&format!(
            r#""}},{{"role":"user","content":"turn {turn} {}"#,
            "more ".repeat(100)
        ));
    }
    endpoints.dedup();
    assert_eq!(endpoints.len(), 1, "{endpoints:?}");
}

#[test]
fn a_burst_of_cold_requests_spreads_over_idle_endpoints() {
    let gateway = pool_of(8);
    for number in 0..8 {
        scrape(&gateway, number, 0, 0.0);
    }
    let held: Vec<_> = (0..200)
        .map(|n| {
            let mut exchange = exchange(&gateway);
            let body =
                format!(r#"{{"model":"llama","messages":[{{"role":"user","content":"{n} hi"}}]}}"#);
            exchange.place(body.as_bytes(), None, at(0)).unwrap();
            exchange.attempt(at(0)).unwrap();
            exchange
        })
        .collect();
    for member in gateway.members() {
        let share = member.state.in_flight();
        assert!((22..=28).contains(&share), "{share} of 200 on {}", member.authority);
    }
    drop(held);
}

#[test]
fn a_stream_that_broke_ends_with_an_error_event_on_a_line_of_its_own() {
    let gateway = pool_of(1);
    let mut exchange = placed(&gateway);
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange.watch(Some("text/event-stream; charset=utf-8"));
    exchange.payload(b"data: {\"choices\":[]}\n\ndata: {\"cho", at(1));
    assert!(exchange.stream_is_unfinished());
    let farewell = exchange.farewell(Ending::EndpointCut).unwrap();
    let text = String::from_utf8(farewell.to_vec()).unwrap();
    assert!(text.starts_with("\n\ndata: {\"error\""), "{text}");
    assert!(!text.contains("[DONE]"));
    exchange.finish(Ending::EndpointCut, at(1));
    assert_eq!(requests(&gateway, labels::Outcome::EndpointError), 1);
}

#[test]
fn a_stream_that_begins_with_an_error_has_that_errors_status() {
    let gateway = pool_of(1);
    let mut exchange = placed(&gateway);
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange.watch(Some("text/event-stream"));
    let held = b"data: {\"error\":{\"message\":\"too long\",\"type\":\"BadRequestError\",\"code\":400}}\n\n";
    exchange.payload(held, at(1));
    let (status, body) = exchange.opening_error(held).unwrap();
    assert_eq!(status, 400);
    assert!(body.starts_with(b"{\"error\""));
}

#[test]
fn an_answer_without_usage_still_counts_what_the_client_got() {
    let gateway = pool_of(1);
    let mut exchange = placed(&gateway);
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange.watch(Some("text/event-stream"));
    for _ in 0..3 {
        exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", at(1));
    }
    exchange.finish(Ending::ClientGone, at(2));
    assert_eq!(gateway.catalog().pools[0].metrics.output_tokens.get(), 3);
}

#[test]
fn explaining_reserves_nothing_and_names_every_candidate() {
    let gateway = pool_of(3);
    scrape(&gateway, 0, 0, 0.2);
    let view = gateway
        .explain(Route::ChatCompletions, &body("llama"), &Default::default(), at(1))
        .unwrap();
    assert_eq!(view.candidates.len(), 3);
    assert_eq!(view.order.len(), 3);
    assert!(view.candidates.iter().all(|candidate| candidate.scores.len() == view.scorers.len()));
    assert_eq!(in_flight(&gateway), 0);
    assert!(gateway.decisions(None, 10).is_empty());
}

#[test]
fn the_last_decisions_are_kept_newest_first_and_found_by_request() {
    let gateway = pool_of(2);
    let first = placed(&gateway);
    for _ in 0..300 {
        drop(placed(&gateway));
    }
    let last = placed(&gateway);
    let decisions = gateway.decisions(None, 1000);
    assert_eq!(decisions.len(), 256);
    assert_eq!(decisions[0].request_id, last.id().as_str());
    assert!(gateway.decisions(Some(first.id().as_str()), 1).is_empty(), "long gone");
    assert_eq!(gateway.decisions(Some(last.id().as_str()), 1)[0].candidates.len(), 2);
}

#[test]
fn an_endpoint_that_was_seen_to_be_slow_gets_less_where_expected_time_is_weighed() {
    let gateway = gateway(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    weights: { queue: 0, kvCache: 0, prefix: 0, predictedLatency: 1 }\n    \
         endpoints: [{ url: 'http://10.0.0.1:8000' }, { url: 'http://10.0.0.2:8000' }]\n",
    );
    let mut late = 0;
    for round in 0..80 {
        let mut exchange = exchange(&gateway);
        let text = format!("{round:04} {}", "word ".repeat(800));
        let body = format!(
            r#"{{"model":"llama","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
        );
        let sent = at(round * 10);
        exchange.place(body.as_bytes(), None, sent).unwrap();
        let is_slow = exchange.attempt(sent).unwrap().authority == "10.0.0.2:8000";
        exchange.answered(200, None, sent);
        exchange.watch(Some("text/event-stream"));
        let took = Duration::from_millis(if is_slow { 1500 } else { 100 });
        exchange.payload(
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n",
            sent + took,
        );
        exchange.finish(Ending::Complete, sent + took);
        late += u32::from(is_slow && round >= 40);
    }
    assert!(late <= 4, "{late} of the last 40 went to the slow one");
    let view = gateway
        .explain(Route::ChatCompletions, &body("llama"), &Default::default(), at(900))
        .unwrap();
    assert!(view.candidates.iter().all(|candidate| candidate.predicted_ttft_ms.is_some()));
}

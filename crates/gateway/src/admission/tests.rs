use std::sync::Arc;
use std::time::Duration;

use telemetry::metrics::labels::{Band, Rejection};
use types::Priority;

use crate::testing::{at, body, exchange_of, gateway, in_flight, scrape};
use crate::{Caller, Exchange, Gateway, Grant, Placed, Prospect, Refusal, Turn, Wishes};

/// One pool `chat` with this many endpoints, each of which takes one request at a time.
fn pool(endpoints: usize, flow: &str) -> Arc<Gateway> {
    let endpoints: Vec<_> =
        (1..=endpoints).map(|n| format!("{{ url: 'http://10.0.0.{n}:8000' }}")).collect();
    gateway(&format!(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    saturation: {{ concurrency: 1 }}\n    \
         endpoints: [{}]\n  objectives:\n  - {{ name: critical, priority: Critical }}\n  - {{ name: sheddable, priority: Sheddable }}\n  \
         flowControl: {flow}\n",
        endpoints.join(", ")
    ))
}

fn wish(objective: &str) -> Wishes {
    Wishes { objective: Some(objective.into()), ..Wishes::default() }
}

fn place(gateway: &Arc<Gateway>, wishes: Wishes) -> (Exchange, Result<Placed, Refusal>) {
    let mut exchange = exchange_of(gateway, Caller::anonymous(), wishes);
    let placed = exchange.place(&body("llama"), None, at(0));
    (exchange, placed)
}

/// Sends a request that finds room.
fn sent(gateway: &Arc<Gateway>, wishes: Wishes) -> Exchange {
    let (mut exchange, placed) = place(gateway, wishes);
    assert!(matches!(placed, Ok(Placed::Chosen)), "it had to wait or was refused");
    exchange.attempt(at(0)).unwrap();
    exchange
}

/// Sends a request that has to wait.
fn waits(gateway: &Arc<Gateway>, wishes: Wishes) -> (Exchange, Turn) {
    let (exchange, placed) = place(gateway, wishes);
    match placed {
        Ok(Placed::Waits(turn)) => (exchange, turn),
        Ok(Placed::Chosen) => panic!("there was room"),
        Err(refusal) => panic!("{refusal:?}"),
    }
}

fn refused(gateway: &Arc<Gateway>, wishes: Wishes) -> Refusal {
    let (mut exchange, placed) = place(gateway, wishes);
    let refusal = placed.expect_err("it is refused");
    exchange.refused(&refusal, at(0));
    refusal
}

async fn comes(turn: Turn) -> Grant {
    tokio::time::timeout(Duration::from_secs(5), turn.come()).await.expect("its turn").unwrap()
}

#[tokio::test]
async fn a_request_for_a_full_pool_waits_until_another_ends() {
    let gateway = pool(1, "{}");
    let first = sent(&gateway, Wishes::default());
    let (mut second, turn) = waits(&gateway, Wishes::default());
    drop(first);
    let grant = comes(turn).await;
    second.go(grant, at(1)).unwrap();
    second.attempt(at(1)).unwrap();
    assert_eq!(in_flight(&gateway), 1);
    drop(second);
    assert_eq!(in_flight(&gateway), 0);
}

#[tokio::test]
async fn one_that_ends_lets_one_go_and_no_more() {
    let gateway = pool(2, "{}");
    let (first, _second) = (sent(&gateway, Wishes::default()), sent(&gateway, Wishes::default()));
    let mut waiting: Vec<_> = (0..5).map(|_| waits(&gateway, Wishes::default())).collect();
    drop(first);
    let gone: Vec<_> =
        waiting.iter_mut().filter_map(|(_, turn)| turn.called.try_recv().ok()).collect();
    assert_eq!(gone.len(), 1, "the grant counts until credit is booked");
}

#[tokio::test]
async fn the_more_important_goes_first_however_late_it_came() {
    let gateway = pool(1, "{}");
    let first = sent(&gateway, Wishes::default());
    let (_standard, mut standard_turn) = waits(&gateway, Wishes::default());
    let (mut critical, turn) = waits(&gateway, wish("critical"));
    drop(first);
    critical.go(comes(turn).await, at(1)).unwrap();
    assert!(standard_turn.called.try_recv().is_err(), "it still waits");
}

#[tokio::test]
async fn a_body_that_was_refused_and_comes_again_as_more_important_waits_like_any_other() {
    let gateway = pool(1, "{}");
    let _first = sent(&gateway, Wishes::default());
    refused(&gateway, wish("sheddable"));
    let again = refused(&gateway, wish("sheddable"));
    assert_eq!(again.dropped_reason(), Some("saturated"));
    let (_critical, turn) = waits(&gateway, wish("critical"));
    drop(turn);
}

#[tokio::test]
async fn sheddable_work_is_refused_at_once_with_reason_and_time() {
    let gateway = pool(1, "{}");
    let _first = sent(&gateway, Wishes::default());
    let refusal = refused(&gateway, wish("sheddable"));
    assert_eq!((refusal.status, refusal.dropped_reason()), (429, Some("saturated")));
    assert!(refusal.retry_after_seconds().unwrap() >= 1);
    let pool = &gateway.catalog().pools[0];
    let shed = &pool.metrics.flow.get().unwrap().shed;
    assert_eq!(shed.of(Band::Sheddable).of(Rejection::Saturated).get(), 1);
    assert_eq!(pool.metrics.requests_rejected.of(Rejection::Saturated).get(), 1);
}

#[tokio::test]
async fn a_full_band_refuses_the_next() {
    let gateway = pool(1, "{ bands: [{ priority: 0, requestsMax: 1 }] }");
    let _first = sent(&gateway, Wishes::default());
    let _second = waits(&gateway, Wishes::default());
    let refusal = refused(&gateway, Wishes::default());
    assert_eq!((refusal.code, refusal.dropped_reason()), ("band_full", Some("band-full")));
    let ahead = ("x-wicketgate-queue-ahead", "1".into());
    assert!(refusal.reason_fields().any(|field| field == ahead), "how many wait before it");
}

#[tokio::test]
async fn a_full_queue_makes_room_for_what_is_more_important() {
    let gateway = pool(1, "{ requestsMax: 1 }");
    let _first = sent(&gateway, Wishes::default());
    let (_second, turn) = waits(&gateway, Wishes::default());
    let _critical = waits(&gateway, wish("critical"));
    let refusal = turn.come().await.expect_err("evicted");
    assert_eq!((refusal.status, refusal.dropped_reason()), (429, Some("evicted")));
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_place_up() {
    let gateway = pool(1, "{}");
    let first = sent(&gateway, Wishes::default());
    let (second, turn) = waits(&gateway, Wishes::default());
    let (mut third, third_turn) = waits(&gateway, Wishes::default());
    drop((second, turn));
    assert_eq!(gateway.bands(at(0))[0].requests, 1);
    drop(first);
    third.go(comes(third_turn).await, at(1)).unwrap();
}

#[tokio::test]
async fn leave_that_comes_as_the_client_goes_is_given_to_the_next() {
    let gateway = pool(1, "{}");
    let first = sent(&gateway, Wishes::default());
    let (_second, turn) = waits(&gateway, Wishes::default());
    let (mut third, third_turn) = waits(&gateway, Wishes::default());
    drop(first);
    drop(turn);
    third.go(comes(third_turn).await, at(1)).unwrap();
}

#[tokio::test]
async fn what_is_called_goes_even_if_a_scrape_says_full_just_then() {
    let gateway = gateway(
        "  schedulers:
  - name: chat
    modelName: llama
    endpoints: [{ url: 'http://10.0.0.1:8000' }]
  flowControl: {}
",
    );
    scrape(&gateway, 0, 4, 0.5);
    let (mut exchange, turn) = waits(&gateway, Wishes::default());
    scrape(&gateway, 0, 0, 0.5);
    gateway.admissions()[0].pump(&gateway, at(0));
    let grant = comes(turn).await;
    scrape(&gateway, 0, 40, 0.5);
    exchange.go(grant, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
}

#[tokio::test]
async fn a_wait_ends_with_its_time() {
    let gateway = pool(1, "{ defaultBand: { ttl: 50ms } }");
    let _first = sent(&gateway, Wishes::default());
    let (_second, turn) = waits(&gateway, Wishes::default());
    let next = gateway.admissions()[0].expire(at(1));
    assert_eq!(next, None, "nobody waits any more");
    let refusal = turn.come().await.expect_err("its time is over");
    assert_eq!((refusal.status, refusal.dropped_reason()), (429, Some("ttl-expired")));
}

#[tokio::test]
async fn a_pool_without_endpoints_holds_requests_until_one_comes() {
    let document = |endpoints: &str| {
        crate::testing::document(&format!(
            "  schedulers:\n  - {{ name: chat, modelName: llama, modelSelector: {{}}, endpoints: [{endpoints}] }}\n  flowControl: {{}}\n"
        ))
    };
    let gateway = crate::testing::gateway_of(&document(""));
    let (mut exchange, turn) = waits(&gateway, Wishes::default());
    gateway.apply(&document("{ url: 'http://10.0.0.1:8000' }"));
    let grant = comes(turn).await;
    exchange.go(grant, at(1)).unwrap();
    exchange.attempt(at(1)).unwrap();
}

#[tokio::test]
async fn a_pool_that_stays_without_endpoints_is_503_in_the_end() {
    let gateway = crate::testing::gateway(
        "  schedulers:\n  - { name: chat, modelName: llama, modelSelector: {}, endpoints: [] }\n  flowControl: { noEndpoint: { ttl: 2s } }\n",
    );
    let (_exchange, turn) = waits(&gateway, Wishes::default());
    gateway.admissions()[0].expire(at(3));
    let refusal = turn.come().await.expect_err("nobody came");
    assert_eq!((refusal.status, refusal.code), (503, "no_endpoints"));
}

#[tokio::test]
async fn without_flow_control_what_waited_goes() {
    let gateway = pool(1, "{}");
    let _first = sent(&gateway, Wishes::default());
    let (_second, turn) = waits(&gateway, Wishes::default());
    gateway.apply(&crate::testing::document(
        "  schedulers: [{ name: chat, modelName: llama, endpoints: [{ url: 'http://10.0.0.1:8000' }] }]\n",
    ));
    comes(turn).await;
    assert!(gateway.admissions().is_empty());
}

#[tokio::test]
async fn a_critical_request_that_waits_calls_a_lower_one_back() {
    let gateway = pool(1, "{ revoke: true, bands: [{ priority: -10, whenSaturated: queue }] }");
    let mut low = sent(&gateway, wish("sheddable"));
    let revocation = low.revocation().expect("it can be called back");
    let (mut critical, turn) = waits(&gateway, wish("critical"));
    tokio::time::timeout(Duration::from_secs(5), revocation.revoked()).await.unwrap();
    let refusal = low.revoked(at(0));
    assert_eq!((refusal.status, refusal.dropped_reason()), (429, Some("evicted")));
    low.refused(&refusal, at(0));
    drop(low);
    critical.go(comes(turn).await, at(1)).unwrap();
}

#[tokio::test]
async fn a_request_that_was_answered_is_not_called_back() {
    let gateway = pool(1, "{ revoke: true }");
    let mut low = sent(&gateway, wish("sheddable"));
    let revocation = low.revocation().unwrap();
    low.answered(200, None, at(0));
    low.watch(Some("text/event-stream"));
    low.payload(b"data: {}\n\n", at(0));
    let _critical = waits(&gateway, wish("critical"));
    let called = tokio::time::timeout(Duration::ZERO, revocation.revoked()).await;
    assert!(called.is_err() && low.revocation().is_none());
}

#[tokio::test]
async fn a_deadline_that_cannot_be_met_is_refused_with_the_predicted_time() {
    let gateway = crate::testing::pool_of(1);
    let wishes = Wishes { deadline: Some(Duration::from_millis(1)), ..Wishes::default() };
    let refusal = refused(&gateway, wishes);
    assert_eq!((refusal.status, refusal.dropped_reason()), (429, Some("deadline")));
    assert!(matches!(refusal.prospect, Some(Prospect::FirstTokenMs(time)) if time > 1));
}

#[tokio::test]
async fn an_objective_that_is_not_there_is_counted_and_counts_as_none() {
    let gateway = pool(1, "{}");
    let _first = sent(&gateway, wish("critcal"));
    let pool = &gateway.catalog().pools[0];
    let flow = pool.metrics.flow.get().unwrap();
    assert_eq!(flow.unknown_objectives.get(), 1);
    assert_eq!(flow.dispatched.of(Band::from(Priority::STANDARD)).get(), 1);
}

#[tokio::test]
async fn flows_take_turns_inside_a_band() {
    let gateway = pool(1, "{}");
    let of = |id: &str| Wishes { fairness_id: Some(id.into()), ..Wishes::default() };
    let mut running = sent(&gateway, of("greedy"));
    let mut greedy: Vec<_> = (0..20).map(|_| waits(&gateway, of("greedy"))).collect();
    let (mut modest, turn) = waits(&gateway, of("modest"));
    let mut before = 0;
    let mut turn = Some(turn);
    loop {
        drop(running);
        if let Some(waiting) = &mut turn
            && waiting.called.try_recv().is_ok()
        {
            break;
        }
        let at_turn = greedy.iter_mut().position(|(_, turn)| turn.called.try_recv().is_ok());
        let (exchange, _) = greedy.remove(at_turn.expect("somebody's turn"));
        running = exchange;
        before += 1;
        assert!(before <= 2, "one flow of twenty stands in front of another");
        let _ = (&mut modest, &mut turn);
    }
}

fn of(flow: &str) -> Wishes {
    Wishes { fairness_id: Some(flow.into()), ..Wishes::default() }
}

/// One endpoint with ten places.
fn ten_places(flow: &str) -> Arc<Gateway> {
    gateway(&format!(
        "  schedulers:\n  - name: chat\n    modelName: llama\n    saturation: {{ concurrency: 10 }}\n    \
         endpoints: [{{ url: 'http://10.0.0.1:8000' }}]\n  flowControl: {flow}\n"
    ))
}

#[tokio::test]
async fn a_flow_beyond_its_part_leaves_places_to_one_within_its_own() {
    let gateway = ten_places("{}");
    let quiet = sent(&gateway, of("quiet"));
    // 85 of a hundred places; the last place begun counts.
    let mut noisy: Vec<_> = (0..8).map(|_| sent(&gateway, of("noisy"))).collect();
    let (_waiting, mut turn) = waits(&gateway, of("noisy"));
    let (mut late, called) = waits(&gateway, of("late"));
    late.go(comes(called).await, at(0)).unwrap();
    late.attempt(at(0)).unwrap();
    assert!(turn.called.try_recv().is_err(), "it went past one that waits");
    assert_eq!(in_flight(&gateway), 10);
    drop((quiet, late));
    assert!(turn.called.try_recv().is_ok(), "eight are below the bound again");
    let catalog = gateway.catalog();
    let metrics = catalog.pools[0].metrics.flow.get().unwrap();
    assert!(metrics.dispatched_beyond.of(Band::Standard).get() >= 4);
    noisy.clear();
    assert_eq!(in_flight(&gateway), 0);
}

#[tokio::test]
async fn without_headroom_a_flow_takes_every_place() {
    let gateway = ten_places("{ headroom: { enabled: false } }");
    let _quiet = sent(&gateway, of("quiet"));
    let _noisy: Vec<_> = (0..9).map(|_| sent(&gateway, of("noisy"))).collect();
    let _late = waits(&gateway, of("late"));
}

#[tokio::test]
async fn leave_that_was_not_used_is_in_flight_no_more() {
    let gateway = ten_places("{}");
    let _quiet = sent(&gateway, of("quiet"));
    for _ in 0..20 {
        // Let go, and its client leaves before it is sent.
        let (exchange, placed) = place(&gateway, of("noisy"));
        assert!(matches!(placed, Ok(Placed::Chosen)));
        drop(exchange);
    }
    let noisy: Vec<_> = (0..8).map(|_| sent(&gateway, of("noisy"))).collect();
    assert_eq!(noisy.len(), 8);
}

#[test]
fn the_headroom_of_the_document_is_the_laboratorys_by_default() {
    let (said, played) = (config::Headroom::default(), sched::saturation::Reserve::default());
    assert_eq!((said.stretch, said.share.get()), (played.stretch, played.share));
    let settings = |gateway: &Gateway| gateway.catalog().pools[0].settings.saturation;
    assert_eq!(settings(&ten_places("{}")).reserve, Some(played));
    assert_eq!(settings(&ten_places("{ headroom: { enabled: false } }")).reserve, None);
}

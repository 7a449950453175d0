//! Requests that wait for a full pool.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gateway::Gateway;

use crate::conversation::Next;
use crate::names;
use crate::settings::Settings;
use crate::testing::{Stream, asking, body, chat, gateway, in_flight, set_by};
use crate::wire::{ProcessingResponse, Response};

/// One endpoint that takes one request at a time.
fn full_after_one(flow: &str) -> Arc<Gateway> {
    gateway(&format!(
        "  schedulers:
  - name: chat
    modelName: llama
    saturation: {{ concurrency: 1 }}
    endpoints: [{{ url: 'http://10.0.0.1:8000' }}]
  objectives: [{{ name: critical, priority: Critical }}, {{ name: sheddable, priority: Sheddable }}]
  flowControl: {flow}
"
    ))
}

/// Sends a whole request; the stream, and what it said.
fn send(gateway: &Arc<Gateway>, objective: &str) -> (Stream, Vec<ProcessingResponse>) {
    let mut stream = Stream::new(gateway, Settings::default());
    stream.send(chat(&[("x-llm-d-inference-objective", objective)])).unwrap();
    stream.send(body(asking("llama"), true)).unwrap();
    let said = stream.take();
    (stream, said)
}

/// What the conversation says once it is called.
async fn called(stream: &mut Stream) -> (Next, Vec<ProcessingResponse>) {
    let mut out = VecDeque::new();
    let call = poll_fn(|cx| stream.conversation.poll_called(cx, &mut out));
    let next = tokio::time::timeout(Duration::from_secs(5), call).await.expect("it is called");
    (next, out.into())
}

#[tokio::test]
async fn a_request_for_a_full_pool_is_answered_when_its_turn_comes() {
    let gateway = full_after_one("{}");
    let (first, said) = send(&gateway, "");
    assert!(set_by(&said[0], names::DESTINATION).is_some());
    let (mut second, said) = send(&gateway, "");
    assert!(said.is_empty(), "nothing is said while it waits: {said:?}");
    drop(first);
    let (next, said) = called(&mut second).await;
    assert_eq!(next, Next::Read);
    assert_eq!(set_by(&said[0], names::DESTINATION).as_deref(), Some("10.0.0.1:8000"));
    assert_eq!(in_flight(&gateway), 1);
}

#[tokio::test]
async fn a_proxy_that_resets_the_stream_gives_the_place_in_the_queue_up() {
    let gateway = full_after_one("{}");
    let _first = send(&gateway, "");
    let (mut second, _) = send(&gateway, "");
    assert_eq!(gateway.bands(second.now)[0].requests, 1);
    let now = second.now;
    second.conversation.closed(now);
    assert!(gateway.bands(now).iter().all(|band| band.requests == 0));
}

#[test]
fn sheddable_requests_are_told_at_once_and_why() {
    let gateway = full_after_one("{}");
    let _first = send(&gateway, "");
    let (_second, said) = send(&gateway, "sheddable");
    let Some(Response::Immediate(immediate)) = &said[0].response else { panic!("{said:?}") };
    assert_eq!(immediate.status.unwrap().code, 429);
    let field = |name| set_by(&said[0], name);
    assert_eq!(field(names::DROPPED_REASON).as_deref(), Some("rejected-saturated"));
    assert_eq!(field("x-wicketgate-dropped-reason").as_deref(), Some("saturated"));
    let text = std::str::from_utf8(&immediate.body).unwrap();
    assert!(text.contains(r#""reason":"saturated""#), "{text}");
}

#[tokio::test]
async fn a_request_that_is_called_back_is_429_while_nothing_was_answered() {
    let gateway =
        full_after_one("{ revoke: true, bands: [{ priority: -10, whenSaturated: queue }] }");
    let (mut low, _) = send(&gateway, "sheddable");
    let (mut critical, said) = send(&gateway, "critical");
    assert!(said.is_empty());
    let (next, said) = called(&mut low).await;
    assert_eq!(next, Next::Close);
    assert_eq!(set_by(&said[0], names::DROPPED_REASON).as_deref(), Some("evicted"));
    let (_, said) = called(&mut critical).await;
    assert!(set_by(&said[0], names::DESTINATION).is_some());
}

#[tokio::test]
async fn once_the_answer_has_begun_nothing_calls_a_request_back() {
    let gateway = full_after_one("{ revoke: true }");
    let (mut low, _) = send(&gateway, "sheddable");
    low.send(crate::testing::answer_head(&[(":status", "200")], false)).unwrap();
    let _critical = send(&gateway, "critical");
    let mut out = VecDeque::new();
    let polled = poll_fn(|cx| Poll::Ready(low.conversation.poll_called(cx, &mut out))).await;
    assert!(polled.is_pending());
}

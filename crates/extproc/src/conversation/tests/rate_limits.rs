//! Rate limits hold behind a proxy as they do in our own.

use std::sync::Arc;

use gateway::Gateway;

use crate::settings::{Role, Settings};
use crate::testing::{
    Stream, answer_body, answer_head, asking, body, chat, gateway, in_flight, set_by,
};
use crate::wire::Response;

fn limited_to(rules: &str) -> Arc<Gateway> {
    gateway(&format!(
        "  schedulers:\n  - {{ name: chat, modelName: llama, endpoints: [{{ url: 'http://10.0.0.1:8000' }}] }}\n  rateLimits: [{rules}]\n"
    ))
}

fn picked(gateway: &Arc<Gateway>) -> Stream {
    let mut stream = Stream::new(
        gateway,
        Settings { role: Role::Picker, destinations: 1, ..Settings::default() },
    );
    stream.send(chat(&[])).unwrap();
    stream
}

#[test]
fn the_request_beyond_a_limit_is_answered_before_its_body() {
    let gateway = limited_to("{ name: few, requests: { perMinute: 1 } }");
    let mut first = picked(&gateway);
    assert!(first.take().is_empty());
    let immediate = picked(&gateway).immediate();
    assert_eq!(immediate.status.unwrap().code, 429);
    let fields = immediate.headers.unwrap();
    let field = |name: &str| {
        let set = fields.set_headers.iter().filter_map(|set| set.header.as_ref());
        let found = set.into_iter().find(|field| field.key == name);
        found.map(|field| String::from_utf8_lossy(field.bytes()).into_owned())
    };
    assert_eq!(field("retry-after").as_deref(), Some("60"));
    assert_eq!(field("x-wicketgate-component").as_deref(), Some("limit"));
    assert_eq!(field("x-llm-d-request-dropped-reason").as_deref(), Some("rejected-rate-limited"));
    assert_eq!(field("x-ratelimit-remaining-requests").as_deref(), Some("0"));
    assert_eq!(field("x-ratelimit-reset-requests").as_deref(), Some("1m0s"));
}

#[test]
fn an_answer_tells_its_limits_and_not_those_of_its_endpoint() {
    let gateway = limited_to("{ name: a, tokens: { perMinute: 100000 } }");
    let mut stream = picked(&gateway);
    stream.send(body(asking("llama"), true)).unwrap();
    stream.take();
    let theirs = [
        (":status", "200"),
        ("content-type", "application/json"),
        ("x-ratelimit-remaining-tokens", "7"),
        ("X-RateLimit-Limit-Requests", "7"),
    ];
    stream.send(answer_head(&theirs, false)).unwrap();
    let answers = stream.take();
    assert_eq!(set_by(&answers[0], "x-ratelimit-limit-tokens").as_deref(), Some("100000"));
    assert!(set_by(&answers[0], "x-ratelimit-remaining-tokens").unwrap().len() == 5);
    let Some(Response::ResponseHeaders(headers)) = &answers[0].response else { panic!() };
    let mutation = headers.response.as_ref().unwrap().header_mutation.as_ref().unwrap();
    assert_eq!(mutation.remove_headers, ["x-ratelimit-limit-requests"]);
}

#[test]
fn what_was_reserved_is_settled_by_the_usage_that_passes() {
    let gateway = limited_to("{ name: a, tokens: { perDay: 100000 }, concurrent: 1 }");
    let mut stream = picked(&gateway);
    stream.send(body(asking("llama"), true)).unwrap();
    stream
        .send(answer_head(&[(":status", "200"), ("content-type", "application/json")], false))
        .unwrap();
    let usage = r#"{"usage":{"prompt_tokens":7,"completion_tokens":20,"total_tokens":27}}"#;
    stream.send(answer_body(usage, true)).unwrap();
    let now = stream.now;
    let bucket = &gateway.rate_limit_views(1, now)[0].fullest[0];
    assert_eq!((bucket.meters[0].remaining, bucket.in_flight), (100_000 - 27, 0));
    assert_eq!(in_flight(&gateway), 0);
}

#[test]
fn a_stream_that_the_proxy_drops_gives_its_place_back() {
    let gateway = limited_to("{ name: a, concurrent: 1 }");
    for _ in 0..3 {
        let mut stream = picked(&gateway);
        stream.send(body(asking("llama"), true)).unwrap();
        assert_eq!(stream.take().len(), 2, "the pick and the body");
    }
}

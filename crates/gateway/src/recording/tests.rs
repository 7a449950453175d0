use std::path::Path;
use std::sync::Arc;

use telemetry::recording::{RecordingLine, Request, Settings, State};
use telemetry::{Recorder, clock};
use types::Timestamp;

use crate::testing::{exchange_at, pool_of};
use crate::{Ending, Gateway};

fn record(gateway: &Gateway, path: &Path) {
    let settings = Settings {
        path: path.to_owned(),
        rotate_bytes: 1 << 20,
        files_max: 2,
        block_tokens: 64,
        software: "wicketgate test".to_owned(),
    };
    let dropped = gateway.metrics.gateway().recording_dropped_lines.clone();
    gateway.record_to(Recorder::open(settings, dropped).unwrap(), clock::now());
}

/// One streamed chat that begins two seconds after `start` and takes three.
fn chat(gateway: &Arc<Gateway>, text: &str, start: Timestamp) {
    let second = |n| start + std::time::Duration::from_secs(n);
    let mut exchange = exchange_at(gateway, second(2));
    let body = format!(
        r#"{{"model":"llama","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
    );
    exchange.place(body.as_bytes(), None, second(2)).unwrap();
    exchange.attempt(second(2)).unwrap();
    exchange.answered(200, None, second(3));
    exchange.watch(Some("text/event-stream"));
    exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", second(3));
    exchange.payload(
        b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":900,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":800}}}\n\ndata: [DONE]\n\n",
        second(5),
    );
    exchange.finish(Ending::Complete, second(5));
}

fn read(path: &Path) -> (State, Vec<Request>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut state = None;
    let mut requests = Vec::new();
    for line in text.lines() {
        match RecordingLine::parse(line.as_bytes()).unwrap() {
            RecordingLine::Header(_) => {}
            RecordingLine::State(found) => state = Some(found),
            RecordingLine::Request(found) => requests.push(found),
        }
    }
    (state.unwrap(), requests)
}

#[test]
fn a_request_is_written_down_with_what_came_of_it_and_without_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    let gateway = pool_of(2);
    record(&gateway, &path);
    let start = clock::now();
    let text = "secret ".repeat(200);
    chat(&gateway, &text, start);
    chat(&gateway, &format!("{text} and more"), start);
    drop(gateway);

    let (state, requests) = read(&path);
    let pool = &state.pools[0];
    assert_eq!((pool.name.as_str(), pool.policy.as_str()), ("chat", "weighted"));
    assert!(pool.scorers.iter().any(|(name, weight)| name == "expected-time" && *weight == 1.0));
    assert_eq!(pool.endpoints.len(), 2);
    assert!(pool.endpoints[0].speed.base_ms > 0.0);

    let [first, second] = requests.as_slice() else { panic!("{requests:?}") };
    assert!((2_000_000..4_000_000).contains(&first.at_us), "{}", first.at_us);
    assert_eq!(
        (first.pool.as_str(), first.route.as_str(), first.model),
        ("chat", "chat_completions", 0)
    );
    assert!(first.stream);
    assert_eq!((first.ttft_ms, first.duration_ms), (Some(1000.0), 3000.0));
    assert_eq!((first.output_tokens, first.cached_tokens), (Some(7), Some(800)));
    assert_eq!((first.status, first.outcome.as_str(), first.attempts), (200, "ok", 1));
    assert!(first.predicted_ms.is_some());
    assert!(pool.endpoints.iter().any(|endpoint| Some(endpoint.id) == first.endpoint));
    // 1,400 characters and the little around them make five blocks of 256.
    let numbers: Vec<_> = first.block_numbers().collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    assert_eq!(second.block_numbers().collect::<Vec<_>>(), numbers, "they share what they share");
    assert_eq!(second.matched_blocks, 5);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("secret"));
}

#[test]
fn a_refused_request_is_written_down_and_one_for_nobody_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    let gateway = pool_of(1);
    record(&gateway, &path);
    crate::testing::scrape(&gateway, 0, 100, 0.5);
    let mut refused = exchange_at(&gateway, crate::testing::at(0));
    let refusal = refused.place(&crate::testing::body("llama"), None, crate::testing::at(0));
    refused.refused(&refusal.unwrap_err(), crate::testing::at(0));
    let mut nobody = exchange_at(&gateway, crate::testing::at(0));
    let refusal = nobody.place(&crate::testing::body("other"), None, crate::testing::at(0));
    nobody.refused(&refusal.unwrap_err(), crate::testing::at(0));
    drop((refused, nobody));
    drop(gateway);

    let (_, requests) = read(&path);
    let [one] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!((one.status, one.outcome.as_str()), (429, "shed"));
    assert_eq!((one.endpoint, one.attempts, one.ttft_ms), (None, 0, None));
}

#[test]
fn without_a_recorder_nothing_is_kept_longer() {
    let gateway = pool_of(1);
    assert!(!gateway.is_recording());
    gateway.record_state(clock::now());
    chat(&gateway, "hi", clock::now());
}

#[tokio::test(start_paused = true)]
async fn the_state_of_the_pools_is_written_down_every_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traffic.jsonl");
    let gateway = pool_of(1);
    record(&gateway, &path);
    let states = crate::record_states(gateway.clone());
    let end = tokio::time::timeout(std::time::Duration::from_secs(35), states).await;
    assert!(end.is_err(), "it goes on as long as it is asked to");
    drop(gateway);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("{\"state\":").count(), 1 + 3);
}

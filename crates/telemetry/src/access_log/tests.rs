use std::io;
use std::sync::mpsc;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use types::{ModelName, PoolName, Priority, TenantName};

use super::*;
use crate::metrics::labels::{Outcome, Route};
use crate::trace::TraceId;

/// Sends what is written, and can be held shut.
struct Pipe {
    written: mpsc::Sender<Vec<u8>>,
    open: mpsc::Receiver<()>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open.recv().map_err(io::Error::other)?;
        self.written.send(bytes.to_vec()).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line(entry: &Entry<'_>) -> String {
    let mut out = Vec::new();
    entry.format(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_full_line_has_this_schema() {
    let (model, pool) = (ModelName::new("llama-8b"), PoolName::new("llama"));
    let tenant = TenantName::new("team-a");
    let entry = Entry {
        time: UNIX_EPOCH + Duration::from_millis(1_789_715_103_042),
        request_id: "req-1",
        trace: Some(TraceId(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736)),
        client: Some(([10, 0, 0, 7], 4711).into()),
        tenant: Some(&tenant),
        method: "POST",
        route: Route::ChatCompletions,
        model: Some(&model),
        rewrite: Some("canary"),
        pool: Some(&pool),
        endpoint: Some("gpu-1:8000"),
        status: 502,
        component: Some("endpoint"),
        code: Some("upstream_error"),
        priority: Some(Priority(-3)),
        objective: Some("interactive"),
        attempts: 2,
        stream: true,
        bytes_in: 512,
        bytes_out: 2048,
        prompt_tokens: Some(100),
        completion_tokens: Some(20),
        cached_tokens: Some(64),
        ttft: Some(Duration::from_micros(41_007)),
        predicted: Some(Duration::from_millis(40)),
        duration: Duration::from_micros(1_250_500),
        queue: Some(Duration::ZERO),
        pick: Some(Duration::from_nanos(7_900)),
        outcome: Outcome::EndpointError,
        closed_by: ClosedBy::Endpoint,
    };
    assert_eq!(
        serde_json::from_str::<Value>(&line(&entry)).unwrap(),
        json!({
            "time": "2026-09-18T07:05:03.042Z",
            "request_id": "req-1",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
            "client": "10.0.0.7:4711",
            "tenant": "team-a",
            "method": "POST",
            "route": "chat_completions",
            "model": "llama-8b",
            "rewrite": "canary",
            "pool": "llama",
            "endpoint": "gpu-1:8000",
            "status": 502,
            "component": "endpoint",
            "code": "upstream_error",
            "priority": -3,
            "objective": "interactive",
            "attempts": 2,
            "stream": true,
            "bytes_in": 512,
            "bytes_out": 2048,
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "cached_tokens": 64,
            "ttft_ms": 41.007,
            "predicted_ms": 40.0,
            "duration_ms": 1250.5,
            "queue_ms": 0.0,
            "pick_us": 7,
            "outcome": "endpoint_error",
            "closed_by": "endpoint",
        })
    );
}

#[test]
fn an_empty_line_has_the_same_keys() {
    let keys = |entry: &Entry<'_>| -> Vec<String> {
        let value: Value = serde_json::from_str(&line(entry)).unwrap();
        value.as_object().unwrap().keys().cloned().collect()
    };
    let empty = Entry::default();
    let value: Value = serde_json::from_str(&line(&empty)).unwrap();
    assert_eq!(value["model"], "_unknown");
    assert_eq!(value["prompt_tokens"], Value::Null);
    assert_eq!(keys(&empty), keys(&Entry { pick: Some(Duration::MAX), ..empty.clone() }));
}

#[test]
fn text_of_a_client_cannot_forge_a_line_or_reach_the_terminal() {
    let hostile = "x\n{\"status\":200}\r\x1b[2J\u{9b}31m\u{202e}\"\\";
    let entry = Entry { request_id: hostile, method: "G\x07T", ..Entry::default() };
    let text = line(&entry);
    assert_eq!(text.find('\n'), Some(text.len() - 1));
    assert!(text.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["request_id"], hostile);
}

#[test]
fn a_blocked_reader_blocks_no_request_and_lost_lines_are_counted() {
    let dropped = Arc::new(Counter::default());
    let (written, lines) = mpsc::channel();
    let (let_through, open) = mpsc::channel();
    let mut pipe = Some(Pipe { written, open });
    let log = AccessLog::start(
        move || pipe.take().ok_or_else(|| io::Error::other("opened twice")),
        Arc::clone(&dropped),
    )
    .unwrap();

    let entry = Entry { request_id: "r", ..Entry::default() };
    let line_bytes = line(&entry).len();
    let fits = QUEUE_BYTES_MAX / line_bytes;
    for _ in 0..4 * fits {
        log.record(&entry);
    }
    // Two queues' worth at most: one in the writer's hands, one waiting.
    let lost = dropped.get();
    assert!(lost >= u64::try_from(2 * fits).unwrap(), "only {lost} lines were dropped");

    for _ in 0..100 {
        let_through.send(()).unwrap();
    }
    drop(log);
    let kept: usize = lines.iter().map(|bytes| bytes.len() / line_bytes).sum();
    assert_eq!(u64::try_from(4 * fits - kept).unwrap(), lost);
}

#[test]
fn dropping_the_log_writes_what_is_queued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = AccessLog::open(Target::File(path.clone()), Arc::default()).unwrap();
    for _ in 0..3 {
        log.record(&Entry::default());
    }
    drop(log);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 3);
}

#[test]
fn after_a_rotation_lines_go_to_the_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let log = AccessLog::open(Target::File(path.clone()), Arc::default()).unwrap();
    std::fs::rename(&path, &old).unwrap();
    log.reopen();
    log.record(&Entry::default());
    drop(log);
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
    assert_eq!(std::fs::read_to_string(old).unwrap(), "");
}

#[test]
fn lines_that_the_sink_refuses_are_counted() {
    struct Broken;
    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dropped = Arc::new(Counter::default());
    let log = AccessLog::start(|| Ok(Broken), Arc::clone(&dropped)).unwrap();
    log.record(&Entry::default());
    log.record(&Entry::default());
    drop(log);
    assert_eq!(dropped.get(), 2);
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::File(folder.path().join("missing").join("access.log"));
    assert!(AccessLog::open(target, Arc::default()).is_err());
}

#[test]
fn a_log_that_is_off_takes_lines_and_writes_none() {
    AccessLog::open(Target::Off, Arc::default()).unwrap().record(&Entry::default());
}

#[test]
fn a_line_has_the_keys_of_the_schema_in_its_order_and_the_page_has_them_all() {
    let text = line(&Entry::default());
    let mut from = 0;
    for field in FIELDS {
        let key = format!("\"{}\":", field.key);
        let at = text[from..].find(&key).unwrap_or_else(|| panic!("{key} is not in its place"));
        from += at + key.len();
        assert!(markdown().contains(&format!("| `{}` |", field.key)), "{}", field.key);
    }
    assert_eq!(text.matches("\":").count(), FIELDS.len(), "{text}");
}

//! Batches to a collector that is slow, refuses, or is not there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::{Duration, UNIX_EPOCH};

use config::Tracing;
use prost::Message;
use telemetry::access_log::ClosedBy;
use telemetry::metrics::labels::{Outcome, Route, TraceEnd};
use telemetry::metrics::{By, Counter};
use telemetry::trace::{SpanId, TraceId, TraceRecord};
use types::{TenantName, Timestamp};
use wicketgate_otlp::wire::ExportRequest;
use wicketgate_otlp::{Exporter, Settings};

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers the n-th request with the n-th of these, the last one for ever; hands over the bodies.
fn collector(answers: &'static [&'static str]) -> (SocketAddr, mpsc::Receiver<ExportRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, bodies) = mpsc::channel();
    std::thread::spawn(move || {
        for number in 0.. {
            let Ok((mut io, _)) = listener.accept() else { return };
            let mut bytes = Vec::new();
            let body = loop {
                let mut part = [0; 4096];
                let count = io.read(&mut part).unwrap();
                bytes.extend_from_slice(&part[..count]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                    continue;
                };
                let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
                if bytes.len() >= end + 4 + length {
                    break bytes[end + 4..].to_vec();
                }
            };
            let answer = answers[number.min(answers.len() - 1)];
            io.write_all(answer.as_bytes()).unwrap();
            let _ = send.send(ExportRequest::decode(&body[..]).unwrap());
        }
    });
    (address, bodies)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
const BAD: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

/// Answers the first request so, or never, and closes nothing by itself. Tells when its client has.
fn patient(answer: Option<&'static str>) -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, closed) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut io, _) = listener.accept().unwrap();
        let mut part = [0; 4096];
        let mut is_answered = false;
        while io.read(&mut part).is_ok_and(|count| count > 0) {
            if let (Some(answer), false) = (answer, is_answered) {
                io.write_all(answer.as_bytes()).unwrap();
                is_answered = true;
            }
        }
        let _ = send.send(());
    });
    (address, closed)
}

fn exporter(address: SocketAddr) -> (Exporter, telemetry::Tracer, Arc<By<TraceEnd, Counter>>) {
    patience_of(address, Duration::from_secs(10))
}

fn patience_of(
    address: SocketAddr,
    timeout: Duration,
) -> (Exporter, telemetry::Tracer, Arc<By<TraceEnd, Counter>>) {
    let document =
        Tracing { endpoint: Some(format!("http://{address}")), timeout, ..Tracing::default() };
    let settings = Settings::from(Some(&document), |_| None).unwrap().unwrap();
    let ends: Arc<By<TraceEnd, Counter>> = Arc::default();
    let (exporter, tracer) = Exporter::start(settings, Arc::clone(&ends)).unwrap();
    (exporter, tracer, ends)
}

fn record(trace: u128) -> Box<TraceRecord> {
    Box::new(TraceRecord {
        trace: TraceId(trace),
        span: SpanId(1),
        parent: None,
        sampled: true,
        received: Timestamp::from_millis(1),
        ended: Timestamp::from_millis(2),
        ended_wall: UNIX_EPOCH + Duration::from_secs(1),
        steps: Vec::new(),
        attempts: Vec::new(),
        request_id: "r".into(),
        method: "POST".into(),
        route: Route::Other,
        path: "/",
        client: SocketAddr::from(([127, 0, 0, 1], 1)),
        tenant: TenantName::new("t"),
        priority: None,
        objective: None,
        model: None,
        pool: None,
        stream: false,
        status: 200,
        outcome: Outcome::Ok,
        closed_by: ClosedBy::Done,
        error: None,
        prompt_tokens: None,
        completion_tokens: None,
        cached_tokens: None,
        estimated_tokens: 0,
        prompt_blocks: 0,
        matched_blocks: 0,
        ttft: None,
        predicted: None,
        bytes_in: 0,
        bytes_out: 0,
    })
}

fn spans(batch: &ExportRequest) -> usize {
    batch.resource_spans[0].scope_spans[0].spans.len()
}

#[test]
fn requests_gather_to_a_batch_and_the_last_one_is_sent_at_the_end() {
    let (address, bodies) = collector(&[OK]);
    let (exporter, tracer, ends) = exporter(address);
    for trace in 1..=3 {
        tracer.hand_over(record(trace));
    }
    // The process ends before the batch would have been full or old.
    drop(exporter);
    assert_eq!(spans(&bodies.recv_timeout(PATIENCE).unwrap()), 3);
    assert_eq!(ends.of(TraceEnd::Exported).get(), 3);
}

#[test]
fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let (address, bodies) = collector(&[BUSY, OK, BAD]);
    let (exporter, tracer, ends) = exporter(address);
    tracer.hand_over(record(1));
    for _ in 0..2 {
        assert_eq!(spans(&bodies.recv_timeout(PATIENCE).unwrap()), 1);
    }
    tracer.hand_over(record(2));
    bodies.recv_timeout(PATIENCE).unwrap();
    drop(exporter);
    assert_eq!(ends.of(TraceEnd::Exported).get(), 1);
    assert_eq!(ends.of(TraceEnd::Failed).get(), 1);
    assert!(bodies.try_recv().is_err(), "a refused batch is not sent again");
}

#[test]
fn without_a_collector_traces_are_counted_as_lost_and_nobody_waits() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (exporter, tracer, ends) = exporter(nobody);
    let more = telemetry::trace::QUEUE_RECORDS_MAX + 5000;
    for trace in 1..=more {
        tracer.hand_over(record(trace as u128));
    }
    assert!(ends.of(TraceEnd::Dropped).get() > 0, "what finds no room is dropped at once");
    drop(exporter);
}

#[test]
fn a_connection_ends_with_its_batch_though_no_other_follows() {
    let (address, closed) = patient(Some(OK));
    let (_exporter, tracer, ends) = exporter(address);
    tracer.hand_over(record(1));
    closed.recv_timeout(PATIENCE).expect("the connection stayed open");
    assert_eq!(ends.of(TraceEnd::Failed).get(), 0);
}

#[test]
fn a_collector_that_never_answers_is_left_when_the_batch_has_had_its_time() {
    let (address, closed) = patient(None);
    let (exporter, tracer, ends) = patience_of(address, Duration::from_millis(300));
    tracer.hand_over(record(1));
    closed.recv_timeout(PATIENCE).expect("the connection stayed open");
    drop(exporter);
    assert_eq!((ends.of(TraceEnd::Failed).get(), ends.of(TraceEnd::Exported).get()), (1, 0));
}

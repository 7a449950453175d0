//! Clients that leave, read slowly, or never finish what they began to send.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sim::{FaultKind, Fleet, Outcome};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use crate::gateway::{Gateway, PATIENCE, document};
use crate::http::{CHAT, Client, End, chat, request};
use crate::sims::{asked, fast, fleet, prompt, seen, slow, streamed};

/// The promise.
const CANCELLED_WITHIN: Duration = Duration::from_millis(100);
/// For two processes that share two cores with other tests: scheduling, not our doing.
const SLACK: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug)]
enum Leaves {
    ByFin,
    ByReset,
}

/// Sends `body`, leaves once `ready`, and checks how soon the endpoint knew.
async fn leave(
    gateway: &Gateway,
    fleet: &Fleet,
    body: &Value,
    wait_for: Option<&str>,
    how: Leaves,
) {
    let server = fleet.server(0);
    let before = asked(server).await.len();
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&request("POST", CHAT, &[], body.to_string().as_bytes())).await;
    let number = seen(server, |request| request.outcome == Outcome::Open).await.number;
    if let Some(text) = wait_for {
        client.until_count(text, 3).await;
    }
    if matches!(how, Leaves::ByReset) {
        client.io.set_zero_linger().unwrap();
    }
    let left = Instant::now();
    drop(client);
    let end =
        seen(server, |request| request.number == number && request.outcome != Outcome::Open).await;
    let took = left.elapsed();
    assert_eq!(end.outcome, Outcome::Cancelled);
    assert!(took < CANCELLED_WITHIN + SLACK, "{how:?}: the endpoint knew after {took:?}");
    assert_eq!(asked(server).await.len(), before + 1);
}

/// Fault model, rows 32 and 33; peers.md §4 A 1, B 20 to 25; SSE-4. Also while no chunk flows, where
/// two of the peers notice nothing.
#[tokio::test]
async fn a_client_that_leaves_cancels_its_request_within_100_ms() {
    for how in [Leaves::ByFin, Leaves::ByReset] {
        let fleet = fleet(1, slow()).await;
        let gateway = Gateway::over(&fleet.urls(), json!({})).await;
        let server = fleet.server(0);
        // While the engine is at work: not streamed, and streamed.
        leave(&gateway, &fleet, &prompt("Hello", 4000), None, how).await;
        leave(&gateway, &fleet, &streamed("Hello", 4000), Some("data: "), how).await;
        // Before the first byte, and in the middle with no chunk flowing.
        server.fault(FaultKind::Stall { after_chunks: None });
        leave(&gateway, &fleet, &streamed("Hello", 4000), None, how).await;
        leave(&gateway, &fleet, &prompt("Hello", 4000), None, how).await;
        server.heal();
        server.fault(FaultKind::Stall { after_chunks: Some(3) });
        leave(&gateway, &fleet, &streamed("Hello", 4000), Some("data: "), how).await;
        server.heal();

        let aborted = gateway.metric("wicketgate_streams_aborted_total", &["client_gone"]).await;
        assert_eq!(aborted, 5.0, "each is counted");
        gateway
            .until("credit was returned", async || gateway.endpoints().await[0]["in_flight"] == 0)
            .await;
        assert_eq!(server.stats().running, 0, "no ghost keeps a slot");
        assert_eq!(gateway.metric("wicketgate_requests_open", &[]).await, 0.0);
    }
}

/// An endpoint that sends events as fast as they are taken, and counts the bytes.
async fn flood() -> (SocketAddr, Arc<AtomicU64>, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let written = Arc::new(AtomicU64::new(0));
    let counter = written.clone();
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut io, _)) = listener.accept().await {
            let counter = counter.clone();
            connections.spawn(async move {
                let mut request = vec![0; 4096];
                let Ok(read) = tokio::io::AsyncReadExt::read(&mut io, &mut request).await else { return };
                if !request[..read].starts_with(b"POST") {
                    let _ = io.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
                    return;
                }
                let _ = io.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await;
                let event = format!("data: {{\"x\":\"{}\"}}\n\n", "y".repeat(16_000));
                while let Ok(bytes) = io.write(event.as_bytes()).await {
                    counter.fetch_add(bytes as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (address, written, task)
}

/// Fault model, row 37; peers.md §2.2 (a peer's memory grows without bound).
#[tokio::test]
async fn a_client_that_does_not_read_holds_its_endpoint_back_and_is_given_up() {
    let (address, written, endpoint) = flood().await;
    let limits = json!({ "timeouts": { "slowReader": "1s" } });
    let gateway =
        Gateway::with_document(&document(&[format!("http://{address}")], limits), &[]).await;
    let idle = gateway.resident_bytes();
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&request("POST", CHAT, &[], streamed("Hello", 5).to_string().as_bytes())).await;
    client.until("data: ").await;
    gateway
        .until("the slow client was given up", async || {
            gateway.metric("wicketgate_streams_aborted_total", &["slow_client"]).await == 1.0
        })
        .await;
    // What the kernel's buffers of two connections hold, at the very most.
    let sent = written.load(Ordering::Relaxed);
    assert!(sent < 64 << 20, "{sent} bytes were read from the endpoint");
    let grown = gateway.resident_bytes().saturating_sub(idle);
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
    endpoint.abort();
}

/// The same row: who reads is not slowed by who does not.
#[tokio::test]
async fn a_client_that_does_not_read_slows_no_other() {
    let (address, _, endpoint) = flood().await;
    let fleet = fleet(1, fast()).await;
    let mut both = document(&[format!("http://{address}")], json!({}));
    both["spec"]["schedulers"].as_array_mut().unwrap().push(json!({
        "name": "other", "modelName": "other", "endpoints": [{ "url": fleet.urls()[0] }],
    }));
    let gateway = Gateway::with_document(&both, &["--access-log", "off"]).await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(gateway.traffic).await;
        client.send(&request("POST", CHAT, &[], streamed("Hello", 5).to_string().as_bytes())).await;
        client.until("data: ").await;
        slow.push(client);
    }
    let mut body = prompt("Hello", 2);
    body["model"] = json!("other");
    for _ in 0..20 {
        let asked = timeout(Duration::from_secs(2), chat(gateway.traffic, &body)).await;
        // The simulator does not know the name; its 404 is an answer like any other.
        assert_eq!(asked.expect("an answer in time").status, 404);
    }
    endpoint.abort();
}

/// A client that reads again in time loses nothing.
#[tokio::test]
async fn a_client_that_reads_late_gets_every_byte() {
    let fleet = fleet(1, sim::ServerSpec { time_scale: 0.0001, ..fast() }).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&request("POST", CHAT, &[], streamed("Hello", 4000).to_string().as_bytes())).await;
    seen(fleet.server(0), |request| request.outcome == Outcome::Done).await;
    let answer = client.answer().await;
    assert!(answer.complete, "{:?}", answer.end);
    assert!(answer.events().len() >= 4000 && answer.text().ends_with("data: [DONE]\n\n"));
}

/// Fault model, row 30.
#[tokio::test]
async fn a_client_that_leaves_within_its_request_dispatches_nothing() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let whole = request("POST", CHAT, &[], prompt("Hello", 5).to_string().as_bytes());
    for cut in [1, 20, whole.len() / 2, whole.len() - 1] {
        let mut client = Client::connect(gateway.traffic).await;
        client.send(&whole[..cut]).await;
        drop(client);
    }
    gateway
        .until("their connections were freed", async || {
            gateway.metric("wicketgate_connections_open", &[]).await == 0.0
        })
        .await;
    assert_eq!(chat(gateway.traffic, &prompt("Hello", 2)).await.status, 200);
    assert_eq!(asked(fleet.server(0)).await.len(), 1);
}

/// Fault model, row 38.
#[tokio::test]
async fn a_head_or_body_that_does_not_come_in_time_is_a_408() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(
        &fleet.urls(),
        json!({
            "timeouts": { "requestHeader": "200ms", "requestBodyIdle": "200ms", "requestBodyGrace": "300ms" },
            "limits": { "requestBodyBytesPerSecondMin": 100_000 },
        }),
    )
    .await;
    let whole = request("POST", CHAT, &[], prompt(&"x".repeat(2000), 5).to_string().as_bytes());
    let head_end = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    for stop in [10, head_end, head_end + 100] {
        let mut client = Client::connect(gateway.traffic).await;
        client.send(&whole[..stop]).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.code()),
            (408, "request_timeout".to_owned()),
            "stopped at {stop}"
        );
        assert_eq!(answer.end, End::Fin);
    }
    // A drip: never idle for long, and never done. It ends at 300 ms to 2 s, by its own slowness.
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&whole[..head_end]).await;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let mut rest = whole[head_end..].iter();
    let dripping = async {
        loop {
            ticks.tick().await;
            let Some(byte) = rest.next() else { return };
            client.send_some(&[*byte]).await;
            if gateway.metric("wicketgate_requests_refused_total", &["timeout"]).await >= 4.0 {
                return;
            }
        }
    };
    timeout(PATIENCE, dripping).await.expect("the drip ends");
    assert_eq!(client.answer().await.status, 408);
    assert!(asked(fleet.server(0)).await.is_empty());
}

/// The connection stays good from one request to the next.
#[tokio::test]
async fn many_requests_follow_each_other_on_one_connection() {
    let fleet = fleet(2, fast()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "limits": { "requestsPerConnectionMax": 20 } })).await;
    let mut client = Client::connect(gateway.traffic).await;
    for number in 1..=20 {
        let body = if number % 2 == 0 { streamed("Hello", 3) } else { prompt("Hello", 3) };
        client.send(&request("POST", CHAT, &[], body.to_string().as_bytes())).await;
        let answer = client.answer().await;
        assert!(answer.status == 200 && answer.complete);
        let end = if number == 20 { End::Fin } else { End::Open };
        assert_eq!(answer.end, end, "request {number} of at most 20");
    }
}

//! The end of a process: unready first, streams finish, and what cannot finish is told.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use sim::{FaultKind, Outcome};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::gateway::{BINARY, Gateway, PATIENCE, document};
use crate::http::{CHAT, Client, chat, request};
use crate::http2::Http2;
use crate::sims::{fast, fleet, prompt, seen, slow, streamed};
use crate::tls::{certificate, connect, start};

async fn stream(gateway: &Gateway, tokens: u32) -> Client {
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&request("POST", CHAT, &[], streamed("Hi", tokens).to_string().as_bytes())).await;
    client.until("data: ").await;
    client
}

/// Fault model, row 78; peers.md §4 F 86 (502s because the listener closes first).
#[tokio::test]
async fn sigterm_turns_readiness_first_serves_on_for_the_delay_and_lets_streams_finish() {
    let fleet = fleet(1, slow()).await;
    let mut gateway =
        Gateway::over(&fleet.urls(), json!({ "timeouts": { "drainDelay": "1500ms" } })).await;
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(stream(&gateway, 300).await);
    }
    let mut idle = Client::connect(gateway.traffic).await;
    idle.send(&request("POST", CHAT, &[], prompt("Hi", 2).to_string().as_bytes())).await;
    assert_eq!(idle.answer().await.status, 200);

    let told = Instant::now();
    gateway.signal("TERM");
    gateway.until("it is not ready", async || gateway.admin("/readyz").await.status == 503).await;
    assert!(told.elapsed() < Duration::from_secs(1), "readiness turns at once");
    assert_eq!(gateway.admin("/healthz").await.status, 200);
    let during = chat(gateway.traffic, &prompt("Hi", 2)).await;
    assert!(told.elapsed() < Duration::from_millis(1500), "this machine is too slow for the test");
    assert_eq!((during.status, during.header("connection")), (200, Some("close")));
    assert!(idle.closes().await, "an idle connection is closed");

    for client in &mut open {
        let answer = client.answer().await;
        assert!(
            answer.complete && answer.text().ends_with("data: [DONE]\n\n"),
            "{}",
            answer.text()
        );
    }
    assert!(gateway.ended().await.success());
    assert!(TcpStream::connect(gateway.traffic).await.is_err());
}

/// A.2: an explicit error at the deadline, on both versions.
#[tokio::test]
async fn a_stream_that_outlives_the_drain_time_ends_with_an_error_event() {
    let fleet = fleet(1, fast()).await;
    let times = json!({ "timeouts": { "drain": "300ms" } });
    let mut gateway = Gateway::over(&fleet.urls(), times).await;
    let server = fleet.server(0);
    server.fault(FaultKind::Stall { after_chunks: Some(3) });
    let mut first = stream(&gateway, 10).await;
    let mut http2 = Http2::connect(gateway.traffic).await;
    let second = tokio::spawn(async move {
        http2.post(CHAT, &[], &[streamed("Hi", 10).to_string().as_bytes()]).await
    });
    let open = |count: usize| async move {
        let page = server.requests(0, Duration::ZERO).await;
        page.requests.iter().filter(|request| request.outcome == Outcome::Open).count() == count
    };
    gateway.until("both streams are open", async || open(2).await).await;
    gateway.signal("TERM");
    for answer in [first.answer().await, second.await.unwrap()] {
        assert!(answer.status == 200 && !answer.complete, "{answer:?}");
        let last: Value = serde_json::from_str(answer.events().last().unwrap()).unwrap();
        assert_eq!(last["error"]["code"], "draining", "{}", answer.text());
        assert!(!answer.text().contains("[DONE]"));
    }
    assert!(gateway.ended().await.success());
    gateway.said("stopped").await;
    seen(server, |request| request.outcome == Outcome::Cancelled).await;
}

/// A.2: "second signal exits".
#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let fleet = fleet(1, fast()).await;
    let times = json!({ "timeouts": { "drainDelay": "60s", "drain": "600s" } });
    let mut gateway = Gateway::over(&fleet.urls(), times).await;
    fleet.server(0).fault(FaultKind::Stall { after_chunks: Some(3) });
    let mut open = stream(&gateway, 10).await;
    gateway.signal("TERM");
    gateway.said("draining; a second signal ends at once").await;
    let told = Instant::now();
    gateway.signal("TERM");
    assert!(open.answer().await.events().last().unwrap().contains("draining"));
    gateway.ended().await;
    assert!(told.elapsed() < Duration::from_secs(4), "{:?}", told.elapsed());
}

/// As with `wicketgate serve 2>&1 | head`.
#[tokio::test]
async fn a_gateway_whose_log_nobody_reads_any_more_ends_as_ever() {
    let fleet = fleet(1, fast()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.json");
    let times = json!({ "timeouts": { "drainDelay": "0s" } });
    std::fs::write(&file, document(&fleet.urls(), times).to_string()).unwrap();
    let mut command = Command::new(BINARY);
    command.arg("serve").arg("-f").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let ending = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        while !line.contains("administration:") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended early");
        }
        drop(log);
        let told = format!("kill -TERM {}", child.id());
        assert!(Command::new("sh").args(["-c", &told]).status().unwrap().success());
        let since = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return Some(status);
            }
            if since.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                return None;
            }
            std::thread::yield_now();
        }
    });
    assert!(ending.await.unwrap().is_some_and(|status| status.success()), "it hangs");
}

/// Fault model, row 79: nothing to finish, nothing to wait for.
#[tokio::test]
async fn an_idle_gateway_ends_soon_after_each_signal() {
    let fleet = fleet(1, fast()).await;
    for signal in ["TERM", "INT"] {
        let mut gateway = Gateway::over(&fleet.urls(), json!({})).await;
        let _idle = Client::connect(gateway.traffic).await;
        let told = Instant::now();
        gateway.signal(signal);
        assert!(gateway.ended().await.success(), "{signal}");
        assert!(told.elapsed() < Duration::from_secs(3), "{signal}: {:?}", told.elapsed());
    }
}

/// The load balancer still sends for a while after readiness turned: each version gets its answer.
#[tokio::test]
async fn a_connection_of_the_drain_delay_is_good_for_a_request_in_every_version() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = [certificate(folder.path())];
    let (_fleet, mut gateway) =
        start(folder.path(), json!({ "timeouts": { "drainDelay": "3s" } })).await;
    let to = gateway.tls.unwrap();
    let body = prompt("Hi", 2).to_string();
    gateway.signal("TERM");
    gateway.said("draining").await;
    let mut http2 = Http2::connect(gateway.traffic).await;
    // Time for a hasty GOAWAY to arrive.
    gateway.until("it is not ready", async || gateway.admin("/readyz").await.status == 503).await;
    assert_eq!(http2.post(CHAT, &[], &[body.as_bytes()]).await.status, 200, "HTTP/2");
    let mut http2 = Http2::over(connect(to, &trusted, &["h2"]).await.unwrap()).await;
    assert_eq!(http2.post(CHAT, &[], &[body.as_bytes()]).await.status, 200, "HTTP/2 with TLS");
    let mut client = Client::new(connect(to, &trusted, &["http/1.1"]).await.unwrap());
    client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    assert_eq!(client.answer().await.status, 200, "HTTP/1.1 with TLS");
    drop(http2);
    assert!(gateway.ended().await.success());
}

/// A client that uploads while the process ends is not cut off.
#[tokio::test]
async fn a_request_that_is_half_sent_at_the_signal_is_still_answered() {
    let fleet = fleet(1, fast()).await;
    let mut gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let whole = request("POST", CHAT, &[], prompt("Hi", 2).to_string().as_bytes());
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&whole[..whole.len() - 10]).await;
    gateway
        .until("its head was read", async || {
            gateway.metric("wicketgate_requests_open", &[]).await == 1.0
        })
        .await;
    gateway.signal("TERM");
    gateway.said("draining").await;
    client.send(&whole[whole.len() - 10..]).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(gateway.ended().await.success());
}

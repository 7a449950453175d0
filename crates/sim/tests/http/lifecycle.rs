//! Connections, cancellation, the request log, limits, and how fast it runs.

use std::time::Duration;

use serde_json::json;
use wicketgate_sim::{Fleet, Outcome, ServerSpec};

use crate::client::{CHAT, Live, PATIENCE, call, chat, fast, get, last_ended, post, start};

#[tokio::test]
async fn a_client_that_leaves_frees_its_blocks_at_once_and_counts_as_aborted() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    for stream in [true, false] {
        let mut live = Live::post(server.address(), CHAT, &chat("hello", 5000, stream)).await;
        if stream {
            live.until("data:", 4).await;
        } else {
            server.requests(0, PATIENCE).await;
        }
        drop(live);
        let ended = last_ended(server).await;
        assert_eq!(ended.outcome, Outcome::Cancelled);
        let stats = server.stats();
        assert_eq!((stats.running, stats.waiting(), stats.blocks_used), (0, 0, 0));
    }
    let page = get(server.address(), "/metrics").await.text();
    let aborted = "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"llama-3.1-8b\"} 2.0";
    assert!(page.contains(aborted), "{page}");
}

#[tokio::test]
async fn a_slow_reader_gets_every_token() {
    let fleet = start(ServerSpec { time_scale: 0.001, ..ServerSpec::default() }).await;
    let address = fleet.server(0).address();
    let mut live = Live::post(address, CHAT, &chat("hello", 20_000, true)).await;
    // All is generated long before it is read.
    while fleet.server(0).stats().generation_tokens < 20_000 {
        tokio::task::yield_now().await;
    }
    live.until("[DONE]", 1).await;
    assert_eq!(String::from_utf8_lossy(&live.received).matches("\"content\":").count(), 20_001);
}

#[tokio::test]
async fn one_connection_carries_many_requests_also_pipelined() {
    let fleet = start(fast()).await;
    let body = chat("hello", 2, false).to_string();
    let one =
        format!("POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut live = Live::open(
        fleet.server(0).address(),
        [&one, &one, &one].map(String::as_str).concat().as_bytes(),
    )
    .await;
    live.until("HTTP/1.1 200 OK", 3).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let keep_alive = Duration::from_millis(50);
    let fleet = start(ServerSpec { keep_alive, ..fast() }).await;
    let mut live = Live::open(fleet.server(0).address(), b"GET /health HTTP/1.1\r\n\r\n").await;
    assert_eq!(live.finish().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_chunked_request_body_and_expect_continue_are_understood() {
    let fleet = start(fast()).await;
    let body = chat("hello", 1, false).to_string();
    let (first, second) = body.split_at(10);
    let mut live = Live::open(
        fleet.server(0).address(),
        format!(
            "POST {CHAT} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        )
        .as_bytes(),
    )
    .await;
    live.until("100 Continue", 1).await;
    let rest =
        format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    live.send(rest.as_bytes()).await;
    live.until("chat.completion", 1).await;
    let log = last_ended(fleet.server(0)).await;
    assert_eq!(log.body_bytes, body.len());
}

#[tokio::test]
async fn the_log_shows_what_was_received_byte_for_byte() {
    let fleet = start(fast()).await;
    let server = fleet.server(0);
    let body = b"{\"prompt\": \"abc\",   \"max_tokens\":1}";
    call(server.address(), "POST", "/v1/completions?x=1", &[("X-Thing", "Yes")], body).await;
    let entry = last_ended(server).await;
    assert_eq!((entry.method.as_str(), entry.path.as_str()), ("POST", "/v1/completions?x=1"));
    assert!(entry.headers.contains(&("X-Thing".to_owned(), "Yes".to_owned())));
    assert_eq!(entry.body_bytes, body.len());
    // `printf '…' | sha256sum`
    assert_eq!(
        entry.body_sha256,
        "7932c66b3aa24f5aa3fe5d1c6b4986936168967c5b634a7d7edf673b2ea983c6"
    );
    assert_eq!((entry.outcome, entry.status), (Outcome::Done, 200));
    let over_http = get(server.address(), "/admin/requests?after=0&wait=1000").await.json();
    assert_eq!(over_http["requests"][0]["body_sha256"], entry.body_sha256);
    let revision = over_http["revision"].as_u64().unwrap();
    let nothing = server.requests(revision, Duration::ZERO).await;
    assert_eq!((nothing.revision, nothing.requests.len()), (revision, 0));
}

#[tokio::test]
async fn a_full_queue_is_answered_with_503() {
    let spec = ServerSpec {
        max_num_seqs: Some(1),
        max_num_queued_reqs: Some(1),
        time_scale: 1.0,
        ..ServerSpec::default()
    };
    let fleet = start(spec).await;
    let address = fleet.server(0).address();
    let mut running = Live::post(address, CHAT, &chat("one", 5000, true)).await;
    running.until("data:", 1).await;
    let _waiting = Live::post(address, CHAT, &chat("two", 5, true)).await;
    let mut revision = 0;
    while fleet.server(0).requests(0, PATIENCE).await.requests.len() < 2 {
        revision = fleet.server(0).requests(revision, PATIENCE).await.revision;
    }
    while get(address, "/admin/state").await.json()["requests"] != 2 {}
    let refused = post(address, CHAT, &chat("three", 5, false)).await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["type"], "ServiceUnavailableError");
    let page = get(address, "/metrics").await.text();
    assert!(page.contains(
        "vllm:admission_rejections_total{model_name=\"llama-3.1-8b\",reason=\"max_num_queued_reqs\"} 1.0"
    ));
}

#[tokio::test]
async fn a_fleet_has_its_own_admin_address_and_ends_with_its_owner() {
    let mut fleet = Fleet::start(vec![fast(), fast()]).await.unwrap();
    let control = fleet.control(([127, 0, 0, 1], 0).into()).await.unwrap();
    let servers = get(control, "/servers").await.json();
    assert_eq!(servers[1]["url"], fleet.urls()[1]);
    let path = "/servers/1/admin/fault";
    assert_eq!(post(control, path, &json!({"kind": "refuse"})).await.status, 200);
    let mut listening = fleet.server(1).listening();
    listening.wait_for(|open| !open).await.unwrap();
    assert!(tokio::net::TcpStream::connect(fleet.server(1).address()).await.is_err());
    assert_eq!(call(control, "DELETE", path, &[], b"").await.status, 200);
    listening.wait_for(|open| *open).await.unwrap();
    assert_eq!(get(fleet.server(1).address(), "/health").await.status, 200);
    assert_eq!(
        post(control, "/servers/7/admin/fault", &json!({"kind": "refuse"})).await.status,
        404
    );

    let address = fleet.server(0).address();
    drop(fleet);
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_fleet_that_cannot_be_is_refused() {
    let refused = async |spec| Fleet::start(vec![spec]).await.unwrap_err().to_string();
    let unknown = ServerSpec { hardware: "gpt-5/abacus".to_owned(), ..fast() };
    assert!(refused(unknown).await.contains("llama-3.1-8b/h100"));
    assert!(refused(ServerSpec { time_scale: 0.0, ..fast() }).await.contains("time scale"));
    let engine = types::EngineKind::LlamaCpp;
    assert!(refused(ServerSpec { engine, ..fast() }).await.contains("llamacpp"));
}

//! The gate on a real socket: what could be read in two ways is refused, the connection ends where
//! its framing is in doubt, and nothing of it reaches an endpoint (`reliability.md` A.3 and A.4).

use serde_json::json;
use sim::Fleet;

use crate::gateway::Gateway;
use crate::http::{Answer, CHAT, Client, ask};
use crate::sims::{asked, fast, fleet, prompt};

pub(crate) async fn start() -> (Fleet, Gateway) {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    (fleet, gateway)
}

/// What a smuggled request looks like.
pub(crate) const SECOND: &str = "GET /v1/models HTTP/1.1\r\nHost: smuggled\r\n\r\n";

/// Sends `first` with a second request right behind it, and returns the only answer; the
/// connection must end with it.
async fn refused(gateway: &Gateway, first: &[u8]) -> Answer {
    let mut client = Client::connect(gateway.traffic).await;
    client.send_some(&[first, SECOND.as_bytes()].concat()).await;
    let answer = client.answer().await;
    let shown = String::from_utf8_lossy(&first[..first.len().min(300)]).into_owned();
    assert_eq!(answer.header("connection"), Some("close"), "{shown}");
    assert!(client.closes().await, "a second answer to {shown}");
    assert_eq!(answer.header("x-wicketgate-component"), Some("edge"), "{shown}");
    assert!(answer.json()["error"]["message"].is_string());
    answer
}

fn post(fields: &str, body: &str) -> Vec<u8> {
    format!("POST {CHAT} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n{fields}\r\n{body}").into_bytes()
}

/// A.3: the rows on framing, and those that hyper refuses itself.
#[tokio::test]
async fn a_head_that_could_be_read_in_two_ways_is_refused_and_its_connection_ends() {
    let (fleet, gateway) = start().await;
    let body = prompt("Hi", 2).to_string();
    let length = body.len();
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let known = format!("Content-Length: {length}\r\n");
    let rows: Vec<(Vec<u8>, u16)> = vec![
        (post(&format!("{known}Transfer-Encoding: chunked\r\n"), &chunks), 400),
        (post(&format!("Transfer-Encoding: chunked\r\n{known}"), &chunks), 400),
        (post(&format!("{known}{known}"), &body), 400),
        (post(&format!("{known}Content-Length: 5\r\n"), &body), 400),
        (post(&format!("Content-Length: {length}, {length}\r\n"), &body), 400),
        (post(&format!("Content-Length: 0{length}\r\n"), &body), 400),
        (post(&format!("Content-Length: +{length}\r\n"), &body), 400),
        (post(&format!("Content-Length: 0x{length:x}\r\n"), &body), 400),
        (post("Content-Length: 99999999999999999999\r\n", &body), 400),
        (post(&format!("Content-Length : {length}\r\n"), &body), 400),
        (post("Transfer-Encoding: gzip, chunked\r\n", &chunks), 501),
        (post("Transfer-Encoding: identity\r\n", &chunks), 501),
        (post("Transfer-Encoding: xchunked\r\n", &chunks), 501),
        (post("Transfer-Encoding: \x0bchunked\r\n", &chunks), 400),
        (post("Transfer-Encoding: chunked, chunked\r\n", &chunks), 400),
        (post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", &chunks), 400),
        (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", &chunks), 400),
        (post(&format!("{known}X-Folded: a\r\n b\r\n"), &body), 400),
        (post(&format!("{known}X-Null: a\0b\r\n"), &body), 400),
        (post(&format!("{known}X-Return: a\rb\r\n"), &body), 400),
        (post(&format!("{known}X-Obs: caf\u{e9}\r\n"), &body), 400),
        (post(&format!("{known}x_gateway_destination_endpoint: 10.0.0.1:80\r\n"), &body), 400),
        (post(&format!("{known}Connection: content-length\r\n"), &body), 400),
        (post(&format!("{known}Connection: close, authorization\r\n"), &body), 400),
        (post(&format!("{known}Connection: host\r\n"), &body), 400),
        (post(&format!("{known}Upgrade: h2c\r\nConnection: upgrade\r\n"), &body), 400),
        (post(&format!("{known}Expect: foo\r\n"), &body), 417),
        (post(&format!("{known}Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"), &body), 400),
        (post(&format!("{known}Content-Type: application/json\r\n"), &body), 400),
        (post(&format!("{known}X-Request-Id: a\r\nX-Request-Id: b\r\n"), &body), 400),
        (post(&known, &body).into_iter().filter(|byte| *byte != b'\r').collect(), 400),
        (b"GET /v1/models HTTP/1.1\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost:\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: a b\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: a/b\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: a?b\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: x@evil\r\n\r\n".to_vec(), 400),
        (b"GET http://other/v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"GET ftp://gateway/v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"GET * HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"GET  /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models#x HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.2\r\nHost: gateway\r\n\r\n".to_vec(), 505),
        (b"GET /v1/models HTTP/2.0\r\nHost: gateway\r\n\r\n".to_vec(), 505),
        (b"CONNECT gateway:443 HTTP/1.1\r\nHost: gateway:443\r\n\r\n".to_vec(), 405),
        (b"GET /v1/models HTTP/1.1\r\nHost: gateway\r\nContent-Length: 5\r\n\r\nhello".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(), 400),
        (b" GET /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n".to_vec(), 400),
        (b"GET /v1/models HTTP/1.1\r\n Host: gateway\r\n\r\n".to_vec(), 400),
        (b"POST /v1/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_vec(), 400),
        (format!("GET /v1/models?{} HTTP/1.1\r\nHost: gateway\r\n\r\n", "x".repeat(9000)).into_bytes(), 414),
        (format!("GET /v1/models HTTP/1.1\r\nHost: gateway\r\n{}\r\n", "X-A: b\r\n".repeat(100)).into_bytes(), 431),
        (format!("GET /v1/models HTTP/1.1\r\nHost: gateway\r\nX-A: {}\r\n\r\n", "x".repeat(70_000)).into_bytes(), 431),
        (format!("GET /v1/models HTTP/1.1\r\nHost: gateway\r\nX-A: {}\r\n\r\n", "x".repeat(500_000)).into_bytes(), 431),
    ];
    for (row, status) in rows {
        let answer = refused(&gateway, &row).await;
        let shown = String::from_utf8_lossy(&row[..row.len().min(300)]).into_owned();
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
    }
    assert!(asked(fleet.server(0)).await.is_empty());
}

/// A.3: the rows on chunks.
#[tokio::test]
async fn a_chunked_body_that_could_be_read_in_two_ways_is_refused_and_its_connection_ends() {
    let (fleet, gateway) = start().await;
    let body = prompt("Hi", 2).to_string();
    let length = body.len();
    let extension = "x".repeat(2000);
    for chunks in [
        format!("{length:x} \r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x}\n{body}\r\n0\r\n\r\n"),
        format!("0x{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("+{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x}\r\n{body}0\r\n\r\n"),
        format!("{length:x}\r\n{body}X\r\n0\r\n\r\n"),
        format!("00000000000000000000{length:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x};{extension}\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x};a\n\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x}\r\n{body}\r\nffffffffffffffffff\r\n"),
        format!("{length:x}\r\n{body}\r\n0\r\nTrailer: x\n\r\n"),
    ] {
        let answer = refused(&gateway, &post("Transfer-Encoding: chunked\r\n", &chunks)).await;
        assert_eq!(answer.status, 400, "{chunks}");
    }
    assert!(asked(fleet.server(0)).await.is_empty());
    let odd_but_clear =
        format!("{length:x};ext=\"a;b\"\r\n{body}\r\n0\r\nHost: evil\r\nContent-Length: 3\r\n\r\n");
    let mut client = Client::connect(gateway.traffic).await;
    client.send(&post("Transfer-Encoding: chunked\r\n", &odd_but_clear)).await;
    assert_eq!(client.answer().await.status, 200);
    let seen = &asked(fleet.server(0)).await[0];
    assert_eq!(seen.body_bytes, length);
    assert!(
        seen.headers.iter().all(|(_, value)| value != "evil" && value != "3"),
        "trailers are dropped"
    );
}

/// Engines leave dangerous paths open; A.4 "Path"; decision 4.
#[tokio::test]
async fn a_path_that_is_not_on_the_list_is_a_404_and_reaches_nobody() {
    let (fleet, gateway) = start().await;
    let body = prompt("Hi", 2).to_string();
    for path in [
        "/",
        "/metrics",
        "/health",
        "/v1",
        "/v1/",
        "/v1/chat/completions/",
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/v1/./chat/completions",
        "/v1/../metrics",
        "/v1/chat/../../metrics",
        "/v1/%2e%2e%2fmetrics//x",
        "/v1/chat%2fcompletions",
        "/v1/chat/completions%00",
        "/v1/chat/completions;x",
        "/v1/chat\\completions",
        "/V1/chat/completions",
        "/v1/%63hat/completions",
        "/invocations",
        "/pooling",
        "/score",
        "/pause",
        "/resume",
        "/update_weights",
        "/collective_rpc",
        "/scale_elastic_ep",
        "/reset_prefix_cache",
        "/sleep",
        "/wake_up",
        "/flush_cache",
        "/v1/load_lora_adapter",
        "/v1/unload_lora_adapter",
        "/load_lora_adapter",
        "/start_profile",
        "/server_info",
        "/admin/fault",
        "/debug/decisions",
        "/readyz",
        "/v1/models/../../metrics",
    ] {
        for method in ["GET", "POST"] {
            let body = if method == "POST" { body.as_bytes() } else { b"" };
            let answer = ask(gateway.traffic, method, path, &[], body).await;
            assert_eq!(
                (answer.status, answer.code()),
                (404, "path_not_found".to_owned()),
                "{method} {path}"
            );
        }
    }
    assert!(asked(fleet.server(0)).await.is_empty());
    assert_eq!(
        fleet
            .server(0)
            .requests(0, std::time::Duration::ZERO)
            .await
            .requests
            .iter()
            .filter(|r| r.method != "GET")
            .count(),
        0
    );
}

/// A.2 "method token": 405 with `Allow`.
#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_a_405_that_names_the_right_ones() {
    let (fleet, gateway) = start().await;
    for (method, path, allow) in [
        ("GET", CHAT, "POST"),
        ("PUT", CHAT, "POST"),
        ("TRACE", CHAT, "POST"),
        ("post", CHAT, "POST"),
        ("DELETE", "/v1/models/llama-3.1-8b", "GET, HEAD"),
    ] {
        let answer = ask(gateway.traffic, method, path, &[], b"").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
    }
    let head = ask(gateway.traffic, "HEAD", "/v1/models", &[], b"").await;
    let get = ask(gateway.traffic, "GET", "/v1/models", &[], b"").await;
    assert_eq!((head.status, head.header("content-length")), (200, get.header("content-length")));
    assert!(asked(fleet.server(0)).await.is_empty());
}

//! Request bodies: whole and unchanged at the endpoint, or refused with nothing there.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sim::Fleet;

use crate::gateway::Gateway;
use crate::http::{Answer, CHAT, Client, End, ask, chat, request};
use crate::http2::Http2;
use crate::sims::{asked, fast, fleet, prompt};

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `body` in chunks of the given sizes, over and over; the rest in one.
pub(crate) fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    for size in sizes {
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        if !chunk.is_empty() {
            out.extend(format!("{:x}\r\n", chunk.len()).bytes());
            out.extend_from_slice(chunk);
            out.extend(b"\r\n");
        }
        rest = after;
    }
    if !rest.is_empty() {
        out.extend(format!("{:X};ext=\"a;b\"\r\n", rest.len()).bytes());
        out.extend_from_slice(rest);
        out.extend(b"\r\n");
    }
    out.extend(b"0\r\nX-Trailer: dropped\r\n\r\n");
    out
}

/// A valid chat of exactly so many bytes.
fn body_of(bytes: usize) -> Vec<u8> {
    let with = |padding: usize| {
        format!(
            r#"{{"model":"llama-3.1-8b","max_tokens":2,"messages":[{{"role":"user","content":"Hi"}}],"x":"{}"}}"#,
            "p".repeat(padding)
        )
    };
    let body = with(bytes - with(0).len()).into_bytes();
    assert_eq!(body.len(), bytes);
    body
}

async fn start(extra: Value) -> (Fleet, Gateway) {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), extra).await;
    (fleet, gateway)
}

async fn last_sha256(fleet: &Fleet) -> String {
    asked(fleet.server(0)).await.last().unwrap().body_sha256.clone()
}

const LIMIT: usize = 5 << 20;

/// BODY-1: the sizes at which buffers of others broke.
#[tokio::test]
async fn a_body_of_any_size_arrives_byte_for_byte_over_both_versions() {
    let (fleet, gateway) = start(json!({ "limits": { "requestBodyBytesMax": LIMIT } })).await;
    for bytes in [200, 65_535, 65_536, 65_537, 128 << 10, 1 << 20, (4 << 20) + 1, LIMIT] {
        let body = body_of(bytes);
        let wanted = sha256(&body);
        let known = ask(gateway.traffic, "POST", CHAT, &[], &body).await;
        assert_eq!(
            (known.status, last_sha256(&fleet).await),
            (200, wanted.clone()),
            "{bytes}, known length"
        );
        let pieces = chunked(&body, &[1, 2, 3, 1000, 65_536]);
        let answer =
            ask(gateway.traffic, "POST", CHAT, &[("Transfer-Encoding", "chunked")], &pieces).await;
        assert_eq!(
            (answer.status, last_sha256(&fleet).await),
            (200, wanted.clone()),
            "{bytes}, chunked"
        );
        let mut http2 = Http2::connect(gateway.traffic).await;
        let answer = http2.post(CHAT, &[], &[&body[..1], &body[1..]]).await;
        assert_eq!((answer.status, last_sha256(&fleet).await), (200, wanted), "{bytes}, HTTP/2");
    }
    let seen = asked(fleet.server(0)).await;
    assert!(
        seen.iter()
            .all(|request| request.headers.iter().all(|(name, _)| name != "transfer-encoding"))
    );
}

/// BODY-1: the limit itself.
#[tokio::test]
async fn a_body_above_the_limit_is_a_413_in_the_form_of_its_route() {
    let (fleet, gateway) = start(json!({ "limits": { "requestBodyBytesMax": LIMIT } })).await;
    let body = body_of(LIMIT + 1);
    let pieces = chunked(&body, &[65_536; 100]);
    let known = ask(gateway.traffic, "POST", CHAT, &[], &body).await;
    let answer =
        ask(gateway.traffic, "POST", CHAT, &[("Transfer-Encoding", "chunked")], &pieces).await;
    let mut http2 = Http2::connect(gateway.traffic).await;
    let second = http2.post(CHAT, &[], &[&body]).await;
    for answer in [known, answer, second] {
        assert_eq!((answer.status, answer.code()), (413, "request_too_large".to_owned()));
        assert_eq!(answer.header("x-wicketgate-component"), Some("edge"));
    }
    let anthropic = ask(gateway.traffic, "POST", "/v1/messages", &[], &body).await;
    assert_eq!(
        (anthropic.status, &anthropic.json()["error"]["type"]),
        (413, &json!("request_too_large"))
    );
    assert!(asked(fleet.server(0)).await.is_empty());
}

/// peers.md §4 H: what cannot be read, or could be read in two ways (`reliability.md` B.4).
#[tokio::test]
async fn a_body_that_could_be_read_in_two_ways_is_a_400_and_reaches_nobody() {
    let (fleet, gateway) = start(json!({})).await;
    let model = r#""model":"llama-3.1-8b""#;
    let deep = format!(r#"{{{model},"x":{}1{}}}"#, "[".repeat(65), "]".repeat(65));
    let utf16: Vec<u8> = format!("{{{model}}}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "invalid_json"),
        (b"{".to_vec(), "invalid_json"),
        (b"5".to_vec(), "invalid_json"),
        (b"[]".to_vec(), "invalid_json"),
        (utf16, "invalid_encoding"),
        (deep.into_bytes(), "body_too_deep"),
    ];
    for (text, code) in [
        (format!("\u{feff}{{{model}}}"), "invalid_encoding"),
        (format!("{{{model},\"x\":NaN}}"), "invalid_json"),
        (format!("{{{model},\"x\":Infinity}}"), "invalid_json"),
        (format!("{{{model},\"x\":01}}"), "invalid_json"),
        (format!("{{{model},\"x\":'a'}}"), "invalid_json"),
        (format!("{{{model},}}"), "invalid_json"),
        (format!("{{{model}}}{{{model}}}"), "invalid_json"),
        (format!("{{{model},\"model\":\"other\"}}"), "duplicate_field"),
        (format!("{{\"\\u006dodel\":\"other\",{model}}}"), "duplicate_field"),
        (format!("{{\"Model\":\"other\",{model}}}"), "misspelt_field"),
        (format!("{{{model},\"stream\":true,\"stream\":false}}"), "duplicate_field"),
        ("{\"model\":5}".to_owned(), "invalid_model"),
        ("{\"model\":\"\"}".to_owned(), "invalid_model"),
    ] {
        cases.push((text.into_bytes(), code));
    }
    cases.push(([b"{\"model\":\"a\",\"x\":\"\xff\"}".as_slice()].concat(), "invalid_encoding"));
    cases.push((b"{\"model\":\"\\ud800\"}".to_vec(), "invalid_model"));
    for (body, code) in cases {
        let answer = ask(gateway.traffic, "POST", CHAT, &[], &body).await;
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(
            (answer.status, answer.code()),
            (400, code.to_owned()),
            "{text}: {}",
            answer.text()
        );
        assert_eq!(answer.header("x-wicketgate-component"), Some("edge"));
        assert_eq!(answer.end, End::Open, "the body was read, so the connection stays good");
    }
    assert!(asked(fleet.server(0)).await.is_empty());
}

/// peers.md §3.3: others answer 400 or 422 in plain text.
#[tokio::test]
async fn a_broken_body_is_told_where_it_breaks_in_the_dialect_of_its_route() {
    let (fleet, gateway) = start(json!({})).await;
    let broken = br#"{"model":"llama-3.1-8b", x}"#;
    let offset = broken.iter().position(|byte| *byte == b'x').unwrap().to_string();
    let ours = ask(gateway.traffic, "POST", CHAT, &[], broken).await;
    assert_eq!(ours.header("content-type"), Some("application/json"));
    assert!(ours.json()["error"]["message"].as_str().unwrap().contains(&offset), "{}", ours.text());
    assert_eq!(ours.json()["error"]["type"], "invalid_request_error");
    let anthropic = ask(gateway.traffic, "POST", "/v1/messages", &[], broken).await.json();
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]["type"]),
        (&json!("error"), &json!("invalid_request_error"))
    );
    assert!(anthropic["error"]["message"].as_str().unwrap().contains(&offset));
    let tgi = ask(gateway.traffic, "POST", "/generate_stream", &[], b"{\"inputs\":").await.json();
    assert_eq!(tgi["error_type"], "validation");
    assert!(asked(fleet.server(0)).await.is_empty());
}

/// peers.md §3.3 and §4 H 115: fields that others refuse, drop, rewrite or add.
#[tokio::test]
async fn fields_that_other_routers_change_arrive_untouched() {
    let (fleet, gateway) = start(json!({})).await;
    for field in [
        r#""seed": 18446744073709551615"#,
        r#""seed": 9007199254740993"#,
        r#""unknown": 12345678901234567890123, "user" : "someone""#,
        r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
        r#""x":{"a":1,"a":2}, "y":"\u00e9\ud83d\ude00 é😀", "z":[1.0,1e2,-0]"#,
        "\"spaced\" :\t1 ,\r\n \"more\" : 2",
    ] {
        let body = format!(
            r#"{{ {field}, "max_tokens":2, "messages":[{{"role":"user","content":"Hi"}}], "model":"llama-3.1-8b" }}"#
        );
        let answer = ask(gateway.traffic, "POST", CHAT, &[], body.as_bytes()).await;
        assert_eq!(answer.header("x-wicketgate-component"), None, "{field}: {}", answer.text());
        assert_eq!(last_sha256(&fleet).await, sha256(body.as_bytes()), "{field}");
    }
}

/// `reliability.md` B.4, last paragraph.
#[tokio::test]
async fn a_body_of_another_media_type_or_coding_is_a_415() {
    let (fleet, gateway) = start(json!({})).await;
    let body = prompt("Hi", 2).to_string();
    for fields in [
        &[("Content-Type", "text/plain")][..],
        &[("Content-Type", "application/x-www-form-urlencoded")],
        &[("Content-Type", "")],
        &[("Content-Encoding", "gzip")],
        &[("Content-Encoding", "deflate")],
    ] {
        let answer = ask(gateway.traffic, "POST", CHAT, fields, body.as_bytes()).await;
        assert_eq!(
            (answer.status, answer.code()),
            (415, "unsupported_media_type".to_owned()),
            "{fields:?}"
        );
    }
    let fine =
        [("Content-Type", "application/json; charset=utf-8"), ("Content-Encoding", "identity")];
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &fine, body.as_bytes()).await.status, 200);
    assert_eq!(asked(fleet.server(0)).await.len(), 1);
}

/// The budget for bodies in memory is shared by all requests, and given back.
#[tokio::test]
async fn bodies_beyond_the_memory_for_bodies_are_a_503_until_some_are_done() {
    let limits = json!({ "limits": { "requestBodyBytesMax": "1MiB", "multipartBodyBytesMax": "1MiB", "bufferedBodyBytesMax": "1MiB" } });
    let (fleet, gateway) = start(limits).await;
    fleet.server(0).fault(sim::FaultKind::Stall { after_chunks: None });
    let body = body_of(700 << 10);
    let mut first = Client::connect(gateway.traffic).await;
    first.send(&request("POST", CHAT, &[], &body)).await;
    crate::sims::seen(fleet.server(0), |_| true).await;
    let answer: Answer = ask(gateway.traffic, "POST", CHAT, &[], &body).await;
    assert_eq!((answer.status, answer.code()), (503, "body_memory".to_owned()));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.header("x-wicketgate-component"), Some("limit"));
    fleet.server(0).heal();
    drop(first);
    gateway
        .until("the first body was given back", async || {
            chat(gateway.traffic, &serde_json::from_slice(&body).unwrap()).await.status == 200
        })
        .await;
    assert_eq!(gateway.metric("wicketgate_buffered_body_bytes", &[]).await, 0.0);
}

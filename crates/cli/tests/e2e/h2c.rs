//! Endpoints that speak HTTP/2 without TLS (`appProtocol: kubernetes.io/h2c`).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::Reason;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, chat, request};
use crate::sims::{prompt, streamed};

const EVENT: &str =
    "data: {\"model\":\"llama-3.1-8b\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";

/// What the endpoint was asked: header fields and body.
type Asked = Arc<Mutex<Vec<(http::HeaderMap, Vec<u8>)>>>;

/// An endpoint whose streams end well, or are reset in the middle.
async fn endpoint(breaks: bool) -> (SocketAddr, Asked, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Asked::default();
    let log = asked.clone();
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((io, _)) = listener.accept().await {
            connections.spawn(serve(io, log.clone(), breaks));
        }
    });
    (address, asked, task)
}

async fn serve(io: TcpStream, asked: Asked, breaks: bool) {
    // Scrapes speak HTTP/1.1 and fail here, as with any server of HTTP/2 alone.
    let Ok(mut connection) = h2::server::handshake(io).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let asked = asked.clone();
        tokio::spawn(async move {
            let (parts, mut body) = request.into_parts();
            let mut read = Vec::new();
            while let Some(Ok(data)) = body.data().await {
                let _ = body.flow_control().release_capacity(data.len());
                read.extend_from_slice(&data);
            }
            let is_stream = String::from_utf8_lossy(&read).contains("\"stream\":true");
            asked.lock().unwrap().push((parts.headers, read));
            let kind = if is_stream { "text/event-stream" } else { "application/json" };
            let head = http::Response::builder().header("content-type", kind).body(()).unwrap();
            let mut stream = respond.send_response(head, false).unwrap();
            if !is_stream {
                stream
                    .send_data(Bytes::from_static(b"{\"model\":\"llama-3.1-8b\"}"), true)
                    .unwrap();
                return;
            }
            stream.send_data(Bytes::from_static(EVENT.as_bytes()), false).unwrap();
            if breaks {
                // The event must be on its way before the reset throws it away.
                tokio::task::yield_now().await;
                stream.reserve_capacity(1);
                let _ = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
                stream.send_reset(Reason::INTERNAL_ERROR);
            } else {
                stream.send_data(Bytes::from_static(b"data: [DONE]\n\n"), true).unwrap();
            }
        });
    }
}

async fn gateway_over(address: SocketAddr) -> Gateway {
    let mut document = document(&[format!("http://{address}")], json!({}));
    document["spec"]["schedulers"][0]["appProtocol"] = json!("kubernetes.io/h2c");
    Gateway::with_document(&document, &[]).await
}

#[tokio::test]
async fn an_endpoint_that_speaks_h2c_gets_the_body_as_it_was_and_our_fields_only() {
    let (address, asked, endpoint) = endpoint(false).await;
    let gateway = gateway_over(address).await;
    let body = prompt("caf\u{e9}", 5).to_string();
    let mut client = Client::connect(gateway.traffic).await;
    let fields = [("x-foo", "bar"), ("authorization", "Bearer secret"), ("x-request-id", "r-1")];
    client.send(&request("POST", CHAT, &fields, body.as_bytes())).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{\"model\":\"llama-3.1-8b\"}"));
    let asked = asked.lock().unwrap();
    let (headers, read) = &asked[0];
    assert_eq!(read, body.as_bytes());
    assert_eq!(headers["x-foo"], "bar");
    assert_eq!(headers["x-request-id"], "r-1");
    assert!(!headers.contains_key("authorization") && !headers.contains_key("connection"));
    endpoint.abort();
}

#[tokio::test]
async fn a_stream_of_an_h2c_endpoint_is_passed_on_to_its_end() {
    let (address, _, endpoint) = endpoint(false).await;
    let gateway = gateway_over(address).await;
    let answer = chat(gateway.traffic, &streamed("Hello", 5)).await;
    assert!(answer.complete);
    assert_eq!(answer.text(), format!("{EVENT}data: [DONE]\n\n"));
    endpoint.abort();
}

#[tokio::test]
async fn an_alias_is_rewritten_on_the_way_there_and_back_over_h2c() {
    let (address, asked, endpoint) = endpoint(false).await;
    let rules = json!([{ "targets": [{ "modelRewrite": "llama-3.1-8b" }] }]);
    let rewrites = json!({ "modelRewrites": [{ "name": "alias", "rules": rules }] });
    let mut document = document(&[format!("http://{address}")], rewrites);
    document["spec"]["schedulers"][0]["appProtocol"] = json!("kubernetes.io/h2c");
    let gateway = Gateway::with_document(&document, &[]).await;
    let mut body = prompt("Hello", 5);
    body["model"] = json!("an-alias");
    let answer = chat(gateway.traffic, &body).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "{\"model\":\"an-alias\"}"));
    body["stream"] = json!(true);
    let answer = chat(gateway.traffic, &body).await;
    let event = EVENT.replace("llama-3.1-8b", "an-alias");
    assert_eq!((answer.text(), answer.complete), (format!("{event}data: [DONE]\n\n"), true));
    let sent = body.to_string().replace("an-alias", "llama-3.1-8b");
    let asked = asked.lock().unwrap();
    let (headers, got) = &asked[1];
    assert_eq!(String::from_utf8_lossy(got), sent);
    assert_eq!(headers["content-length"], sent.len().to_string());
    endpoint.abort();
}

#[tokio::test]
async fn a_stream_that_an_h2c_endpoint_resets_never_looks_complete() {
    let (address, _, endpoint) = endpoint(true).await;
    let gateway = gateway_over(address).await;
    let answer = chat(gateway.traffic, &streamed("Hello", 5)).await;
    assert!(!answer.text().contains("[DONE]"));
    assert!(!(answer.complete && answer.status == 200), "{answer:?}");
    endpoint.abort();
}

#[tokio::test]
async fn an_h2c_endpoint_that_is_gone_is_503() {
    let (address, _, endpoint) = endpoint(false).await;
    let gateway = gateway_over(address).await;
    assert_eq!(chat(gateway.traffic, &prompt("Hello", 5)).await.status, 200);
    endpoint.abort();
    let _ = endpoint.await;
    gateway
        .until("the endpoint was missed", async || {
            matches!(chat(gateway.traffic, &prompt("Hello", 5)).await.status, 502 | 503)
        })
        .await;
}

//! HTTP/2 from clients: prior knowledge, many streams, resets, and the same rules as HTTP/1.1.

use std::net::SocketAddr;
use std::time::Duration;

use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use serde_json::json;
use sim::{FaultKind, Outcome, ServerSpec};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::gateway::{Gateway, PATIENCE};
use crate::http::{Answer, CHAT, End};
use crate::sims::{asked, asked_of_all, fast, fleet, prompt, seen, slow, streamed};

/// A client connection.
pub(crate) struct Http2 {
    sender: SendRequest<Data>,
    connection: tokio::task::JoinHandle<()>,
}

type Data = std::io::Cursor<Vec<u8>>;

impl Http2 {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        Self::over(TcpStream::connect(to).await.unwrap()).await
    }

    pub(crate) async fn over(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = h2::client::Builder::new().handshake(io).await.unwrap();
        let connection = tokio::spawn(async move {
            // What went wrong shows in the streams.
            let _ = connection.await;
        });
        Self { sender, connection }
    }

    /// Sends a request whose body is `pieces`, each in frames of its own.
    pub(crate) async fn send(
        &mut self,
        request: http::Request<()>,
        pieces: &[&[u8]],
    ) -> Result<http::Response<RecvStream>, h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        let (answer, mut stream) = sender.send_request(request, pieces.is_empty())?;
        for (at, piece) in pieces.iter().enumerate() {
            // The answer may come before the end of the body (413): then nobody takes the rest.
            let _ = stream.send_data(Data::new(piece.to_vec()), at + 1 == pieces.len());
        }
        timeout(PATIENCE, answer).await.expect("an answer in time")
    }

    pub(crate) async fn post(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        pieces: &[&[u8]],
    ) -> Answer {
        let answer = self.send(post(path, fields), pieces).await.unwrap();
        read(answer).await
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

fn post(path: &str, fields: &[(&str, &str)]) -> http::Request<()> {
    let mut request = http::Request::post(format!("http://gateway.test{path}"))
        .header("content-type", "application/json");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// Reads an answer to its end; `complete` is false when the stream was reset.
async fn read(answer: http::Response<RecvStream>) -> Answer {
    let (parts, mut stream) = answer.into_parts();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
        .collect();
    let mut answer = Answer {
        status: parts.status.as_u16(),
        headers,
        body: Vec::new(),
        complete: true,
        end: End::Open,
    };
    while let Some(data) = timeout(PATIENCE, stream.data()).await.expect("data in time") {
        match data {
            Ok(data) => {
                let _ = stream.flow_control().release_capacity(data.len());
                answer.body.extend_from_slice(&data);
            }
            Err(error) => {
                answer.complete = false;
                answer.end = if error.is_reset() { End::Reset } else { End::Fin };
                break;
            }
        }
    }
    answer
}

/// The point 3.
#[tokio::test]
async fn http2_with_prior_knowledge_is_served_whole_and_streamed() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let mut client = Http2::connect(gateway.traffic).await;
    let whole = client
        .post(CHAT, &[("x-request-id", "h2-whole")], &[prompt("Hi", 3).to_string().as_bytes()])
        .await;
    assert_eq!((whole.status, whole.json()["object"].as_str()), (200, Some("chat.completion")));
    assert_eq!(whole.header("x-request-id"), Some("h2-whole"));
    let stream = client.post(CHAT, &[], &[streamed("Hi", 3).to_string().as_bytes()]).await;
    assert!(stream.complete && stream.text().ends_with("data: [DONE]\n\n"), "{}", stream.text());
    let list = client
        .send(http::Request::get("http://gateway.test/v1/models").body(()).unwrap(), &[])
        .await
        .unwrap();
    assert_eq!(read(list).await.json()["data"][0]["id"], "llama-3.1-8b");
    let head = client
        .send(http::Request::head("http://gateway.test/v1/models").body(()).unwrap(), &[])
        .await
        .unwrap();
    let head = read(head).await;
    assert!(head.status == 200 && head.complete && head.body.is_empty(), "{head:?}");
}

/// A.2: 100 streams.
#[tokio::test]
async fn a_hundred_streams_run_on_one_connection() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let client = Http2::connect(gateway.traffic).await;
    let mut all = JoinSet::new();
    for number in 0..100 {
        let mut sender =
            Http2 { sender: client.sender.clone(), connection: tokio::spawn(async {}) };
        all.spawn(async move {
            let body = streamed(&format!("Question {number}"), 20).to_string();
            sender.post(CHAT, &[], &[body.as_bytes()]).await
        });
    }
    while let Some(answer) = all.join_next().await {
        let answer = answer.unwrap();
        assert!(
            answer.status == 200 && answer.complete && answer.text().ends_with("data: [DONE]\n\n")
        );
    }
    assert_eq!(asked_of_all(&fleet).await.len(), 100);
}

/// Fault model, row 35; MadeYouReset: no work goes on behind a stream that is gone.
#[tokio::test]
async fn a_stream_that_its_client_resets_is_cancelled_at_the_endpoint() {
    let fleet = fleet(1, slow()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let server = fleet.server(0);
    for stalled in [false, true] {
        if stalled {
            server.fault(FaultKind::Stall { after_chunks: None });
        }
        let client = Http2::connect(gateway.traffic).await;
        let mut sender = client.sender.clone().ready().await.unwrap();
        let (answer, mut stream) = sender.send_request(post(CHAT, &[]), false).unwrap();
        stream.send_data(Data::new(streamed("Hi", 4000).to_string().into_bytes()), true).unwrap();
        let number = seen(server, |request| request.outcome == Outcome::Open).await.number;
        let left = Instant::now();
        stream.send_reset(Reason::CANCEL);
        drop(answer);
        let end =
            seen(server, |request| request.number == number && request.outcome != Outcome::Open)
                .await;
        assert_eq!(end.outcome, Outcome::Cancelled);
        // 100 ms are promised; the rest is for two cores shared with other tests.
        assert!(left.elapsed() < Duration::from_millis(300), "{:?}", left.elapsed());
    }
}

/// The same as on HTTP/1.1, where the connection closes: the stream is reset, not ended.
#[tokio::test]
async fn a_broken_stream_ends_with_an_error_event_and_a_reset() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    fleet.server(0).fault(FaultKind::Cut { after_chunks: Some(3), reset: false });
    let mut client = Http2::connect(gateway.traffic).await;
    let answer = client.post(CHAT, &[], &[streamed("Hi", 9).to_string().as_bytes()]).await;
    assert!(!answer.complete && answer.end == End::Reset, "{:?}: {}", answer.end, answer.text());
    assert!(
        answer.events().last().unwrap().contains("endpoint_cut")
            && !answer.text().contains("[DONE]")
    );
    fleet.server(0).heal();
    let next = client.post(CHAT, &[], &[prompt("Hi", 2).to_string().as_bytes()]).await;
    assert_eq!(next.status, 200, "the connection lives on");
}

/// `reliability.md` A.4: what HTTP/1.1's gate refuses is refused here.
#[tokio::test]
async fn the_rules_about_fields_hold_on_http2() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let mut client = Http2::connect(gateway.traffic).await;
    let body = prompt("Hi", 2).to_string();
    let many: Vec<(String, String)> =
        (0..101).map(|at| (format!("x-{at}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for (fields, status) in [
        (&[("x_gateway_destination_endpoint", "a:1")][..], 400),
        (&[("authorization", "a"), ("authorization", "b")], 400),
        (&[("content-type", "application/json")], 400),
        (&[("x-request-id", "a"), ("x-request-id", "b")], 400),
        (&[("host", "another.test")], 400),
        (&many, 431),
    ] {
        let answer = client.post(CHAT, fields, &[body.as_bytes()]).await;
        assert_eq!(answer.status, status, "{fields:?}: {}", answer.text());
    }
    for (path, status) in
        [("/v1/chat/completions/", 404), ("/v1/../metrics", 404), ("/metrics", 404)]
    {
        assert_eq!(client.post(path, &[], &[body.as_bytes()]).await.status, status, "{path}");
    }
    assert!(asked(fleet.server(0)).await.is_empty());
    let steering = [("x-gateway-destination-endpoint", "10.0.0.1:80"), ("x-custom", "kept")];
    assert_eq!(client.post(CHAT, &steering, &[body.as_bytes()]).await.status, 200);
    let headers = &asked(fleet.server(0)).await[0].headers;
    assert!(headers.iter().all(|(name, _)| !name.starts_with("x-gateway-")), "{headers:?}");
    assert!(headers.iter().any(|(name, value)| name == "x-custom" && value == "kept"));
}

/// Trailers of a request are dropped: they could be read as fields.
#[tokio::test]
async fn trailers_of_a_request_do_not_reach_the_endpoint() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let client = Http2::connect(gateway.traffic).await;
    let mut sender = client.sender.clone().ready().await.unwrap();
    let (answer, mut stream) = sender.send_request(post(CHAT, &[]), false).unwrap();
    stream.send_data(Data::new(prompt("Hi", 2).to_string().into_bytes()), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-gateway-destination-endpoint", "10.0.0.1:80".parse().unwrap());
    trailers.insert("x-late", "1".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
    assert_eq!(read(answer.await.unwrap()).await.status, 200);
    let headers = &asked(fleet.server(0)).await[0].headers;
    assert!(
        headers.iter().all(|(name, _)| name != "x-late" && !name.starts_with("x-gateway-")),
        "{headers:?}"
    );
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// CVE-2023-44487: resets of streams that nobody accepted yet are counted, and end the connection.
#[tokio::test]
async fn a_flood_of_resets_ends_its_connection_and_nobody_elses() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let mut attacker = TcpStream::connect(gateway.traffic).await.unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    // :method POST, :scheme http, :path /v1/chat/completions, :authority a, all without Huffman.
    let fields =
        [&[0x83, 0x86, 0x04, CHAT.len() as u8][..], CHAT.as_bytes(), &[0x01, 1, b'a']].concat();
    for number in 0..50_000 {
        bytes.extend(frame(1, 4, 2 * number + 1, &fields));
        bytes.extend(frame(3, 0, 2 * number + 1, &8_u32.to_be_bytes()));
    }
    let (mut read, mut write) = attacker.split();
    let mut answer = Vec::new();
    let (_, ended) =
        tokio::join!(write.write_all(&bytes), timeout(PATIENCE, read.read_to_end(&mut answer)));
    assert!(ended.is_ok(), "the connection is still open");
    let mut other = Http2::connect(gateway.traffic).await;
    assert_eq!(other.post(CHAT, &[], &[prompt("Hi", 2).to_string().as_bytes()]).await.status, 200);
    assert_eq!(asked(fleet.server(0)).await.len(), 1);
}

/// Fault model, row 37, on HTTP/2: the window stays shut, and hyper alone would wait for ever.
#[tokio::test]
async fn a_client_whose_window_stays_shut_is_given_up() {
    let fleet = fleet(1, ServerSpec { time_scale: 0.05, ..ServerSpec::default() }).await;
    let limits = json!({ "timeouts": { "slowReader": "500ms" } });
    let gateway = Gateway::over(&fleet.urls(), limits).await;
    let mut client = Http2::connect(gateway.traffic).await;
    let body = streamed("Hi", 100_000).to_string().into_bytes();
    // Held, but never read: its window of 64 KiB fills up.
    let _answer = client.send(post(CHAT, &[]), &[&body]).await.unwrap();
    let end = seen(fleet.server(0), |request| request.outcome != Outcome::Open).await;
    assert_eq!(end.outcome, Outcome::Cancelled);
}

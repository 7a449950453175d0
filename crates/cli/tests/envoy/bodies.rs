//! Bodies arrive as they were sent, both ways.

use bytes::Bytes;
use serde_json::json;
use tokio::net::TcpStream;

use crate::http::{Client, ask, request};
use crate::stand::{Example, Setup};
use crate::upstream::{Act, Upstream};

/// Bytes that no run of them repeats within a piece.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

const LENGTHS: [usize; 9] = [0, 1, 61_999, 62_000, 62_001, 65_535, 65_537, 1 << 20, 8 << 20];

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_body_of_any_length_is_identical_at_the_endpoint_and_back() {
    for example in [Example::OriginalDst, Example::OverrideHost] {
        let stand = Setup::new(example, Act::Echo).start().await;
        for length in LENGTHS {
            let sent = bytes(length);
            let answer = ask(stand.traffic, "POST", "/raw", &[], &sent).await;
            assert_eq!(answer.status, 200, "{length}: {answer:?}");
            assert!(answer.complete && answer.body == sent, "{length} bytes came back otherwise");
            let seen = stand.upstreams.iter().flat_map(Upstream::seen).last().unwrap();
            let is_there =
                stand.upstreams.iter().flat_map(Upstream::seen).any(|seen| seen.body == sent);
            assert!(is_there, "{length} bytes arrived otherwise: {}", seen.head);
        }
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_body_in_chunks_is_identical_too() {
    let stand = Setup::new(Example::OriginalDst, Act::Echo).start().await;
    for length in [0, 1, 62_001, 1 << 20] {
        let sent = bytes(length);
        let mut framed = request("POST", "/raw", &[("Transfer-Encoding", "chunked")], b"");
        for chunk in sent.chunks(30_000) {
            framed.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
            framed.extend(chunk);
            framed.extend(b"\r\n");
        }
        framed.extend(b"0\r\n\r\n");
        let mut client = Client::connect(stand.traffic).await;
        client.send(&framed).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 200, "{length}");
        assert!(answer.body == sent, "{length}");
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn json_arrives_with_every_byte_of_its_own() {
    let stand = Setup::new(Example::OriginalDst, Act::Answer).start().await;
    let sent = "{ \"seed\" : 9007199254740993, \"model\":\"llama\",\n\t\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9<&>\"}], \"x\": 1e2 }";
    let answer = ask(stand.traffic, "POST", "/v1/chat/completions", &[], sent.as_bytes()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = stand.upstreams.iter().flat_map(Upstream::seen).next().unwrap();
    assert_eq!(String::from_utf8(seen.body).unwrap(), sent);
    let line = &stand.picker.logged(1).await[0];
    assert_eq!(
        (&line["prompt_tokens"], &line["completion_tokens"]),
        (&json!(3), &json!(1)),
        "{line}"
    );
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_request_without_a_body_is_served() {
    let stand = Setup::new(Example::OriginalDst, Act::Answer).start().await;
    let answer = ask(stand.traffic, "GET", "/v1/models", &[], b"").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["data"][0]["id"], "llama");
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn trailers_end_a_body_of_any_length() {
    let stand = Setup::new(Example::OriginalDst, Act::Echo).start().await;
    for length in [1, 62_001, 1 << 20] {
        let io = TcpStream::connect(stand.traffic).await.unwrap();
        let (mut client, connection) = h2::client::handshake(io).await.unwrap();
        let connection = tokio::spawn(connection);
        let request =
            ::http::Request::post(format!("http://{}/raw", stand.traffic)).body(()).unwrap();
        let (response, mut stream) = client.send_request(request, false).unwrap();
        let sent = bytes(length);
        let mut rest = Bytes::from(sent.clone());
        stream.reserve_capacity(rest.len());
        while !rest.is_empty() {
            let granted =
                std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
            stream.send_data(rest.split_to(granted.min(rest.len())), false).unwrap();
        }
        let mut trailers = ::http::HeaderMap::new();
        trailers.insert("x-checksum", "1".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200, "{length}");
        let mut body = response.into_body();
        let mut back = Vec::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk.unwrap();
            body.flow_control().release_capacity(chunk.len()).unwrap();
            back.extend_from_slice(&chunk);
        }
        assert!(back == sent, "{length}");
        connection.abort();
    }
}

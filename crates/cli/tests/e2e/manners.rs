//! How a connection goes on: pipelining, early answers, `Expect`, HTTP/1.0 (`reliability.md` A.4).

use crate::gate::{SECOND, start};
use crate::http::{CHAT, Client, End, request};
use crate::sims::{asked, prompt};

/// Pipelining is legal: each answer in its turn, and no request is lost or doubled.
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (fleet, gateway) = start().await;
    let mut client = Client::connect(gateway.traffic).await;
    let chats: Vec<u8> = (1..=3)
        .flat_map(|number| {
            let id = format!("piped-{number}");
            request("POST", CHAT, &[("X-Request-Id", &id)], prompt("Hi", 2).to_string().as_bytes())
        })
        .collect();
    client.send(&[&chats, SECOND.as_bytes()].concat()).await;
    for number in 1..=3 {
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.header("x-request-id")),
            (200, Some(format!("piped-{number}").as_str()))
        );
    }
    assert_eq!(client.answer().await.json()["object"], "list");
    assert_eq!(asked(fleet.server(0)).await.len(), 3);
}

/// "Early response": what follows an answer that did not wait for its body is no request.
#[tokio::test]
async fn a_body_that_nobody_waited_for_is_never_read_as_a_request() {
    let (fleet, gateway) = start().await;
    for (path, kind) in [("/metrics", "application/json"), (CHAT, "text/plain")] {
        let body = SECOND.repeat(3);
        let mut client = Client::connect(gateway.traffic).await;
        client.send(&request("POST", path, &[("Content-Type", kind)], body.as_bytes())).await;
        let answer = client.answer().await;
        assert!(matches!(answer.status, 404 | 415), "{}", answer.status);
        assert_eq!((answer.header("connection"), answer.end), (Some("close"), End::Fin));
        assert!(client.closes().await, "a second answer");
    }
    assert!(asked(fleet.server(0)).await.is_empty());
}

/// "Expect: 100-continue": ours to answer, after the head was let in; never forwarded.
#[tokio::test]
async fn a_client_that_expects_continue_is_told_so_only_if_its_head_was_let_in() {
    let (fleet, gateway) = start().await;
    let body = prompt("Hi", 2).to_string();
    let whole = request("POST", CHAT, &[("Expect", "100-continue")], body.as_bytes());
    let (head, rest) = whole.split_at(whole.len() - body.len());
    let mut client = Client::connect(gateway.traffic).await;
    client.send(head).await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(rest).await;
    assert_eq!(client.answer().await.status, 200);
    let headers = &asked(fleet.server(0)).await[0].headers;
    assert!(headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("expect")), "{headers:?}");

    let mut client = Client::connect(gateway.traffic).await;
    let refused =
        request("POST", "/metrics", &[("Expect", "100-continue"), ("Content-Length", "5")], b"");
    client.send(&refused).await;
    let answer = client.until("\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let mut client = Client::connect(gateway.traffic).await;
    let large =
        request("POST", CHAT, &[("Expect", "100-continue"), ("Content-Length", "99999999")], b"");
    client.send(&large).await;
    let answer = client.until("\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 413 "),
        "no 100 for a body that will be refused: {answer}"
    );
}

/// "HTTP/1.0": no chunks, and the connection closes.
#[tokio::test]
async fn http_1_0_gets_no_chunks_and_a_closed_connection() {
    let (fleet, gateway) = start().await;
    let body = crate::sims::streamed("Hi", 5).to_string();
    let mut client = Client::connect(gateway.traffic).await;
    let head = format!(
        "POST {CHAT} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(&[head.as_bytes(), body.as_bytes()].concat()).await;
    let answer = client.answer().await;
    assert_eq!(
        (answer.status, answer.header("transfer-encoding"), answer.end),
        (200, None, End::Fin)
    );
    assert!(answer.complete && answer.text().ends_with("data: [DONE]\n\n"));

    // A body without a length is none, never everything up to the end of the connection.
    let mut client = Client::connect(gateway.traffic).await;
    client
        .send(
            format!("POST {CHAT} HTTP/1.0\r\nContent-Type: application/json\r\n\r\n{body}")
                .as_bytes(),
        )
        .await;
    assert_eq!(client.answer().await.status, 400);
    assert_eq!(asked(fleet.server(0)).await.len(), 1);
}

/// One byte at a time is slow, but not wrong.
#[tokio::test]
async fn a_request_that_comes_byte_by_byte_is_served() {
    let (_fleet, gateway) = start().await;
    let mut client = Client::connect(gateway.traffic).await;
    for byte in request("POST", CHAT, &[], prompt("Hi", 2).to_string().as_bytes()) {
        client.send(&[byte]).await;
    }
    assert_eq!(client.answer().await.status, 200);
}

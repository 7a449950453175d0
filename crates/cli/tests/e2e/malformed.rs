//! Endpoints whose answers are not HTTP, or could be read in two ways (`reliability.md` A.4).

use serde_json::json;

use crate::gateway::Gateway;
use crate::http::{Answer, End, chat};
use crate::scripted::{Act, Scripted};
use crate::sims::{prompt, streamed};

async fn answer_to(act: Act, stream: bool) -> Answer {
    let endpoint = Scripted::start(None, act).await;
    let gateway =
        Gateway::with_document(&crate::gateway::document(&[endpoint.url()], json!({})), &[]).await;
    let body = if stream { streamed("Hello", 5) } else { prompt("Hello", 5) };
    chat(gateway.traffic, &body).await
}

fn write(bytes: &str) -> Act {
    Act::Write(vec![bytes.as_bytes().to_vec()])
}

/// "Upstream framing is untrusted".
#[tokio::test]
async fn an_answer_that_could_be_read_in_two_ways_is_a_502() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: foo\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
    ] {
        let answer = answer_to(write(head), false).await;
        assert_eq!(
            (answer.status, answer.code()),
            (502, "endpoint_malformed".to_owned()),
            "{head:?}"
        );
        assert_eq!(answer.header("x-wicketgate-component"), Some("endpoint"));
    }
}

/// At most eight 1xx answers are passed over.
#[tokio::test]
async fn interim_answers_are_passed_over_up_to_a_number() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let good = answer_to(write(&format!("{}{answer}", interim.repeat(8))), false).await;
    assert_eq!((good.status, good.text().as_str()), (200, "{}"));
    assert_eq!(
        answer_to(write(&format!("{}{answer}", interim.repeat(9))), false).await.status,
        502
    );
}

/// Fault model, row 6.
#[tokio::test]
async fn broken_chunks_within_an_answer_never_look_like_its_end() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let first = "f\r\ndata: {\"a\":1}\n\n\r\n";
    for rest in ["zz\r\n", "5\r\nab", "5\n12345\r\n", "-1\r\n", "ffffffffffffffffffff\r\n"] {
        let pieces = vec![format!("{head}{first}").into_bytes(), rest.as_bytes().to_vec()];
        let answer = answer_to(Act::Write(pieces), true).await;
        assert!(answer.status == 502 || !answer.complete, "{rest:?}: {answer:?}");
        assert!(!answer.text().contains("[DONE]"));
    }
}

/// An error in the first event has a status, however the network split it.
#[tokio::test]
async fn an_opening_error_has_its_status_for_any_split_of_its_bytes() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let event = "data: {\"error\": {\"message\": \"no\", \"type\": \"BadRequestError\", \"code\": 400}}\n\n";
    for cut in [0, 1, 5, 40, event.len() - 1] {
        let (one, two) = event.split_at(cut);
        let pieces = vec![format!("{head}{one}").into_bytes(), two.as_bytes().to_vec()];
        let answer = answer_to(Act::Write(pieces), true).await;
        assert_eq!(answer.status, 400, "cut at {cut}: {}", answer.text());
    }
}

/// Nobody asked for what stands behind the end of an answer.
#[tokio::test]
async fn bytes_behind_an_answer_do_not_reach_the_client() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra";
    let answer = answer_to(write(&format!("{answer}{smuggled}")), false).await;
    assert_eq!((answer.text().as_str(), answer.complete, answer.end), ("{}", true, End::Open));
}

/// An endpoint may answer before it read the whole request (413, say).
#[tokio::test]
async fn an_answer_before_the_end_of_the_request_is_passed_on() {
    let answer = "HTTP/1.1 413 Payload Too Large\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nbig";
    let answer = answer_to(Act::WriteAndHold(answer.as_bytes().to_vec()), false).await;
    assert_eq!((answer.status, answer.text().as_str()), (413, "big"));
}

//! Open loop: requests at times fixed before the run, each on a connection of its own, all times
//! from the instant at which it was due, so that whoever stalls pays for all who had to wait.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::interrupt::pause;
use crate::measure::Seen;
use crate::sse::{Event, Events, Usage};
use crate::text;

const PATH: &str = "/v1/chat/completions";
/// How often a run looks whether it was interrupted.
const TICK: Duration = Duration::from_millis(200);

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Modelled.
    pub due: Duration,
    pub body: Bytes,
    pub prompt_tokens: u32,
    pub output_tokens: u32,
    /// Not in the warm-up.
    pub counts: bool,
}

/// What the client saw. Times are modelled but for `late_ms`.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests that count.
    pub seen: Vec<Seen>,
    /// Gaps between tokens of these, ascending.
    pub gaps_ms: Vec<f64>,
    /// Due to sent, of all requests, real milliseconds, ascending.
    pub late_ms: Vec<f64>,
    /// Events that came, the warm-up's too, by real second of arrivals.
    pub chunks_per_second: f64,
    /// Why requests failed, one example.
    pub failure: Option<String>,
}

struct Answer {
    planned: Planned,
    seen: Seen,
    gaps_ms: Vec<f64>,
    late_ms: f64,
    failure: Option<String>,
}

impl Planned {
    pub fn new(request: &lab::Request, model: &str, warm_up: Duration) -> Self {
        let due = request.at.as_duration();
        let output_tokens = request.answer.tokens;
        let body = serde_json::json!({
            "model": model,
            "messages": [{"role": "user", "content": text::message(&request.prompt)}],
            "max_tokens": output_tokens,
            "ignore_eos": true,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        Self {
            due,
            body: body.to_string().into(),
            prompt_tokens: request.prompt_tokens(),
            output_tokens,
            counts: due >= warm_up,
        }
    }
}

/// Sends all of `planned` to `target` and reads the answers until `cut_off` (modelled).
pub async fn play(
    target: SocketAddr,
    planned: &[Planned],
    scale: f64,
    cut_off: Duration,
) -> anyhow::Result<Outcome> {
    let begun = Instant::now() + Duration::from_millis(20);
    let mut calls = JoinSet::new();
    for one in planned {
        calls.spawn(call(target, one.clone(), begun, scale, cut_off));
    }
    let mut outcome = Outcome::default();
    let mut chunks = 0;
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            answer = calls.join_next() => {
                let Some(answer) = answer else { break };
                let answer = answer?;
                chunks += u64::from(answer.seen.tokens);
                outcome.late_ms.push(answer.late_ms);
                outcome.failure = outcome.failure.or(answer.failure);
                if answer.planned.counts {
                    outcome.seen.push(answer.seen);
                    outcome.gaps_ms.extend(answer.gaps_ms);
                }
            }
            _ = tick.tick() => pause(Duration::ZERO)?,
        }
    }
    let arrivals = planned.last().map_or(Duration::ZERO, |last| last.due).mul_f64(scale);
    outcome.chunks_per_second = chunks as f64 / arrivals.as_secs_f64().max(1e-3);
    outcome.gaps_ms.sort_unstable_by(f64::total_cmp);
    outcome.late_ms.sort_unstable_by(f64::total_cmp);
    Ok(outcome)
}

async fn call(
    target: SocketAddr,
    planned: Planned,
    begun: Instant,
    scale: f64,
    cut_off: Duration,
) -> Answer {
    let due = begun + planned.due.mul_f64(scale);
    let end = begun + cut_off.mul_f64(scale);
    let mut answer = Answer {
        seen: Seen {
            watched: cut_off.saturating_sub(planned.due),
            prompt_tokens: planned.prompt_tokens,
            ..Seen::default()
        },
        planned,
        gaps_ms: Vec::new(),
        late_ms: 0.0,
        failure: None,
    };
    sleep_until(due).await;
    // A cut-off is no failure: the request is unfinished.
    if let Ok(Err(error)) = timeout_at(end, stream(target, &mut answer, due, scale)).await {
        answer.seen.failed = true;
        answer.failure = Some(format!("{error:#}"));
    }
    answer
}

async fn stream(
    target: SocketAddr,
    answer: &mut Answer,
    due: Instant,
    scale: f64,
) -> anyhow::Result<()> {
    let stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends when the sender goes, and with it the request.
    tokio::spawn(connection);
    let request = post(target, answer.planned.body.clone())?;
    answer.late_ms = due.elapsed().as_secs_f64() * 1e3;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let mut body = response.into_body();
    if !status.is_success() {
        let text = body.collect().await?.to_bytes();
        let text = String::from_utf8_lossy(&text);
        bail!("{status}: {}", text.chars().take(200).collect::<String>());
    }
    let (mut events, mut usage) = (Events::default(), Usage::default());
    let (mut is_done, mut is_error) = (false, false);
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        let Some(bytes) = frame.data_ref() else { continue };
        let now = due.elapsed().div_f64(scale);
        events.feed(bytes, |event| match event {
            Event::Token => {
                answer.seen.tokens += 1;
                match answer.seen.last.replace(now) {
                    None => answer.seen.first = Some(now),
                    Some(last) => answer.gaps_ms.push((now - last).as_secs_f64() * 1e3),
                }
            }
            Event::Usage(told) => usage = told,
            Event::Error => is_error = true,
            Event::Done => is_done = true,
            Event::Other => {}
        });
    }
    if is_error || !is_done {
        bail!("broken off after {} tokens", answer.seen.tokens);
    }
    let (tokens, wanted) = (answer.seen.tokens, answer.planned.output_tokens);
    if tokens != wanted {
        bail!("{tokens} tokens instead of {wanted}");
    }
    answer.seen.finished = answer.seen.last;
    answer.seen.cached_tokens = usage.cached_tokens;
    answer.seen.prompt_tokens = usage.prompt_tokens.unwrap_or(answer.seen.prompt_tokens);
    Ok(())
}

fn post(target: SocketAddr, body: Bytes) -> anyhow::Result<Request<Full<Bytes>>> {
    let request = Request::post(PATH)
        .header("host", target.to_string())
        .header("content-type", "application/json");
    Ok(request.body(Full::new(body))?)
}

/// Asks for one token, to see whether somebody answers.
pub async fn probe(target: SocketAddr, model: &str) -> anyhow::Result<()> {
    let stream = TcpStream::connect(target).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let messages = serde_json::json!([{"role": "user", "content": "ready?"}]);
    let body = serde_json::json!({"model": model, "messages": messages, "max_tokens": 1});
    let response = sender.send_request(post(target, body.to_string().into())?).await?;
    let status = response.status();
    let text = response.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        let text = String::from_utf8_lossy(&text);
        bail!("{status}: {}", text.chars().take(200).collect::<String>());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn planned(output_tokens: u32) -> Planned {
        let body = Bytes::from_static(b"{}");
        Planned { due: Duration::ZERO, body, prompt_tokens: 9, output_tokens, counts: true }
    }

    /// Answers one request with `answer`, and then closes or keeps the connection.
    async fn served(answer: &'static str, closes: bool, wanted: u32) -> Outcome {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 4096];
            let _ = socket.read(&mut buffer).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
            if !closes {
                std::future::pending::<()>().await;
            }
        });
        play(target, &[planned(wanted)], 1.0, Duration::from_millis(300)).await.unwrap()
    }

    const GOOD: &str = concat!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"bad \"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"bed \"}}]}\n\n",
        "data: {\"usage\":{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
        "data: [DONE]\n\n",
    );

    #[tokio::test]
    async fn a_whole_answer_is_timed_and_its_usage_read() {
        let outcome = served(GOOD, true, 2).await;
        assert_eq!(outcome.failure, None);
        let seen = outcome.seen[0];
        assert!(seen.first.is_some() && seen.finished >= seen.first && !seen.failed);
        assert_eq!((seen.cached_tokens, outcome.gaps_ms.len()), (Some(4), 1));
    }

    #[tokio::test]
    async fn an_answer_of_the_wrong_length_fails() {
        let outcome = served(GOOD, true, 3).await;
        assert!(outcome.seen[0].failed);
    }

    #[tokio::test]
    async fn a_refusal_fails_and_says_why() {
        let refusal = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\n\r\nfull";
        let outcome = served(refusal, false, 1).await;
        assert!(outcome.seen[0].failed);
        assert!(outcome.failure.unwrap().contains("429"));
    }

    #[tokio::test]
    async fn an_answer_that_is_cut_off_is_unfinished_and_has_not_failed() {
        let begun = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let outcome = served(begun, false, 1).await;
        let seen = outcome.seen[0];
        assert!(!seen.failed && seen.finished.is_none() && seen.first.is_none());
    }
}

//! Clients that never stop, and what became of each request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::http::{Answer, CHAT, Client, End, request};
use crate::stand::MODEL;

/// A chat whose answer has exactly `tokens` tokens.
pub(crate) fn prompt(content: &str, tokens: u32) -> Value {
    json!({
        "model": MODEL, "messages": [{"role": "user", "content": content}],
        "max_tokens": tokens, "ignore_eos": true,
    })
}

/// The same, streamed.
pub(crate) fn streamed(content: &str, tokens: u32) -> Value {
    let mut body = prompt(content, tokens);
    body["stream"] = json!(true);
    body
}

/// What a request came to.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) member: String,
    pub(crate) reason: String,
    /// It ended as it should.
    pub(crate) is_whole: bool,
    pub(crate) text: String,
}

impl From<Answer> for Outcome {
    fn from(answer: Answer) -> Self {
        let field = |name| answer.header(name).unwrap_or_default().to_owned();
        let text = answer.text();
        let is_stream = field("content-type").starts_with("text/event-stream");
        Self {
            status: answer.status,
            member: field("x-wicketgate-member"),
            reason: field("x-wicketgate-reason"),
            is_whole: answer.complete && (!is_stream || text.trim_end().ends_with("data: [DONE]")),
            text,
        }
    }
}

/// Clients that send one request after the other until they are told to end.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    clients: JoinSet<Vec<Outcome>>,
}

impl Load {
    pub(crate) fn start(to: SocketAddr, clients: usize, body: fn(usize) -> Value) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut set = JoinSet::new();
        for client in 0..clients {
            let stop = stop.clone();
            set.spawn(async move {
                let mut outcomes = Vec::new();
                let mut connection = Client::connect(to).await;
                while !stop.load(Ordering::Relaxed) {
                    let body = body(client * 100_000 + outcomes.len()).to_string();
                    connection.send(&request("POST", CHAT, &[], body.as_bytes())).await;
                    let answer = connection.answer().await;
                    if answer.end != End::Open {
                        connection = Client::connect(to).await;
                    }
                    outcomes.push(Outcome::from(answer));
                }
                outcomes
            });
        }
        Self { stop, clients: set }
    }

    /// Lets each client finish its request.
    pub(crate) async fn end(mut self) -> Vec<Outcome> {
        self.stop.store(true, Ordering::Relaxed);
        let mut outcomes = Vec::new();
        while let Some(of_client) = self.clients.join_next().await {
            outcomes.extend(of_client.unwrap());
        }
        outcomes
    }
}

/// Those that were not answered whole with 200.
pub(crate) fn failed(outcomes: &[Outcome]) -> Vec<&Outcome> {
    outcomes.iter().filter(|outcome| outcome.status != 200 || !outcome.is_whole).collect()
}

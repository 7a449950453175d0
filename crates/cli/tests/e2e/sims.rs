//! Simulated endpoints, and what they saw.

use serde_json::{Value, json};
use sim::{Fleet, LoggedRequest, ServerHandle, ServerSpec};
use tokio::time::{Instant, timeout};

use crate::gateway::PATIENCE;

/// A server a hundred times as fast as the GPU it plays.
pub(crate) fn fast() -> ServerSpec {
    ServerSpec { time_scale: 0.01, ..ServerSpec::default() }
}

/// A server whose tokens come in real time (some 7 ms apart), for streams that shall stay open.
pub(crate) fn slow() -> ServerSpec {
    ServerSpec { time_scale: 1.0, ..ServerSpec::default() }
}

/// `count` servers that are alike, with seeds of their own.
pub(crate) async fn fleet(count: usize, spec: ServerSpec) -> Fleet {
    let specs = (0..count).map(|seed| ServerSpec { seed: seed as u64, ..spec.clone() });
    Fleet::start(specs.collect()).await.unwrap()
}

/// A chat whose answer has exactly `tokens` tokens.
pub(crate) fn prompt(content: &str, tokens: u32) -> Value {
    json!({
        "model": "llama-3.1-8b", "messages": [{"role": "user", "content": content}],
        "max_tokens": tokens, "ignore_eos": true,
    })
}

/// The same, streamed.
pub(crate) fn streamed(content: &str, tokens: u32) -> Value {
    let mut body = prompt(content, tokens);
    body["stream"] = json!(true);
    body
}

/// What clients had asked of a server: all but the gateway's own questions.
pub(crate) async fn asked(server: &ServerHandle) -> Vec<LoggedRequest> {
    let page = server.requests(0, std::time::Duration::ZERO).await;
    page.requests.into_iter().filter(|request| request.path != "/v1/models").collect()
}

/// What clients asked of all servers together.
pub(crate) async fn asked_of_all(fleet: &Fleet) -> Vec<LoggedRequest> {
    let mut all = Vec::new();
    for server in fleet.servers() {
        all.extend(asked(server).await);
    }
    all
}

/// Waits until a server's log holds a request of which `holds` is true.
pub(crate) async fn seen(
    server: &ServerHandle,
    holds: impl Fn(&LoggedRequest) -> bool,
) -> LoggedRequest {
    let end = Instant::now() + PATIENCE;
    let mut after = 0;
    loop {
        let page = server.requests(after, end - Instant::now()).await;
        if let Some(found) =
            page.requests.iter().find(|request| request.path != "/v1/models" && holds(request))
        {
            return found.clone();
        }
        after = page.revision;
        assert!(Instant::now() < end, "the server never saw it: {:?}", asked(server).await);
    }
}

/// Waits until the listener is open, or closed.
pub(crate) async fn listens(server: &ServerHandle, open: bool) {
    let mut listening = server.listening();
    timeout(PATIENCE, listening.wait_for(|listening| *listening == open)).await.unwrap().unwrap();
}

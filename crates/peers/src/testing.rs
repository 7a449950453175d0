//! Gateways without a wire in front of endpoints that do not exist.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use config::Document;
use gateway::{Caller, Exchange, Gateway, Policy, RequestId, RequestMeta, Wishes};
use http::Method;
use openai::Route;
use sched::Credit;
use telemetry::metrics::labels::{Direction, PeerLoss};
use telemetry::{AccessLog, BuildInfo, Metrics, Target};
use types::{EndpointMetrics, Timestamp};

use crate::{Key, Settings, Sharing};

pub(crate) fn key() -> Key {
    Key::new("test", Some(b"secret"))
}

/// One pool for the model `llama` with endpoints of these numbers, and this YAML below `spec`.
pub(crate) fn document(endpoints: &[usize], extra: &str) -> Document {
    let endpoints: Vec<_> =
        endpoints.iter().map(|n| format!("{{ url: 'http://10.0.0.{n}:8000' }}")).collect();
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: test }}\nspec:\n  \
         schedulers: [{{ name: chat, modelName: llama, endpoints: [{}] }}]\n{extra}",
        endpoints.join(", ")
    );
    config::parse(&text, "test").unwrap()
}

pub(crate) fn gateway(document: &Document) -> Arc<Gateway> {
    let metrics = Metrics::new(BuildInfo { version: "test", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).unwrap();
    Gateway::new(document, Policy::Document, metrics, log)
}

/// A chat about `text`, from a client that does not name a session.
pub(crate) fn body(text: &str) -> Vec<u8> {
    format!(
        r#"{{"model":"llama","stream":true,"messages":[{{"role":"user","content":"{text}"}}]}}"#
    )
    .into_bytes()
}

/// `tokens` tokens that no other `name` begins with.
pub(crate) fn text(name: &str, tokens: usize) -> String {
    let mut text = String::new();
    let mut word = 0;
    while text.len() < tokens * 4 {
        text.push_str(&format!("{name}{word} "));
        word += 1;
    }
    text.truncate(tokens * 4);
    text
}

/// Sends a request; which endpoint got it, by its place among the members.
pub(crate) fn send(gateway: &Arc<Gateway>, body: &[u8], now: Timestamp) -> (Exchange, usize) {
    let meta = RequestMeta {
        id: RequestId::random(&mut rand::rng()),
        method: Method::POST,
        route: Route::ChatCompletions,
        client: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
        received: now,
        session: None,
        pool: None,
        caller: Caller::anonymous(),
        wishes: Wishes::default(),
    };
    let mut exchange = Exchange::new(gateway.clone(), meta);
    exchange.place(body, None, now).unwrap();
    let chosen = exchange.attempt(now).unwrap().address;
    let members = gateway.members();
    let at = members.iter().position(|member| member.endpoint.address == chosen);
    (exchange, at.unwrap())
}

/// A page of every endpoint on which only these many requests run.
pub(crate) fn scrape(gateway: &Gateway, running: &[u32], now: Timestamp) {
    for (member, running) in gateway.members().iter().zip(running) {
        let page = EndpointMetrics {
            waiting: Some(0),
            running: Some(*running),
            ..EndpointMetrics::default()
        };
        member.state.record_scrape(&page, now, Duration::from_secs(3600));
    }
}

/// What peers have on each endpoint, as a gateway was told.
pub(crate) fn peers(gateway: &Gateway) -> Vec<u32> {
    gateway.members().iter().map(|member| member.state.peers().requests).collect()
}

pub(crate) fn peers_credit(gateway: &Gateway, at: usize) -> Credit {
    gateway.members()[at].state.peers()
}

/// Of what passed between a gateway and its peers, this was lost for this reason.
pub(crate) fn lost(gateway: &Gateway, reason: PeerLoss) -> u64 {
    gateway.metrics.gateway().peers.losses.of(reason).get()
}

/// Prefix blocks that went this way.
pub(crate) fn blocks(gateway: &Gateway, direction: Direction) -> u64 {
    gateway.metrics.gateway().peers.prefix_blocks.of(direction).get()
}

/// A gateway and its part in the sharing, carried by hand.
pub(crate) struct Site {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) sharing: Sharing,
    /// Of the next message.
    pub(crate) counter: u64,
}

impl Site {
    pub(crate) fn new(document: &Document) -> Self {
        let gateway = gateway(document);
        let settings = Settings::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), key());
        let sharing = Sharing::new(gateway.clone(), &settings);
        Self { gateway, sharing, counter: 1 }
    }

    /// What this site says now.
    pub(crate) fn flush(&mut self, now: Timestamp) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        self.sharing.expire(now);
        self.sharing.flush(now, &mut messages);
        messages
    }

    pub(crate) fn hear(&mut self, sender: u64, messages: &[Vec<u8>], counter: u64, now: Timestamp) {
        for (counter, message) in (counter..).zip(messages) {
            self.sharing.receive(sender, counter, message, now);
        }
    }
}

/// Every site flushes; `reaches(from, to)` says whom it reaches. Bytes sent.
pub(crate) fn round(
    sites: &mut [Site],
    reaches: impl Fn(usize, usize) -> bool,
    now: Timestamp,
) -> usize {
    let mut bytes = 0;
    for from in 0..sites.len() {
        let messages = sites[from].flush(now);
        let counter = sites[from].counter;
        sites[from].counter += messages.len() as u64;
        bytes += messages.iter().map(Vec::len).sum::<usize>();
        for (to, site) in sites.iter_mut().enumerate() {
            if from != to && reaches(from, to) {
                site.hear(from as u64, &messages, counter, now);
            }
        }
    }
    bytes
}

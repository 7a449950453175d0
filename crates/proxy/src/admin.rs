//! The administration listener: health, metrics, decisions. Read-only.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gateway::{Gateway, Refusal};
use http::Method;
use openai::{Dialect, Route};
use serde::Serialize;
use telemetry::clock;
use telemetry::metrics::labels;

use crate::answer::Answer;
use crate::forward::error_answer;
use crate::handler::{BodyPlan, Handler};
use crate::head::{RequestHead, Turned};
use crate::timer::Timer;

/// Longest body to be explained.
const EXPLAIN_BYTES_MAX: usize = 64 << 20;
/// Decisions in one answer, unless asked otherwise.
const DECISIONS_MOST: usize = 50;

/// What is at `/`.
const INDEX: &str = "\
Wicketgate administration

  /healthz            200 while the process serves
  /readyz             200 when requests can be placed, 503 while starting or draining
  /metrics            Prometheus metrics
  /debug/endpoints    every endpoint with its signals
  /debug/decisions    the last decisions (?request_id=…, ?most=N)
  /debug/explain      POST a request body: where it would go now, and why (?path=/v1/chat/completions)
";

pub(crate) struct Admin {
    gateway: Arc<Gateway>,
}

#[derive(Serialize)]
struct Decisions {
    decisions: Vec<gateway::DecisionView>,
}

#[derive(Serialize)]
struct Endpoints {
    endpoints: Vec<gateway::EndpointView>,
}

impl Admin {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway }
    }

    fn get(&self, path: &str, query: Option<&str>) -> Option<Answer> {
        Some(match path {
            "/" => Answer::new(200, "text/plain; charset=utf-8", INDEX),
            "/healthz" | "/livez" | "/liveness" | "/health" => {
                Answer::new(200, "text/plain", "ok\n")
            }
            "/readyz" | "/readiness" => self.ready(),
            "/metrics" => {
                self.gateway.refresh_gauges(clock::now());
                Answer::new(200, telemetry::metrics::CONTENT_TYPE, self.gateway.metrics.encode())
            }
            "/debug/endpoints" => {
                json(&Endpoints { endpoints: self.gateway.endpoints(clock::now()) })
            }
            "/debug/decisions" => {
                let most = parameter(query, "most").and_then(|most| most.parse().ok());
                let id = parameter(query, "request_id");
                let decisions = self.gateway.decisions(id, most.unwrap_or(DECISIONS_MOST));
                json(&Decisions { decisions })
            }
            _ => return None,
        })
    }

    fn ready(&self) -> Answer {
        if self.gateway.is_ready() {
            return Answer::new(200, "text/plain", "ready\n");
        }
        let why = if self.gateway.is_draining() {
            "draining: no new work\n"
        } else {
            "not ready: no endpoint has told yet which models it serves\n"
        };
        Answer::new(503, "text/plain", why)
    }

    fn explain(&self, query: Option<&str>, body: &[u8]) -> Answer {
        let path = parameter(query, "path").unwrap_or(Route::ChatCompletions.as_str());
        let Ok(route) = openai::find(&Method::POST, path) else {
            return Answer::new(400, "text/plain", "`path` names no path that is served\n");
        };
        match self.gateway.explain(route, body, clock::now()) {
            Ok(view) => json(&view),
            Err(refusal) => error_answer(&refusal, Dialect::OpenAi, None),
        }
    }
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(json) => Answer::new(200, "application/json", json),
        Err(error) => Answer::new(500, "text/plain", format!("{error}\n")),
    }
}

/// A parameter of a query; values need no decoding for what is asked here.
fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    query?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

impl Handler for Admin {
    type Ticket = ();

    fn plan(&self, head: &RequestHead, _client: SocketAddr) -> Result<(BodyPlan, ()), Answer> {
        let bytes_max = if head.method == Method::POST { EXPLAIN_BYTES_MAX } else { 0 };
        Ok((BodyPlan { bytes_max }, ()))
    }

    async fn answer(&self, (): (), head: RequestHead, body: Bytes, _timer: &mut Timer) -> Answer {
        let (path, query) = head.path_and_query();
        let found = match head.method {
            Method::GET | Method::HEAD => self.get(path, query),
            Method::POST if path == "/debug/explain" => Some(self.explain(query, &body)),
            _ => None,
        };
        found.unwrap_or_else(|| Answer::new(404, "text/plain", INDEX))
    }

    fn turned(&self, turned: &Turned, _ticket: Option<()>, _client: SocketAddr) -> Answer {
        let component = gateway::Component::Edge;
        let refusal = Refusal::new(
            turned.status,
            turned.code,
            component,
            labels::Refusal::Malformed,
            turned.message,
        );
        error_answer(&refusal, Dialect::OpenAi, None)
    }
}

//! The administration listener: health, metrics, decisions, the live page; to be read, save for rollouts, members
//! and what is logged.

mod accept;
mod fleet;
mod log_level;
mod origin;
mod page;
mod query;
mod rollouts;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gateway::{Asker, Gateway, RatedBy, Refusal, Wishes};
use http::Method;
use openai::{Dialect, Route};
use serde::Serialize;
use telemetry::clock;
use telemetry::metrics::labels;

use crate::answer::Answer;
use crate::fields::Class;
use crate::forward::error_answer;
use crate::handler::{BodyPlan, Handler};
use crate::head::{RequestHead, Turned};
use crate::process::Process;
use crate::timer::Timer;
use query::parameter;

/// Longest body to be explained.
const EXPLAIN_BYTES_MAX: usize = 64 << 20;
/// Decisions in one answer, unless asked otherwise.
const DECISIONS_MOST: usize = 50;
/// Buckets of a rate limit in one answer, unless asked otherwise, and at most.
const BUCKETS_MOST: usize = 20;
const BUCKETS_MAX: usize = 10_000;

/// Paths that probes ask, who have no token.
const HEALTH_PATHS: [&str; 6] =
    ["/healthz", "/livez", "/liveness", "/health", "/readyz", "/readiness"];

/// What is at `/` for who is no browser.
const INDEX: &str = "\
Wicketgate administration

  /healthz            200 while the process serves
  /readyz             200 when requests can be placed, 503 while starting or draining
  /metrics            Prometheus metrics
  /                   the live page, for browsers
  /debug/live         everything that the page shows, at most a second old (?shape=…)
  /debug/endpoints    every endpoint with its signals (?endpoint=HOST:PORT)
  /debug/flow         what waits, by pool and band
  /debug/decisions    the last decisions (?request_id=…, ?number=N, ?most=N; ?brief=1 with the chosen endpoint alone)
  /debug/settings     the settings in force that bear on endpoints, and the limits of the process
  /debug/limits       every rate limit with its fullest buckets (?most=N)
  /debug/rerate       one of them under another policy (?number=N&policy=reference|wicketgate)
  /debug/rollouts     every split of traffic (?name=…); POST an action to /debug/rollouts/NAME
  /debug/fleet        a router's members, their states and shares; POST an action to /debug/fleet/MEMBER
  /debug/prefixes     prompt templates: what each shares, and which share less than they did
  /debug/usage        GPU-seconds by pool and tenant, with cost where there is a price
  /debug/log-level    what is logged; PUT another level or filter
  /debug/explain      POST a request body: where it would go now, and why; whether it would wait, and its limits
                      (?path=/v1/chat/completions&caller=NAME&key=NAME&objective=NAME&deadline_ms=N)
";

pub(crate) struct Admin {
    gateway: Arc<Gateway>,
}

#[derive(Serialize)]
struct Decisions {
    decisions: Vec<gateway::DecisionView>,
}

#[derive(Serialize)]
struct RateLimits {
    rules: Vec<gateway::RateLimitView>,
}

#[derive(Serialize)]
struct Endpoints {
    endpoints: Vec<gateway::EndpointView>,
}

#[derive(Serialize)]
struct Bands {
    bands: Vec<gateway::BandView>,
}

#[derive(Serialize)]
struct Settings {
    #[serde(flatten)]
    settings: gateway::SettingsView,
    process: Process,
}

impl Admin {
    pub(crate) fn new(gateway: Arc<Gateway>) -> Self {
        Self { gateway }
    }

    fn get(&self, head: &RequestHead) -> Option<Answer> {
        let (path, query) = head.path_and_query();
        let known = field(head, "if-none-match");
        Some(match path {
            "/" if !wants_html(head) => Answer::new(200, "text/plain; charset=utf-8", INDEX),
            "/healthz" | "/livez" | "/liveness" | "/health" => {
                Answer::new(200, "text/plain", "ok\n")
            }
            "/readyz" | "/readiness" => self.ready(),
            "/debug/live" => self.live(parameter(query, "shape").as_deref(), known),
            "/debug/endpoints" => self.endpoints(parameter(query, "endpoint").as_deref()),
            "/debug/flow" => json(&Bands { bands: self.gateway.bands(clock::now()) }),
            "/debug/limits" => {
                let most = parameter(query, "most").and_then(|most| most.parse().ok());
                let most = most.unwrap_or(BUCKETS_MOST).min(BUCKETS_MAX);
                json(&RateLimits { rules: self.gateway.rate_limit_views(most, clock::now()) })
            }
            "/debug/prefixes" => json(&self.gateway.templates_view(clock::now())),
            "/debug/usage" => json(&self.gateway.usage_view()),
            "/debug/log-level" => log_level::answer(),
            "/debug/decisions" => self.decisions(query),
            "/debug/rerate" => self.rerate(query),
            "/debug/settings" => {
                json(&Settings { settings: self.gateway.settings(), process: Process::this() })
            }
            fleet::PATH => return fleet::view(&self.gateway),
            rollouts::PATH => rollouts::list(&self.gateway, query),
            path => return page::file(path, known),
        })
    }

    /// * `known`: the `If-None-Match` of who asks.
    fn live(&self, shape: Option<&str>, known: Option<&str>) -> Answer {
        let live = self.gateway.live(shape, clock::now());
        let mut answer = match known == Some(&live.etag) {
            true => Answer::new(304, "application/json", ""),
            false => Answer::new(200, "application/json", live.body),
        };
        answer.field("etag", &live.etag);
        answer.field("cache-control", "no-cache");
        answer
    }

    fn endpoints(&self, authority: Option<&str>) -> Answer {
        let now = clock::now();
        let endpoints = match authority {
            Some(authority) => self.gateway.endpoint(authority, now),
            None => self.gateway.endpoints(now),
        };
        json(&Endpoints { endpoints })
    }

    fn decisions(&self, query: Option<&str>) -> Answer {
        let decisions = match number(query) {
            Some(number) => self.gateway.decision(number).into_iter().collect(),
            None => {
                let most = parameter(query, "most").and_then(|most| most.parse().ok());
                let id = parameter(query, "request_id");
                let most = most.unwrap_or(DECISIONS_MOST);
                match (id, parameter(query, "brief").as_deref()) {
                    (None, Some("1")) => self.gateway.decision_briefs(most),
                    (id, _) => self.gateway.decisions(id.as_deref(), most),
                }
            }
        };
        json(&Decisions { decisions })
    }

    fn rerate(&self, query: Option<&str>) -> Answer {
        let Some(number) = number(query) else {
            return Answer::new(
                400,
                "text/plain",
                "`number` names no decision: give one of /debug/decisions\n",
            );
        };
        let policy = parameter(query, "policy").unwrap_or_default().parse::<RatedBy>();
        match policy {
            Err(error) => Answer::new(400, "text/plain", format!("`policy`: {error}\n")),
            Ok(policy) => match self.gateway.rerate(number, policy, clock::now()) {
                Some(view) => json(&view),
                None => Answer::new(404, "text/plain", "that decision is no longer kept\n"),
            },
        }
    }

    /// What somebody gets who does not show the token.
    fn not_allowed(&self) -> Answer {
        let mut refusal = Refusal::new(
            401,
            "unauthorized",
            gateway::Component::Auth,
            labels::Refusal::Unauthorized,
            "administration asks for its token: send `Authorization: Bearer TOKEN`",
        );
        refusal.demand =
            Some(gateway::Demand::Credentials("Bearer realm=\"wicketgate administration\""));
        error_answer(&refusal, Dialect::OpenAi, None)
    }

    /// The page of metrics, written on a thread of its own: with a thousand endpoints it takes
    /// milliseconds, in which this one has connections to accept and endpoints to watch.
    ///
    /// In OpenMetrics text, with exemplars, for those who ask for it.
    async fn metrics(&self, head: &RequestHead) -> Answer {
        let gateway = Arc::clone(&self.gateway);
        let is_open = accept::wants_open_metrics(head);
        let write = move || match is_open {
            true => {
                (telemetry::metrics::CONTENT_TYPE_OPEN, gateway.metrics_page_open(clock::now()))
            }
            false => (telemetry::metrics::CONTENT_TYPE, gateway.metrics_page(clock::now())),
        };
        match tokio::task::spawn_blocking(write).await {
            Ok((content_type, page)) => Answer::new(200, content_type, page),
            Err(error) => Answer::new(500, "text/plain", format!("{error}\n")),
        }
    }

    fn ready(&self) -> Answer {
        if self.gateway.is_ready() {
            return Answer::new(200, "text/plain", "ready\n");
        }
        let why = if self.gateway.is_draining() {
            "draining: no new work\n".to_owned()
        } else if let Some(provider) = self.gateway.waits_for_keys() {
            format!("not ready: the signing keys of `{provider}` were not fetched yet\n")
        } else {
            "not ready: no endpoint has told yet which models it serves\n".to_owned()
        };
        Answer::new(503, "text/plain", why)
    }

    fn explain(&self, query: Option<&str>, body: &[u8]) -> Answer {
        let path = parameter(query, "path");
        let path = path.as_deref().unwrap_or(Route::ChatCompletions.as_str());
        let Ok(route) = openai::find(&Method::POST, path) else {
            return Answer::new(400, "text/plain", "`path` names no path that is served\n");
        };
        let text = |name: &str| parameter(query, name).map(Cow::into_owned);
        let (objective, deadline) = (text("objective"), text("deadline_ms"));
        let wishes = Wishes::read(|name| match name {
            "x-llm-d-inference-objective" => objective.as_deref(),
            "x-wicketgate-deadline-ms" => deadline.as_deref(),
            _ => None,
        });
        let asker = Asker { caller: text("caller"), credential: text("key"), wishes };
        match self.gateway.explain(route, body, &asker, clock::now()) {
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

fn number(query: Option<&str>) -> Option<usize> {
    parameter(query, "number")?.parse().ok()
}

/// A field that comes once, mostly.
fn field<'a>(head: &'a RequestHead, name: &str) -> Option<&'a str> {
    let fields = &head.fields;
    let found =
        fields.iter().find(|field| fields.name(field).eq_ignore_ascii_case(name.as_bytes()))?;
    std::str::from_utf8(fields.value(found)).ok()
}

/// Browsers say so; `curl` and probes do not.
fn wants_html(head: &RequestHead) -> bool {
    field(head, "accept").is_some_and(|accepted| accepted.contains("text/html"))
}

impl Handler for Admin {
    type Ticket = ();

    fn plan(&self, head: &RequestHead, _client: SocketAddr) -> Result<(BodyPlan, ()), Answer> {
        let (path, _) = head.path_and_query();
        let shown = head.fields.get(Class::Authorization);
        if !HEALTH_PATHS.contains(&path) && !self.gateway.is_administrator(shown) {
            return Err(self.not_allowed());
        }
        let bytes_max = match head.method {
            Method::POST => EXPLAIN_BYTES_MAX,
            Method::PUT => log_level::FILTER_BYTES_MAX,
            _ => 0,
        };
        Ok((BodyPlan { bytes_max }, ()))
    }

    async fn answer(&self, (): (), head: RequestHead, body: Bytes, _timer: &mut Timer) -> Answer {
        let (path, query) = head.path_and_query();
        let found = match head.method {
            Method::GET | Method::HEAD if path == "/metrics" => Some(self.metrics(&head).await),
            Method::GET | Method::HEAD => self.get(&head),
            Method::PUT if path == "/debug/log-level" => Some(log_level::change(&head, &body)),
            Method::POST if path == "/debug/explain" => Some(self.explain(query, &body)),
            Method::POST if fleet::name_in(path).is_some() => fleet::name_in(path)
                .map(|name| fleet::act(&self.gateway, name, &head.fields, &body)),
            Method::POST => rollouts::name_in(path)
                .map(|name| rollouts::act(&self.gateway, name, query, &head.fields, &body)),
            _ => None,
        };
        let mut answer =
            found.unwrap_or_else(|| Answer::new(404, "text/plain; charset=utf-8", INDEX));
        answer.field("x-content-type-options", "nosniff");
        answer
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

//! Looking at one endpoint: three questions and one idle connection, so that an engine at work hardly
//! notices.

use std::time::{Duration, UNIX_EPOCH};

use engines::exposition::{Sample, lines, split_name};
use telemetry::clock;
use types::{EndpointAddress, EngineKind};

use super::facts::{EngineFacts, KeepAlive, Seen};
use crate::http::{self, Answer, Ask, Connection, HttpError};

/// Bytes of anything but metrics.
const BYTES_MAX: usize = 16 << 20;
/// How much longer than the gateway keeps a connection we wait for the endpoint to close it.
const MARGIN: Duration = Duration::from_millis(500);

/// How to ask an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Look<'a> {
    pub(super) key: Option<&'a str>,
    pub(super) metrics_path: &'a str,
    pub(super) timeout: Duration,
    /// How long the gateway keeps an idle connection; `None`: do not look.
    pub(super) idle: Option<Duration>,
    pub(super) patience: Duration,
}

impl Look<'_> {
    pub(super) fn at(&self, address: &EndpointAddress) -> Seen {
        let mut seen = Seen::default();
        let mut connection = match Connection::open(address, self.timeout) {
            Ok(connection) => connection,
            Err(error) => {
                seen.unreachable = Some(chain(&error));
                return seen;
            }
        };
        seen.models = Some(self.models(address));
        let asked = clock::wall();
        let answer = connection.get(self.ask(self.metrics_path, engines::PAGE_BYTES_MAX), true);
        let mut idle = None;
        if let Ok(answer) = &answer {
            seen.clock_ahead_s = ahead(answer, asked);
            idle = Some(if answer.closes() { KeepAlive::Never } else { KeepAlive::NotLooked });
        }
        let metrics = self.metrics(answer).or_else(|why| {
            // Where TensorRT-LLM has its page; the gateway looks there too.
            let elsewhere = self.ask("/prometheus/metrics", engines::PAGE_BYTES_MAX);
            let fallback = self.metrics_path == "/metrics";
            let found =
                fallback.then(|| self.metrics(http::get(address, elsewhere)).ok()).flatten();
            found.ok_or(why)
        });
        let engine =
            metrics.as_ref().map_or(EngineKind::Unknown, |facts| facts.page.metrics.engine);
        seen.version = self.version(address, engine);
        seen.metrics = Some(metrics);
        seen.keep_alive = match (idle, self.idle) {
            (Some(KeepAlive::NotLooked), Some(idle)) if !self.patience.is_zero() => {
                let most = (idle + MARGIN).min(self.patience);
                connection
                    .closes_within(most)
                    .map_or(KeepAlive::OpenAfter(most), KeepAlive::ClosedAfter)
            }
            (known, _) => known.unwrap_or_default(),
        };
        seen
    }

    fn ask<'b>(&'b self, path: &'b str, bytes_max: usize) -> Ask<'b> {
        Ask { path, token: self.key, bytes_max, timeout: self.timeout }
    }

    fn metrics(&self, answer: Result<Answer, HttpError>) -> Result<EngineFacts, String> {
        let answer = answer.map_err(|error| chain(&error))?;
        if answer.status != 200 {
            return Err(refused(answer.status));
        }
        let page = engines::parse(&answer.body, None).map_err(|error| error.to_string())?;
        let says_adapters = page.metrics.lora.is_some() || says_adapters(&answer.body);
        Ok(EngineFacts { page, prefix_caching: prefix_caching(&answer.body), says_adapters })
    }

    fn models(
        &self,
        address: &EndpointAddress,
    ) -> Result<Vec<engines::models::ServedModel>, String> {
        let answer =
            http::get(address, self.ask("/v1/models", BYTES_MAX)).map_err(|error| chain(&error))?;
        if answer.status != 200 {
            return Err(refused(answer.status));
        }
        engines::models::parse(&answer.body).map_err(|error| error.to_string())
    }

    /// As the engine tells it; `None` where it does not.
    fn version(&self, address: &EndpointAddress, engine: EngineKind) -> Option<String> {
        let (path, field) = match engine {
            EngineKind::Sglang => ("/get_server_info", "/version"),
            EngineKind::Tgi => ("/info", "/version"),
            EngineKind::LlamaCpp => ("/props", "/build_info"),
            _ => ("/version", "/version"),
        };
        let answer = http::get(address, self.ask(path, BYTES_MAX)).ok()?;
        let body: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
        let version = body.pointer(field)?.as_str()?;
        (answer.status == 200 && version.len() < 100).then(|| version.to_owned())
    }
}

/// An answer of `status` in words.
fn refused(status: u16) -> String {
    match status {
        401 | 403 => format!("it answers {status}: it asks for a key (--endpoint-api-key)"),
        status => format!("it answers {status}"),
    }
}

/// The endpoint's clock less ours, from an answer's `Date`, which has whole seconds; `asked` is when
/// the question was sent.
fn ahead(answer: &Answer, asked: std::time::SystemTime) -> Option<i64> {
    let date = httpdate::parse_http_date(answer.field("date")?).ok()?;
    let seconds = |time: std::time::SystemTime| {
        time.duration_since(UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
    };
    let (date, asked, now) = (seconds(date), seconds(asked), seconds(clock::wall()));
    // Anything between question and answer is in step.
    Some(if date < asked { date - asked } else { (date - now).max(0) })
}

/// `enable_prefix_caching` of vLLM's `cache_config_info`.
fn prefix_caching(page: &[u8]) -> Option<bool> {
    lines(page).find_map(|line| {
        let (name, rest) = split_name(line);
        let sample = (name == b"vllm:cache_config_info").then(|| Sample::parse(rest)).flatten()?;
        match sample.labels.get(b"enable_prefix_caching")?.as_ref() {
            b"True" | b"true" => Some(true),
            b"False" | b"false" => Some(false),
            _ => None,
        }
    })
}

/// vLLM announces the family only with LoRA on; its first series comes with the first request.
fn says_adapters(page: &[u8]) -> bool {
    lines(page).any(|line| line.starts_with(b"# HELP vllm:lora_requests_info"))
}

fn chain(error: &HttpError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

//! Makes the settings from a checked tree.
//!
//! Lenient: what the check has refused already reads as absent here, so that the rules still see
//! the rest of a broken document.

pub(crate) mod auth;
mod edge;
mod flow;
pub(crate) mod membership;
mod observability;
mod peers;
mod rate_limits;
mod rewrite;
mod scheduler;
mod upstream;
mod view;

use std::path::PathBuf;

use types::PoolName;

use crate::node::Node;
use crate::schema::AWS_BODY_BYTES_MAX;
use crate::spec::{
    AccessLog, AccessLogTarget, AllowedPath, Bbr, DefaultBackend, Limits, ManagedTls, Recording,
    Spec,
};
pub(crate) use scheduler::selector;
pub(crate) use view::View;

/// `node` is the document's `spec`.
pub(crate) fn spec(node: Option<&Node>, aws: bool) -> Spec {
    let view = View::new(node);
    let default = Spec::default();
    Spec {
        bbr: bbr(view.get("bbr")),
        tls: view.get("tls").present().map(|tls| ManagedTls { acm_arn: tls.get("acmArn").text() }),
        auth: view.get("auth").present().map(auth::auth),
        observability: observability::observability(view.get("observability")),
        schedulers: view
            .get("schedulers")
            .items()
            .map(|item| scheduler::scheduler(item, aws, view.get("flowControl").is_present()))
            .collect(),
        discover: view.get("discover").items().filter_map(scheduler::endpoint).collect(),
        discover_picker: None,
        routes: None,
        model_rewrites: view.get("modelRewrites").items().map(rewrite::model_rewrite).collect(),
        listener: edge::listener(view.get("listener")),
        admin: edge::admin(view.get("admin")),
        limits: limits(view, aws),
        flow_control: view.get("flowControl").present().map(flow::flow_control),
        objectives: view.get("objectives").items().filter_map(flow::objective).collect(),
        rate_limits: view.get("rateLimits").items().map(rate_limits::rule).collect(),
        timeouts: edge::timeouts(view.get("timeouts")),
        retry: upstream::retry(view.get("retry")),
        ejection: upstream::ejection(view.get("ejection")),
        prefix_index: upstream::prefix_index(view.get("prefixIndex")),
        scrape: upstream::scrape(view.get("scrape")),
        peers: view.get("peers").present().map(peers::peers),
        global: view.get("global").present().map(membership::membership),
        access_log: access_log(view.get("accessLog")),
        recording: recording(view.get("recording")),
        allowed_paths: view.get("allowedPaths").items().filter_map(allowed_path).collect(),
        expose_decision: view.get("exposeDecision").flag().unwrap_or(default.expose_decision),
    }
}

fn bbr(view: View<'_>) -> Bbr {
    let default = Bbr::default();
    let backend = view.get("defaultBackend");
    Bbr {
        enabled: view.get("enabled").flag().unwrap_or(default.enabled),
        replicas: view.get("replicas").integer().unwrap_or(default.replicas),
        default_backend: backend.get("name").text().map(|name| DefaultBackend {
            name,
            port: backend.get("port").integer().unwrap_or(8000),
        }),
    }
}

/// The body limit has two names, AWS's and ours; the rules see to it that only one is written.
fn limits(view: View<'_>, aws: bool) -> Limits {
    let mut limits = edge::limits(view.get("limits"));
    if aws {
        limits.request_body_bytes_max = AWS_BODY_BYTES_MAX.unsigned_abs();
    }
    if let Some(bytes) = view.get("bbr").get("maxRequestBodyBytes").integer() {
        limits.request_body_bytes_max = bytes;
    }
    let body = limits.request_body_bytes_max;
    limits.multipart_body_bytes_max = limits.multipart_body_bytes_max.max(body);
    limits
}

fn access_log(view: View<'_>) -> AccessLog {
    let target = view.get("target").word().map(AccessLogTarget::from);
    AccessLog { target: target.unwrap_or_default() }
}

fn recording(view: View<'_>) -> Recording {
    let default = Recording::default();
    Recording {
        file: view.get("file").text().map(PathBuf::from),
        rotate_bytes: view.get("rotateBytes").bytes().unwrap_or(default.rotate_bytes),
        files_max: view.get("filesMax").positive().unwrap_or(default.files_max),
    }
}

impl From<&str> for AccessLogTarget {
    /// The words `stdout`, `stderr` and `off`; anything else is a file.
    fn from(text: &str) -> Self {
        match text {
            "stdout" => Self::Stdout,
            "stderr" => Self::Stderr,
            "off" => Self::Off,
            path => Self::File(PathBuf::from(path)),
        }
    }
}

fn allowed_path(view: View<'_>) -> Option<AllowedPath> {
    let methods = view.get("methods").texts();
    Some(AllowedPath {
        path: view.get("path").text()?,
        methods: if methods.is_empty() { vec!["POST".to_owned()] } else { methods },
        scheduler: PoolName::from(view.get("scheduler").word()?),
    })
}

//! What a gateway shall do: the settings, their types and their defaults.
//!
//! The structs carry what is left after validation, so a value that exists is valid. Names in the
//! document, bounds and help texts are in [`crate::schema`]; a test holds the two together.

mod auth;
mod edge;
mod scheduler;
mod upstream;

use std::path::PathBuf;

use types::PoolName;

pub use auth::{Auth, ClaimType, Jwt, RequiredClaim};
pub use edge::{Admin, Limits, Listener, ListenerTls, Timeouts};
pub use scheduler::{
    AppProtocol, ConfigMapRef, EndpointSpec, EngineType, LabelSelector, PickerImage, RouteTimeout,
    Saturation, SchedulerSpec, SelectorOperator, SelectorRequirement, Weights,
};
pub use upstream::{Ejection, PrefixIndexSpec, Retry, Scrape};

/// Everything below `spec`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    pub bbr: Bbr,
    /// AWS's `tls` block: certificates that a cluster issues. The built-in proxy reads
    /// [`Listener::tls`] instead.
    pub tls: Option<ManagedTls>,
    pub auth: Option<Auth>,
    pub observability: Observability,
    /// In document order. At least one, unless [`Spec::discover`] names an endpoint.
    pub schedulers: Vec<SchedulerSpec>,
    /// Endpoints whose models and engine are found at run time, through `/v1/models` and
    /// `/metrics`. Their pools come in addition to `schedulers`.
    pub discover: Vec<EndpointSpec>,
    pub listener: Listener,
    pub admin: Admin,
    pub limits: Limits,
    pub timeouts: Timeouts,
    pub retry: Retry,
    pub ejection: Ejection,
    pub prefix_index: PrefixIndexSpec,
    pub scrape: Scrape,
    pub access_log: AccessLog,
    /// Further paths to forward; everything that is neither here nor a known path is 404, because
    /// engines leave dangerous paths open.
    pub allowed_paths: Vec<AllowedPath>,
    /// Whether responses tell in headers which endpoint answered and why. For operators: it gives
    /// addresses away.
    pub expose_decision: bool,
}

/// Body-based routing: the pool is found by `model` in the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bbr {
    /// Off: no model matching, the single scheduler gets every request whatever its `model`.
    /// Outside AWS's group the default is on.
    pub enabled: bool,
    /// Pods of a cluster's router; without meaning for the built-in proxy.
    pub replicas: u32,
    /// Service of the cluster that gets requests no scheduler matches.
    pub default_backend: Option<DefaultBackend>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultBackend {
    pub name: String,
    pub port: u16,
}

/// AWS's `tls`. Empty: the cluster issues a certificate itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedTls {
    pub acm_arn: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observability {
    pub metrics_enabled: bool,
}

/// One line of JSON for each request, without prompt text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLog {
    pub target: AccessLogTarget,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLogTarget {
    #[default]
    Stdout,
    Stderr,
    Off,
    File(PathBuf),
}

/// An exact path that is forwarded to a pool without looking into the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedPath {
    /// Begins with `/`; compared byte for byte; no `..`, `//`, `%`, `;` or `\`.
    pub path: String,
    /// Upper case, not empty.
    pub methods: Vec<String>,
    /// Names one of [`Spec::schedulers`].
    pub scheduler: PoolName,
}

impl Default for Bbr {
    fn default() -> Self {
        Self { enabled: true, replicas: 2, default_backend: None }
    }
}

impl Default for Observability {
    fn default() -> Self {
        Self { metrics_enabled: true }
    }
}

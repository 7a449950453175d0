//! What a gateway shall do: the settings, their types and their defaults.
//!
//! The structs carry what is left after validation, so a value that exists is valid. Names in the
//! document, bounds and help texts are in [`crate::schema`]; a test holds the two together.

mod additions;
mod auth;
mod edge;
mod flow;
mod membership;
mod observability;
mod peers;
mod rewrite;
mod routes;
mod scheduler;
mod upstream;

use std::num::NonZeroU32;
use std::path::PathBuf;

use types::PoolName;

use crate::picker_config::PickerConfig;

pub use additions::Additions;
pub use auth::{
    Anonymous, ApiKeys, Auth, CallerMatch, CallerSpec, ClaimType, ForwardedCertificate, Jwks,
    JwksSource, JwtProvider, RequiredClaim, SecretSource,
};
pub use edge::{Admin, ClientCa, Limits, Listener, ListenerTls, Timeouts};
pub use flow::{
    BandSpec, Bounds, Fairness, FlowControl, Headroom, NoEndpoint, Objective, Ordering,
    WhenSaturated,
};
pub use membership::{Membership, MutualTls};
pub use observability::{
    CloudWatch, CloudWatchMode, EmfTarget, MetricNames, Observability, OtlpProtocol, PrefixAlarm,
    Price, ServerTiming, Tracing, Usage,
};
pub use peers::Peers;
pub use rewrite::{Mirror, ModelRewrite, RewriteRule, RewriteTarget, Rollback, Sticky};
pub use routes::{HostMatch, PathMatch, RouteBackend, RouteListener, RouteRule, Routes};
pub use scheduler::{
    AppProtocol, ConfigMapRef, EndpointSpec, EngineType, LabelSelector, PickerImage, Policy,
    RouteTimeout, Saturation, SchedulerSpec, SelectorOperator, SelectorRequirement, Shadow,
    Weights,
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
    /// How to choose in the pools of [`Spec::discover`]; `None`: the default policy. No document sets it:
    /// [`Document::use_picker`](crate::Document::use_picker) does.
    pub discover_picker: Option<PickerConfig>,
    pub model_rewrites: Vec<ModelRewrite>,
    /// `None`: the pool is found by `model` in the body. No document sets it.
    pub routes: Option<Routes>,
    pub listener: Listener,
    pub admin: Admin,
    pub limits: Limits,
    /// `None`: requests for a full pool are refused.
    pub flow_control: Option<FlowControl>,
    pub objectives: Vec<Objective>,
    /// In document order; all that apply must pass.
    pub rate_limits: Vec<limits::Rule>,
    pub timeouts: Timeouts,
    pub retry: Retry,
    pub ejection: Ejection,
    pub prefix_index: PrefixIndexSpec,
    pub scrape: Scrape,
    /// `None`: this gateway shares with nobody.
    pub peers: Option<Peers>,
    /// `None`: this gateway is no member of a global tier.
    pub global: Option<Membership>,
    pub access_log: AccessLog,
    pub recording: Recording,
    /// Further paths to forward; everything that is neither here nor a known path is 404, because
    /// engines leave dangerous paths open.
    pub allowed_paths: Vec<AllowedPath>,
    /// Whether responses tell in headers which endpoint answered and why. For operators: it gives
    /// addresses away.
    pub expose_decision: bool,
}

impl Spec {
    /// Whether a model can be used without saying who one is.
    pub fn serves_strangers(&self) -> bool {
        self.auth.as_ref().is_none_or(|auth| auth.anonymous == Anonymous::Allow)
    }
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

/// Traffic written down for `wicketgate replay`: times, lengths and numbered prompt blocks, never
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// `None`: nothing is recorded.
    pub file: Option<PathBuf>,
    /// Size at which the next file begins. Default 256 MiB.
    pub rotate_bytes: u64,
    /// Files in all; the oldest is deleted. Default 4.
    pub files_max: NonZeroU32,
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

impl Default for Recording {
    fn default() -> Self {
        let files_max = NonZeroU32::new(4).unwrap_or(NonZeroU32::MIN);
        Self { file: None, rotate_bytes: 256 << 20, files_max }
    }
}

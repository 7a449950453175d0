//! The document `InferenceGatewayConfig`: one schema for a file on a laptop and for a cluster. And the
//! field's `EndpointPickerConfig`, which it can name.
//!
//! [`parse`] reads YAML (hence JSON too) into a tree that remembers places, checks it against
//! [`schema`], builds the [`Spec`] and checks the rules that span fields. All errors of a document
//! are collected, so that one round of mending is enough. The schema is closed: a misspelt key is
//! an error.

mod build;
mod check;
mod document;
mod finding;
mod flags;
mod format;
mod global;
mod node;
mod parse;
mod picker_config;
mod pickers;
mod redact;
mod reference;
mod report;
mod rules;
pub mod schema;
pub mod spec;
mod suggest;
mod yaml_error;

pub use document::{ApiGroup, Document, KIND, Overrides};
pub use finding::{Errors, Finding, Severity};
pub use flags::from_flags;
pub use global::{
    GLOBAL_KIND, Global, GlobalDocument, GlobalWeights, Heartbeats, MEMBER_LABEL, MemberPrice,
    MemberSpec, Mode, OutageMode, PriceWindow, RedisStore, Routing, Shaping, Store, TenantPolicy,
    global_markdown,
};
pub use parse::{AnyDocument, load, load_any, load_beside_resources, parse};
pub use picker_config::{
    ConcurrencyMode, DEFAULT_PICKER_DOCUMENT, LabelRule, PICKER_KIND, PickerCeiling, PickerConfig,
    PickerFilter, PickerGroup, PickerKind, PickerSaturation, PickerScorer, Plugin, ScorerKind,
    Slot, Support, TtftSource, picker_markdown, plugins,
};
pub use reference::reference_markdown;
pub use spec::{
    AccessLog, AccessLogTarget, Additions, Admin, AllowedPath, Anonymous, ApiKeys, AppProtocol,
    Auth, BandSpec, Bbr, Bounds, CallerMatch, CallerSpec, ClaimType, ClientCa, CloudWatch,
    CloudWatchMode, Ejection, EmfTarget, EndpointSpec, EngineType, Fairness, FlowControl,
    ForwardedCertificate, Headroom, Jwks, JwksSource, JwtProvider, Limits, Listener, ListenerTls,
    Membership, MetricNames, Mirror, ModelRewrite, MutualTls, NoEndpoint, Objective, Observability,
    Ordering, OtlpProtocol, Peers, Policy, PrefixAlarm, PrefixIndexSpec, Price, Recording,
    RequiredClaim, Retry, RewriteRule, RewriteTarget, Rollback, RouteTimeout, Saturation,
    SchedulerSpec, Scrape, SecretSource, ServerTiming, Shadow, Spec, Sticky, Timeouts, Tracing,
    Usage, Weights, WhenSaturated,
};

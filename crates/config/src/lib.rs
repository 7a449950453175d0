//! The document `InferenceGatewayConfig`: one schema for a file on a laptop and for a cluster.
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
mod node;
mod parse;
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
pub use parse::{load, parse};
pub use reference::reference_markdown;
pub use spec::{
    AccessLog, AccessLogTarget, Admin, AllowedPath, AppProtocol, Auth, Bbr, Ejection, EndpointSpec,
    EngineType, Limits, Listener, ListenerTls, PrefixIndexSpec, Retry, RouteTimeout, Saturation,
    SchedulerSpec, Scrape, Spec, Timeouts, Weights,
};

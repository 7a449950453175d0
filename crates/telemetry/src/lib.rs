//! What an operator sees: the closed list of metrics, the access log, traces, recordings of traffic, the
//! log set-up, and the one clock of the process.
//!
//! Metric names, labels and help stand in [`names`] and nowhere else; the request path holds plain
//! atomics from [`metrics`] and never looks a series up.

pub mod access_log;
pub mod clock;
mod escape;
pub mod logging;
pub mod metrics;
pub mod names;
pub mod recording;
pub mod trace;

pub use access_log::{AccessLog, Entry, Target};
pub use metrics::{
    BuildInfo, EndpointGauges, FlowMetrics, GatewayMetrics, Metrics, PeerMetrics, PoolMetrics,
};
pub use recording::Recorder;
pub use trace::Tracer;

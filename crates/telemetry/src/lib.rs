//! What an operator sees: the closed list of metrics, the access log, the log set-up, and the one
//! clock of the process.
//!
//! Metric names, labels and help stand in [`names`] and nowhere else; the request path holds plain
//! atomics from [`metrics`] and never looks a series up.

pub mod access_log;
pub mod clock;
mod escape;
pub mod logging;
pub mod metrics;
pub mod names;

pub use access_log::{AccessLog, Entry, Target};
pub use metrics::{BuildInfo, EndpointGauges, GatewayMetrics, Metrics, PoolMetrics};

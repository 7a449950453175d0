//! Every metric: name, kind, unit, labels and help. `docs/metrics.md` is generated from here.
//!
//! Labels take their values from the configuration or from the closed sets in
//! [`crate::metrics::labels`], never from requests.

mod answers;
mod auth;
mod buckets;
mod cluster;
mod endpoint;
mod ext_proc;
pub mod field;
mod fleet;
mod flow;
pub mod genai;
mod pace;
mod page;
mod peers;
mod pool;
mod prefix;
mod process;
mod rate_limits;
mod rewrite;
mod usage;

pub use answers::*;
pub use auth::*;
pub use cluster::*;
pub use endpoint::*;
pub use ext_proc::*;
pub use fleet::*;
pub use flow::*;
pub use pace::*;
pub use page::markdown;
pub use peers::*;
pub use pool::*;
pub use prefix::*;
pub use process::*;
pub use rate_limits::*;
pub use rewrite::*;
pub use usage::*;

/// What kind of series a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows; the name ends with `_total`.
    Counter,
    Gauge,
    /// Buckets with these upper bounds, ascending, in the metric's unit; `+Inf` is added.
    Histogram(&'static [f64]),
}

/// Base unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number of the noun in the name.
    Count,
    Seconds,
    Bytes,
    /// 0 to 1.
    Ratio,
    /// One quantity over another, 1 where they are equal.
    Quotient,
    /// Seconds since 1970.
    UnixSeconds,
}

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// As it stands on the page, with unit and `_total`.
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    pub labels: &'static [&'static str],
    /// One sentence with a full stop.
    pub help: &'static str,
}

const fn metric(
    name: &'static str,
    kind: Kind,
    unit: Unit,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, kind, unit, labels, help }
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

impl Unit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Ratio => "ratio 0 to 1",
            Self::Quotient => "quotient",
            Self::UnixSeconds => "unix seconds",
        }
    }
}

/// Every metric, in page order.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    let of_pools = ENDPOINT.iter().chain(POOL).chain(FLOW).chain(TENANT);
    let of_clusters = FLEET.iter().chain(FLEET_MEMBER).chain(MEMBERSHIP);
    let of_fleet = of_pools.chain(CLUSTER).chain(of_clusters);
    of_fleet.chain(RATE_LIMIT).chain(REWRITE).chain(GATEWAY).copied()
}

#[cfg(test)]
mod tests;

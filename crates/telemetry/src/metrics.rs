//! The metrics of this process: who owns which cells, and the page that shows them.
//!
//! Owners (gateway, pool, endpoint) are asked for once and held; on the request path a metric is a
//! field, never a look-up. All series of an owner exist from the moment it does, at zero.

mod cell;
pub mod labels;
mod owners;
mod series;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use types::PoolName;

pub use cell::{By, Counter, Gauge, Histogram, Reading};
pub use owners::{BuildInfo, EndpointGauges, GatewayMetrics, PoolMetrics};

use crate::names::{self, Kind, Metric};
use series::Series;

/// The `Content-Type` of [`Metrics::encode`]: Prometheus text 0.0.4, which Prometheus and
/// everything that copies it accepts.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// All metrics of a gateway. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Owners>);

#[derive(Debug)]
struct Owners {
    gateway: GatewayMetrics,
    pools: Mutex<BTreeMap<PoolName, Pool>>,
}

#[derive(Debug, Default)]
struct Pool {
    metrics: Arc<PoolMetrics>,
    endpoints: BTreeMap<Box<str>, Arc<EndpointGauges>>,
}

impl Metrics {
    pub fn new(build: BuildInfo) -> Self {
        let gateway = GatewayMetrics::new(build);
        Self(Arc::new(Owners { gateway, pools: Mutex::default() }))
    }

    pub fn gateway(&self) -> &GatewayMetrics {
        &self.0.gateway
    }

    /// The pool's metrics, made on the first call.
    pub fn pool(&self, pool: &PoolName) -> Arc<PoolMetrics> {
        Arc::clone(&self.0.pools().entry(pool.clone()).or_default().metrics)
    }

    /// The endpoint's gauges, made (with its pool) on the first call. `endpoint` is `host:port` as
    /// configured.
    pub fn endpoint(&self, pool: &PoolName, endpoint: &str) -> Arc<EndpointGauges> {
        let mut pools = self.0.pools();
        let endpoints = &mut pools.entry(pool.clone()).or_default().endpoints;
        Arc::clone(endpoints.entry(endpoint.into()).or_default())
    }

    /// Takes the endpoint's series off the page. Handles still held count on, unseen.
    pub fn forget_endpoint(&self, pool: &PoolName, endpoint: &str) {
        if let Some(pool) = self.0.pools().get_mut(pool) {
            pool.endpoints.remove(endpoint);
        }
    }

    /// Takes the pool's series and those of its endpoints off the page.
    pub fn forget_pool(&self, pool: &PoolName) {
        self.0.pools().remove(pool);
    }

    /// The page, to be served as [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&self.0)));
        let mut page = String::new();
        // Writing into a string cannot fail, and neither can our own label sets.
        prometheus_text::encode(&mut page, &registry).unwrap_or_default();
        page
    }
}

impl Owners {
    /// A panic elsewhere leaves the map whole: it is only inserted into and removed from.
    fn pools(&self) -> MutexGuard<'_, BTreeMap<PoolName, Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Owners {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for metric in names::GATEWAY {
            let mut series = describe(&mut encoder, metric)?;
            self.gateway.write(&mut series.of(&[]));
            series.finish()?;
        }
        let pools = self.pools();
        for metric in names::POOL {
            let mut series = describe(&mut encoder, metric)?;
            for (name, pool) in pools.iter() {
                let owner = [("pool", name.as_str())];
                pool.metrics.write(&mut series.of(&owner));
            }
            series.finish()?;
        }
        for metric in names::ENDPOINT {
            let mut series = describe(&mut encoder, metric)?;
            for (name, pool) in pools.iter() {
                for (endpoint, gauges) in &pool.endpoints {
                    let owner = [("pool", name.as_str()), ("endpoint", &**endpoint)];
                    gauges.write(&mut series.of(&owner));
                }
            }
            series.finish()?;
        }
        Ok(())
    }
}

fn describe<'e>(
    encoder: &'e mut DescriptorEncoder<'_>,
    metric: &'static Metric,
) -> Result<Series<'e>, fmt::Error> {
    let kind = match metric.kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram(_) => MetricType::Histogram,
    };
    // The encoder appends `_total` to counters itself.
    let name = metric.name.strip_suffix("_total").unwrap_or(metric.name);
    Ok(Series::new(metric, encoder.encode_descriptor(name, metric.help, None, kind)?))
}

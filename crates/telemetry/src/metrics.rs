//! The metrics of this process: who owns which cells, and the page that shows them.
//!
//! Owners (gateway, pool, endpoint) are asked for once and held; on the request path a metric is a
//! field, never a look-up. All series of an owner exist from the moment it does, at zero.

mod cell;
mod cluster;
mod clusters;
mod exemplars;
mod fleet;
mod flow;
pub mod labels;
mod owners;
mod rate_limit;
mod rewrites;
mod series;
mod strict;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use types::PoolName;

pub use cell::{By, Counter, Distribution, Gauge, Histogram, Reading, Seconds};
pub use cluster::{CloudWatchMetrics, ClusterMetrics};
pub use fleet::{FleetMemberMetrics, FleetMetrics, FleetPace, MembershipMetrics};
pub use flow::FlowMetrics;
pub use owners::{
    AuthMetrics, BuildInfo, EndpointGauges, ExtProcMetrics, GatewayMetrics, PeerMetrics,
    PoolMetrics,
};
pub use rewrites::{DecisionKey, MirrorMetrics, RewriteMetrics, RuleKey};

pub use rate_limit::RateLimitMetrics;

use crate::names::{self, Kind, Metric, field, genai};
use clusters::Clusters;
use exemplars::Marked;
use rewrites::Rewrites;
use series::Series;
pub use usage::{OTHER_TENANT, Usage, UsageBook};

/// The `Content-Type` of [`Metrics::encode`]: Prometheus text 0.0.4, which Prometheus and
/// everything that copies it accepts.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// The `Content-Type` of [`Metrics::encode_open`].
pub const CONTENT_TYPE_OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a gateway. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Owners>);

#[derive(Debug)]
struct Owners {
    gateway: GatewayMetrics,
    usage: UsageBook,
    pools: Mutex<BTreeMap<PoolName, Pool>>,
    rate_limits: Mutex<BTreeMap<Box<str>, Arc<RateLimitMetrics>>>,
    rewrites: Mutex<Rewrites>,
    clusters: Clusters,
}

#[derive(Debug, Default)]
struct Pool {
    metrics: Arc<PoolMetrics>,
    endpoints: BTreeMap<Box<str>, Arc<EndpointGauges>>,
}

impl Metrics {
    pub fn new(build: BuildInfo) -> Self {
        let gateway = GatewayMetrics::new(build);
        Self(Arc::new(Owners {
            gateway,
            usage: UsageBook::default(),
            pools: Mutex::default(),
            rate_limits: Mutex::default(),
            rewrites: Mutex::default(),
            clusters: Clusters::default(),
        }))
    }

    pub fn gateway(&self) -> &GatewayMetrics {
        &self.0.gateway
    }

    /// GPU time by pool and tenant.
    pub fn usage(&self) -> &UsageBook {
        &self.0.usage
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
        self.0.usage.forget(pool);
        self.0.pools().remove(pool);
    }

    /// The metrics of a rule of rate limits, made on the first call.
    pub fn rate_limit(&self, rule: &str) -> Arc<RateLimitMetrics> {
        Arc::clone(self.0.rate_limits().entry(rule.into()).or_default())
    }

    /// The metrics of all rules of rate limits.
    pub fn rate_limit_rules(&self) -> Vec<Arc<RateLimitMetrics>> {
        self.0.rate_limits().values().cloned().collect()
    }

    /// Takes the series of all rules off the page that are not among these.
    pub fn keep_rate_limits(&self, rules: &[&str]) {
        self.0.rate_limits().retain(|rule, _| rules.contains(&&**rule));
    }

    /// Decisions of a rewrite for one match and one target, made on the first call.
    pub fn rewrite_decisions(&self, key: DecisionKey) -> Arc<Counter> {
        Arc::clone(self.0.rewrites().decisions.entry(key).or_default())
    }

    /// A target's metrics, made on the first call.
    pub fn rewrite_target(&self, key: RuleKey) -> Arc<RewriteMetrics> {
        Arc::clone(self.0.rewrites().targets.entry(key).or_default())
    }

    /// A rule's copies to a model, made on the first call.
    pub fn mirror(&self, key: RuleKey) -> Arc<MirrorMetrics> {
        Arc::clone(self.0.rewrites().mirrors.entry(key).or_default())
    }

    /// Takes the series of all rules but these off the page: decisions, targets and mirrors.
    pub fn keep_rewrites(
        &self,
        decisions: &BTreeSet<DecisionKey>,
        targets: &BTreeSet<RuleKey>,
        mirrors: &BTreeSet<RuleKey>,
    ) {
        let mut rewrites = self.0.rewrites();
        rewrites.decisions.retain(|key, _| decisions.contains(key));
        rewrites.targets.retain(|key, _| targets.contains(key));
        rewrites.mirrors.retain(|key, _| mirrors.contains(key));
    }

    /// The page with our names, to be served as [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        self.encode_with(Names::default())
    }

    /// The page with these names in OpenMetrics text, with exemplars; to be served as
    /// [`CONTENT_TYPE_OPEN`].
    pub fn encode_open(&self, names: Names) -> String {
        let mut page = String::new();
        // As in `encode_with`.
        text::encode(&mut page, &self.registry(names)).unwrap_or_default();
        let marked = self.0.marked();
        let page = strict::strict(&page);
        if marked.is_empty() { page } else { exemplars::mark(&page, marked) }
    }

    fn registry(&self, names: Names) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Page { owners: Arc::clone(&self.0), names }));
        registry
    }

    /// The page with these names.
    pub fn encode_with(&self, names: Names) -> String {
        let registry = self.registry(names);
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

    fn rate_limits(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<RateLimitMetrics>>> {
        self.rate_limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rewrites(&self) -> MutexGuard<'_, Rewrites> {
        self.rewrites.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose names a page has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    pub wicketgate: bool,
    /// [`names::field`], for what has a name there.
    pub field: bool,
    /// [`names::genai`], likewise.
    pub genai: bool,
}

impl Default for Names {
    fn default() -> Self {
        Self { wicketgate: true, field: false, genai: false }
    }
}

#[derive(Debug)]
struct Page {
    owners: Arc<Owners>,
    names: Names,
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        if self.names.wicketgate {
            self.owners.encode_ours(&mut encoder)?;
        }
        if self.names.field {
            self.owners.encode_aliases(field::ALIASES, &mut encoder)?;
            self.owners.encode_means(&mut encoder)?;
        }
        if self.names.genai {
            self.owners.encode_aliases(genai::ALIASES, &mut encoder)?;
        }
        Ok(())
    }
}

impl Owners {
    fn marked(&self) -> Vec<Marked> {
        let mut marked = Vec::new();
        for (name, pool) in self.pools().iter() {
            for (metric, histogram) in pool.metrics.with_exemplars() {
                let texts = histogram.exemplars().texts();
                if !texts.is_empty() {
                    marked.push(Marked::new(metric.name, name.as_str(), texts));
                }
            }
        }
        marked
    }

    fn encode_ours(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        // A router has no cluster of its own: what its members are like is the fleet's to say.
        let cluster = if self.clusters.is_router() { &[] } else { names::CLUSTER };
        for metric in names::GATEWAY.iter().chain(cluster) {
            let mut series = describe(encoder, metric)?;
            self.gateway.write(&mut series.of(&[]));
            series.finish()?;
        }
        let pools = self.pools();
        for metric in names::POOL.iter().chain(names::FLOW) {
            let mut series = describe(encoder, metric)?;
            for (name, pool) in pools.iter() {
                let owner = [("pool", name.as_str())];
                pool.metrics.write(&mut series.of(&owner));
            }
            series.finish()?;
        }
        let rows = self.usage.series();
        for metric in names::TENANT {
            let mut series = describe(encoder, metric)?;
            for (pool, tenant, usage) in &rows {
                let owner = [("pool", pool.as_str()), ("tenant", tenant.as_str())];
                usage.write(&mut series.of(&owner));
            }
            series.finish()?;
        }
        for metric in names::ENDPOINT {
            let mut series = describe(encoder, metric)?;
            for (name, pool) in pools.iter() {
                for (endpoint, gauges) in &pool.endpoints {
                    let owner = [("pool", name.as_str()), ("endpoint", &**endpoint)];
                    gauges.write(&mut series.of(&owner));
                }
            }
            series.finish()?;
        }
        let rate_limits = self.rate_limits();
        for metric in names::RATE_LIMIT {
            let mut series = describe(encoder, metric)?;
            for (rule, metrics) in rate_limits.iter() {
                metrics.write(&mut series.of(&[("rule", rule)]));
            }
            series.finish()?;
        }
        drop(rate_limits);
        self.clusters.encode(encoder)?;
        self.rewrites().encode(encoder)
    }

    fn encode_aliases(
        &self,
        aliases: &'static [field::Alias],
        encoder: &mut DescriptorEncoder<'_>,
    ) -> fmt::Result {
        let pools = self.pools();
        for of_one_name in aliases.chunk_by(|one, next| one.name == next.name) {
            let [first, ..] = of_one_name else { continue };
            let encoder = descriptor(encoder, first.name, first.of.help, first.of.kind)?;
            let mut series = Series::under(first, encoder);
            for alias in of_one_name {
                series.rename(alias);
                self.gateway.write(&mut series.of(&[]));
                self.rewrites().write(&mut series);
                for (name, pool) in pools.iter() {
                    pool.metrics.write(&mut series.of(&[("pool", name.as_str())]));
                    for (endpoint, gauges) in &pool.endpoints {
                        let owner = [("pool", name.as_str()), ("endpoint", &**endpoint)];
                        gauges.write(&mut series.of(&owner));
                    }
                }
            }
            series.finish()?;
        }
        Ok(())
    }

    /// The means that only the field has.
    fn encode_means(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let pools = self.pools();
        for mean in field::MEANS {
            let mut encoder = descriptor(encoder, mean.name, mean.help, Kind::Gauge)?;
            for (name, pool) in pools.iter() {
                let said = pool.endpoints.values().filter_map(|gauges| gauges.reported(mean.of));
                let (sum, count) =
                    said.fold((0.0, 0u32), |(sum, count), one| (sum + one, count + 1));
                if count > 0 {
                    let labels = [(field::MEAN_LABEL, name.as_str())];
                    encoder.encode_family(&labels)?.encode_gauge(&(sum / f64::from(count)))?;
                }
            }
        }
        Ok(())
    }
}

fn describe<'e>(
    encoder: &'e mut DescriptorEncoder<'_>,
    metric: &'static Metric,
) -> Result<Series<'e>, fmt::Error> {
    Ok(Series::new(metric, descriptor(encoder, metric.name, metric.help, metric.kind)?))
}

fn descriptor<'e>(
    encoder: &'e mut DescriptorEncoder<'_>,
    name: &'static str,
    help: &'static str,
    kind: Kind,
) -> Result<MetricEncoder<'e>, fmt::Error> {
    let kind = match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram(_) => MetricType::Histogram,
    };
    // The encoder appends `_total` to counters itself.
    let name = name.strip_suffix("_total").unwrap_or(name);
    encoder.encode_descriptor(name, help, None, kind)
}

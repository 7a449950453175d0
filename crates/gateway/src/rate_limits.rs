//! The document's rate limits in force, and who is near them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use config::Spec;
use limits::{Allowance, Kind, Limiter, Moment, Refused};
use serde::{Deserialize, Serialize};
use telemetry::metrics::RateLimitMetrics;
use telemetry::metrics::labels::LimitKind;
use telemetry::{Metrics, clock};
use types::Timestamp;

use crate::Gateway;

/// Rules with their metrics; replaced as a whole, while requests go on with the one they came under.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) limiter: Limiter,
    /// By position of the rule.
    metrics: Vec<Arc<RateLimitMetrics>>,
}

/// The rules of one gateway.
#[derive(Debug)]
pub(crate) struct RateLimits {
    in_force: ArcSwap<InForce>,
    /// For buckets of which nothing was granted yet.
    unasked: Mutex<Allowance>,
}

/// Rate limits and their fullest buckets. The names of the fields are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RateLimitView {
    pub rule: String,
    pub shadow: bool,
    /// Buckets that are remembered.
    pub buckets: usize,
    pub fullest: Vec<BucketView>,
}

/// One bucket; what the rule does not tell apart is absent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BucketView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    pub in_flight: u32,
    pub meters: Vec<MeterView>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeterView {
    /// `requests`, `inputTokens`, `outputTokens`, `tokens` or `concurrent`.
    pub kind: String,
    /// `second`, `minute`, `hour` or `day`; absent for `concurrent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<String>,
    pub limit: u64,
    pub remaining: u64,
    /// Until nothing of it is used any more.
    pub reset_ms: u64,
}

impl InForce {
    pub(crate) fn metrics(&self, rule: usize) -> Option<&RateLimitMetrics> {
        self.metrics.get(rule).map(|metrics| &**metrics)
    }

    /// Counts a refusal of a shadow rule.
    pub(crate) fn shadowed(&self, refused: &Refused) {
        if let Some(metrics) = self.metrics(refused.rule) {
            metrics.shadow_refusals.of(label(refused.kind)).inc();
        }
    }

    /// Counts a refusal in earnest.
    pub(crate) fn refused(&self, refused: &Refused) {
        if let Some(metrics) = self.metrics(refused.rule) {
            metrics.refusals.of(label(refused.kind)).inc();
        }
    }
}

impl RateLimits {
    pub(crate) fn new(spec: &Spec, metrics: &Metrics) -> Self {
        let unasked = Allowance::ALL;
        let in_force = ArcSwap::from_pointee(in_force(spec, metrics, None, unasked));
        Self { in_force, unasked: Mutex::new(unasked) }
    }

    /// Puts the rules of a new document in force; those that mean what they meant keep their buckets.
    pub(crate) fn apply(&self, spec: &Spec, metrics: &Metrics) {
        let unasked = *self.unasked();
        self.replace(spec, metrics, unasked);
    }

    fn set_unasked(&self, spec: &Spec, metrics: &Metrics, allowance: Allowance) {
        let former = std::mem::replace(&mut *self.unasked(), allowance);
        if former != allowance {
            self.replace(spec, metrics, allowance);
        }
    }

    fn replace(&self, spec: &Spec, metrics: &Metrics, unasked: Allowance) {
        let former = self.in_force.load_full();
        let next = in_force(spec, metrics, Some(&former.limiter), unasked);
        self.in_force.store(Arc::new(next));
    }

    fn unasked(&self) -> MutexGuard<'_, Allowance> {
        self.unasked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn load(&self) -> Guard<Arc<InForce>> {
        self.in_force.load()
    }
}

fn in_force(
    spec: &Spec,
    metrics: &Metrics,
    former: Option<&Limiter>,
    unasked: Allowance,
) -> InForce {
    let rules = &spec.rate_limits;
    let names: Vec<&str> = rules.iter().map(|rule| &*rule.name).collect();
    metrics.keep_rate_limits(&names);
    let metrics = names.iter().map(|name| metrics.rate_limit(name)).collect();
    let mut limiter = Limiter::new(rules.clone(), former);
    limiter.set_allowance(unasked);
    InForce { limiter, metrics }
}

/// The instant in both kinds of time.
pub(crate) fn moment(now: Timestamp) -> Moment {
    let unix = clock::wall().duration_since(std::time::UNIX_EPOCH);
    Moment { now, unix: unix.unwrap_or_default() }
}

fn label(kind: Kind) -> LimitKind {
    match kind {
        Kind::Requests => LimitKind::Requests,
        Kind::InputTokens => LimitKind::InputTokens,
        Kind::OutputTokens => LimitKind::OutputTokens,
        Kind::Tokens => LimitKind::Tokens,
        Kind::Concurrent => LimitKind::Concurrent,
    }
}

impl Gateway {
    /// Each rule with the `most` buckets of which the largest share is used.
    pub fn rate_limit_views(&self, most: usize, now: Timestamp) -> Vec<RateLimitView> {
        let (in_force, moment) = (self.rate_limits.load(), moment(now));
        let limiter = &in_force.limiter;
        let rules = limiter.rules().enumerate();
        rules
            .map(|(at, rule)| RateLimitView {
                rule: rule.name.to_string(),
                shadow: rule.shadow,
                buckets: limiter.buckets(at),
                fullest: limiter
                    .fullest(at, most, moment)
                    .into_iter()
                    .map(BucketView::of)
                    .collect(),
            })
            .collect()
    }

    /// Whether any limit is in force.
    pub fn has_rate_limits(&self) -> bool {
        !self.rate_limits.load().limiter.is_empty()
    }

    /// Lends the limiter in force to whoever shares its limits with other gateways.
    pub fn with_limiter<T>(&self, with: impl FnOnce(&Limiter) -> T) -> T {
        with(&self.rate_limits.load().limiter)
    }

    /// What buckets may spend of which nothing was granted yet; also of rules that come later.
    pub fn set_unasked_allowance(&self, allowance: Allowance) {
        self.rate_limits.set_unasked(&self.spec(), &self.metrics, allowance);
    }

    /// Forgets what is at rest and brings the gauges up to date.
    pub(crate) fn refresh_rate_limits(&self, now: Timestamp) {
        let in_force = self.rate_limits.load();
        if in_force.limiter.is_empty() {
            return;
        }
        in_force.limiter.sweep(moment(now));
        for (at, metrics) in in_force.metrics.iter().enumerate() {
            metrics.buckets.set(i64::try_from(in_force.limiter.buckets(at)).unwrap_or(i64::MAX));
        }
    }
}

impl BucketView {
    pub(crate) fn of(bucket: limits::BucketView) -> Self {
        let limits::BucketName { tenant, key, model, route } = bucket.name;
        let meters = bucket.meters.into_iter().map(|gauge| MeterView {
            kind: gauge.kind.as_str().to_owned(),
            per: gauge.period.map(|period| period.as_str().to_owned()),
            limit: gauge.limit,
            remaining: gauge.remaining,
            reset_ms: u64::try_from(gauge.reset.as_millis()).unwrap_or(u64::MAX),
        });
        Self {
            tenant: tenant.map(|tenant| tenant.to_string()),
            key: key.map(|key| key.to_string()),
            model: model.map(|model| model.to_string()),
            route: route.map(str::to_owned),
            in_flight: bucket.in_flight,
            meters: meters.collect(),
        }
    }
}

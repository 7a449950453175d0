//! The cluster's rates and percentiles over a sliding window.
//!
//! One task reads the pools' counters every few seconds and keeps the differences; the request path
//! knows nothing of it. Differences are taken pool by pool, so that one that comes or goes does not
//! look like traffic.

mod window;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use telemetry::PoolMetrics;
use telemetry::metrics::labels::{Label, Outcome, Route};
use telemetry::{clock, names};
use types::{PoolName, Timestamp};

use crate::Gateway;
use window::{Totals, Window};

/// Between two looks at the counters.
const STEP: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(names::CLUSTER_WINDOW_SECONDS);

/// Keeps the cluster's metrics up to date until dropped.
pub async fn watch_cluster(gateway: Arc<Gateway>) {
    let mut cluster = Cluster::new(clock::now());
    loop {
        cluster.advance(&gateway, clock::now());
        tokio::time::sleep(STEP).await;
    }
}

pub(crate) struct Cluster {
    /// What each pool had counted at the last look.
    seen: HashMap<PoolName, Totals>,
    window: Window,
}

impl Cluster {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { seen: HashMap::new(), window: Window::new(WINDOW, now) }
    }

    /// Looks at the counters and shows what follows.
    pub(crate) fn advance(&mut self, gateway: &Gateway, now: Timestamp) {
        let catalog = gateway.catalog();
        let mut sum = Totals::default();
        let mut seen = HashMap::with_capacity(catalog.pools.len());
        for pool in &catalog.pools {
            let totals = totals(&pool.metrics);
            // A pool that was not there has counted from zero.
            sum.add(&totals.since(self.seen.get(&pool.name)));
            seen.insert(pool.name.clone(), totals);
        }
        self.seen = seen;
        gateway.members().iter().for_each(|member| member.look_at_speed(now));
        self.window.push(sum, now);
        self.show(gateway, now);
        if let Some(clusters) = gateway.clusters() {
            clusters.advance(&gateway.metrics, now);
        }
        gateway.refresh_gauges(now);
    }

    fn show(&self, gateway: &Gateway, now: Timestamp) {
        let (sum, seconds) = self.window.sum(now);
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let share = |count: u64| (sum.finished > 0).then(|| count as f64 / sum.finished as f64);
        let cluster = &gateway.metrics.gateway().cluster;
        cluster.request_rate.set(rate(sum.finished));
        cluster.error_ratio.set(share(sum.failed));
        cluster.shed_ratio.set(share(sum.shed));
        cluster.input_token_rate.set(rate(sum.input_tokens));
        cluster.output_token_rate.set(rate(sum.output_tokens));
        cluster.ttft_p99.set(sum.ttft_quantile(0.99));
        cluster.duration_p99.set(sum.duration_quantile(0.99));
        let capacity = prefill_capacity(gateway, now);
        let computed = rate(sum.input_tokens.saturating_sub(sum.cached_tokens));
        cluster.prefill_capacity.set(capacity);
        cluster.prefill_headroom.set(capacity.map(|capacity| (capacity - computed).max(0.0)));
        if let Some(clusters) = gateway.clusters() {
            let pace = &clusters.metrics().pace;
            pace.request_rate.set(rate(sum.finished));
            pace.error_ratio.set(share(sum.failed));
            pace.shed_ratio.set(share(sum.shed));
            pace.input_token_rate.set(rate(sum.input_tokens));
            pace.output_token_rate.set(rate(sum.output_tokens));
            pace.ttft_p99.set(sum.ttft_quantile(0.99));
            pace.duration_p99.set(sum.duration_quantile(0.99));
        }
    }
}

fn totals(metrics: &PoolMetrics) -> Totals {
    let of = |outcome: Outcome| -> u64 {
        Route::ALL.iter().map(|route| metrics.requests.of(*route).of(outcome).get()).sum()
    };
    Totals {
        finished: Outcome::ALL.iter().map(|outcome| of(*outcome)).sum(),
        failed: of(Outcome::EndpointError) + of(Outcome::GatewayError),
        shed: of(Outcome::Shed),
        input_tokens: metrics.input_tokens.get(),
        cached_tokens: metrics.cached_input_tokens.get(),
        output_tokens: metrics.output_tokens.get(),
        ttft: metrics.request_ttft.counts().collect(),
        duration: metrics.request_duration.counts().collect(),
    }
}

/// Prompt tokens that the endpoints in order compute in a second; those of which nothing is learned
/// count for the mean of the others. `None` while nothing is learned at all.
fn prefill_capacity(gateway: &Gateway, now: Timestamp) -> Option<f64> {
    let (mut known, mut unknown, mut sum) = (0_u32, 0_u32, 0.0);
    for member in gateway.members() {
        if !member.state.observe(None, now).is_in_order() {
            continue;
        }
        match member.seen.prefill_speed() {
            Some(speed) => {
                known += 1;
                sum += speed;
            }
            None => unknown += 1,
        }
    }
    (known > 0).then(|| sum + f64::from(unknown) * sum / f64::from(known))
}

#[cfg(test)]
mod tests;

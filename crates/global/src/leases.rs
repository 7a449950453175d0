//! Which part of global limits this router may spend: asked for at the store, once a second, never by a request.

use std::sync::Arc;
use std::time::Duration;

use fleet::lease::{Holder, LEASE, Outage};
use gateway::Gateway;
use limits::{Allowance, Moment, Share};
use rand::RngExt;
use telemetry::clock;
use telemetry::metrics::FleetMetrics;
use telemetry::metrics::labels::Lease;
use types::Timestamp;

use crate::store::{RedisStore, StoreError};

/// How limits are shared.
pub struct LeaseSettings {
    /// `None`: nobody is asked; each router spends its equal part.
    pub store: Option<RedisStore>,
    pub outage: Outage,
    /// Routers that share the limits, as far as the document knows.
    pub routers: u32,
}

/// Shares limits until `stopped` is; then tells the store.
pub async fn share_limits(
    gateway: Arc<Gateway>,
    settings: LeaseSettings,
    stopped: impl Future<Output = ()>,
) {
    let LeaseSettings { store, outage, routers } = settings;
    let Some(mut store) = store else {
        if routers > 1 {
            gateway.set_unasked_allowance(always(Share::of(1, routers.into())));
        }
        return;
    };
    let Some(clusters) = gateway.clusters().cloned() else { return };
    let metrics = clusters.metrics();
    let id: u64 = rand::rng().random();
    let mut holder = Holder::new(id, outage, routers);
    gateway.set_unasked_allowance(holder.unasked());
    let mut is_up = None;
    let mut stopped = std::pin::pin!(stopped);
    loop {
        if gateway.has_rate_limits() {
            let asked = clock::now();
            let round = round(&gateway, &mut store, &mut holder, asked).await;
            note(metrics, &round, &mut is_up);
            metrics.leases.set(i64::try_from(holder.len()).unwrap_or(i64::MAX));
        }
        // Routers that came back together must not ask together.
        let pause = (LEASE / 2).mul_f64(rand::rng().random_range(0.9..=1.1));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = &mut stopped => break,
        }
    }
    if let Err(error) = store.leave(id).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "the store was not told");
    }
}

/// Asks for the next lease of everything.
async fn round(
    gateway: &Gateway,
    store: &mut RedisStore,
    holder: &mut Holder,
    asked: Timestamp,
) -> Result<f64, StoreError> {
    let moment = Moment { now: asked, unix: unix() };
    let ask = gateway.with_limiter(|limiter| holder.ask(limiter, moment));
    let answer = store.ask(&ask).await?;
    let moment = Moment { now: clock::now(), unix: unix() };
    gateway.with_limiter(|limiter| holder.answered(limiter, &answer, asked, moment));
    gateway.set_unasked_allowance(holder.unasked());
    let sum: f64 = answer.grants.iter().map(|grant| f64::from(grant.share.parts())).sum();
    Ok(sum / (answer.grants.len().max(1) as f64 * f64::from(Share::ALL.parts())))
}

fn note(metrics: &FleetMetrics, round: &Result<f64, StoreError>, is_up: &mut Option<bool>) {
    metrics.store_up.set(if round.is_ok() { 1.0 } else { 0.0 });
    let was_up = is_up.replace(round.is_ok());
    match round {
        Ok(share) => {
            metrics.lease_rounds.of(Lease::Ok).inc();
            metrics.lease_share.set(*share);
            if was_up == Some(false) {
                tracing::info!("the store of global limits answers again");
            }
        }
        Err(error) => {
            let label = match error {
                StoreError::Refused(_) | StoreError::Url(_) => Lease::Refused,
                StoreError::Silent(_) | StoreError::Late(_) => Lease::Silent,
            };
            metrics.lease_rounds.of(label).inc();
            if was_up != Some(false) {
                let error = error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    "the store of global limits: `failureMode` holds once leases have ended"
                );
            }
        }
    }
}

/// The same part at all times.
fn always(share: Share) -> Allowance {
    Allowance { share, until: Timestamp::ZERO, after: share }
}

fn unix() -> Duration {
    clock::wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

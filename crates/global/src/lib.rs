//! What the tier over clusters says to the world: members report to routers, routers probe members and share
//! limits through a store.
//!
//! ```text
//! cluster:  Gateway::census ─▶ Pulse ─▶ Heartbeat ─▶ reports ──TLS──▶ router: listener ─▶ Clusters::heard
//! router:   prober ─▶ Clusters::probed     ticker ─▶ Clusters::tick     leases ─▶ Redis ─▶ limits::Limiter
//! ```
//!
//! What is decided of it is in [`fleet`]; no request waits for anything here.

mod certificates;
mod frame;
mod leases;
mod listener;
mod probes;
mod pulse;
mod reports;
mod store;
mod wire;

pub use leases::{LeaseSettings, share_limits};
pub use listener::{Listener, ListenerError};
pub use probes::{Suspicions, probe};
pub use reports::{Reporter, ReporterError};
pub use store::{RedisStore, StoreError, StoreSettings};

use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use telemetry::clock;

/// Between two looks at the time.
const TICK: Duration = Duration::from_millis(250);

/// Lets time pass for a router's members, as long as it is polled.
pub async fn tick(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(clusters) = gateway.clusters() {
            clusters.tick(clock::now());
        }
    }
}

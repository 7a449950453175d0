//! A router's document, read again.

use std::sync::Arc;

use config::{Global, GlobalDocument};
use gateway::{Clusters, Gateway, Keys};
use telemetry::clock;
use telemetry::metrics::labels::Reload;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

use super::Flags;
use crate::reload::{SETTLE, watch};

/// Applies the document again on SIGHUP and whenever its file changes.
pub(super) async fn on_change(
    mut hangup: Signal,
    gateway: Arc<Gateway>,
    flags: Flags,
    mut document: GlobalDocument,
) -> anyhow::Result<()> {
    let (changed, mut changes) = mpsc::channel(1);
    let _watcher = match &flags.file {
        Some(file) => Some(watch(file, changed.clone())?),
        None => None,
    };
    loop {
        tokio::select! {
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                let _ = changes.try_recv();
            }
            _ = hangup.recv() => {}
        }
        let outcome = match flags.document() {
            Ok(next) if is_same(&next, &document) => Reload::Unchanged,
            Ok(next) => match apply(&gateway, &document.global, &next) {
                Ok(()) => {
                    document = next;
                    Reload::Applied
                }
                Err(error) => {
                    let error: &(dyn std::error::Error + 'static) = &*error;
                    tracing::error!(
                        error,
                        "the changed document cannot be used; the old one stays in force"
                    );
                    Reload::Rejected
                }
            },
            Err(error) => {
                tracing::error!(
                    "the changed document is not valid; the old one stays in force\n{error}"
                );
                Reload::Rejected
            }
        };
        let metrics = gateway.metrics.gateway();
        metrics.config_reloads.of(outcome).inc();
        if outcome == Reload::Applied {
            metrics.config_last_reload_success.set(clock::unix_seconds(clock::wall()));
            tracing::info!("document reloaded");
        }
    }
}

fn is_same(one: &GlobalDocument, other: &GlobalDocument) -> bool {
    one.global == other.global && one.gateway.spec == other.gateway.spec
}

fn apply(
    gateway: &Arc<Gateway>,
    old: &Global,
    next: &GlobalDocument,
) -> Result<(), Box<dyn std::error::Error>> {
    let (spec, new) = (&next.gateway.spec, &next.global);
    let fixed = [
        ("listener", gateway.spec().listener != spec.listener),
        ("admin", gateway.spec().admin.address != spec.admin.address),
        ("accessLog", gateway.spec().access_log != spec.access_log),
        ("memberTls", old.member_tls != new.member_tls),
        ("store", old.store != new.store),
        ("failureMode", old.outage != new.outage),
        ("routers", old.routers != new.routers),
        (
            "heartbeats",
            old.heartbeats.address != new.heartbeats.address
                || old.heartbeats.tls != new.heartbeats.tls,
        ),
    ];
    for (part, _) in fixed.iter().filter(|(_, has_changed)| *has_changed) {
        tracing::warn!(part, "this part of the document takes force only with a restart");
    }
    let keys = Keys::load(spec, Some(gateway))?;
    let clusters: &Arc<Clusters> = gateway.clusters().ok_or("this gateway is no router")?;
    gateway.use_keys(keys);
    clusters.apply(next, gateway, clock::now())?;
    Ok(())
}

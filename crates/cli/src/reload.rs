//! A changed document takes force without a restart; a bad one changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway::{Gateway, Keys};
use notify::{RecursiveMode, Watcher};
use telemetry::clock;
use telemetry::metrics::labels::Reload;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use wicketgate_kube::Latest;

use crate::settings::Flags;

/// Changes that come together are taken together.
pub(crate) const SETTLE: Duration = Duration::from_millis(200);

/// Applies the document again on SIGHUP and whenever its file changes.
pub(crate) async fn on_change(
    mut hangup: Signal,
    gateway: Arc<Gateway>,
    flags: Flags,
) -> anyhow::Result<()> {
    let (changed, mut changes) = mpsc::channel(1);
    let _watcher = match &flags.file {
        Some(file) => Some(watch(file, changed.clone())?),
        None => None,
    };
    let mut resource = flags.resource.clone();
    loop {
        tokio::select! {
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                let _ = changes.try_recv();
            }
            () = changed_resource(&mut resource) => {}
            _ = hangup.recv() => {}
        }
        reload(&gateway, &flags);
    }
}

/// Ends when the resource that the document comes from has changed; never without one.
async fn changed_resource(latest: &mut Option<Latest>) {
    if let Some(latest) = latest
        && latest.changed().await.is_ok()
    {
        latest.mark_unchanged();
        return;
    }
    std::future::pending().await
}

fn reload(gateway: &Arc<Gateway>, flags: &Flags) {
    let metrics = gateway.metrics.gateway();
    match flags.document() {
        Ok(document) if document.spec == *gateway.document() => {
            metrics.config_reloads.of(Reload::Unchanged).inc();
        }
        Ok(document) => {
            for part in needs_restart(&gateway.document(), &document.spec) {
                tracing::warn!(part, "this part of the document takes force only with a restart");
            }
            // The keys first: at no moment does the new document hold without them.
            let keys = match Keys::load(&document.spec, Some(gateway)) {
                Ok(keys) => keys,
                Err(error) => {
                    metrics.config_reloads.of(Reload::Rejected).inc();
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(
                        error,
                        "the changed document names keys that cannot be used; the old one stays in force"
                    );
                    return;
                }
            };
            if document.spec.serves_strangers() && !gateway.spec().serves_strangers() {
                let why = crate::check::open_by(&document.spec);
                tracing::warn!("requests are now served without credentials: {why}");
            }
            gateway.use_keys(keys);
            gateway.apply(&document);
            metrics.config_reloads.of(Reload::Applied).inc();
            metrics.config_last_reload_success.set(clock::unix_seconds(clock::wall()));
            tracing::info!("document reloaded");
        }
        Err(error) => {
            metrics.config_reloads.of(Reload::Rejected).inc();
            tracing::error!(
                "the changed document is not valid; the old one stays in force\n{error}"
            );
        }
    }
}

/// Parts that are read once, at the start.
fn needs_restart(old: &config::Spec, new: &config::Spec) -> Vec<&'static str> {
    let mut parts = Vec::new();
    if old.listener != new.listener {
        parts.push("listener");
    }
    if old.admin.address != new.admin.address {
        parts.push("admin");
    }
    if old.peers != new.peers {
        parts.push("peers");
    }
    if old.global != new.global {
        parts.push("global");
    }
    if old.access_log != new.access_log {
        parts.push("accessLog");
    }
    if old.observability.tracing != new.observability.tracing {
        parts.push("observability.tracing");
    }
    if old.recording != new.recording {
        parts.push("recording");
    }
    if old.prefix_index != new.prefix_index {
        parts.push("prefixIndex");
    }
    if old.observability.cloud_watch != new.observability.cloud_watch {
        parts.push("observability.cloudWatch");
    }
    if old.ejection != new.ejection {
        parts.push("ejection");
    }
    if old.limits.connections_max != new.limits.connections_max {
        parts.push("limits.connectionsMax");
    }
    parts
}

/// Watches the folder, not the file: editors and Kubernetes replace files instead of writing them.
pub(crate) fn watch(
    file: &Path,
    changed: mpsc::Sender<()>,
) -> anyhow::Result<notify::RecommendedWatcher> {
    let file = std::path::absolute(file)?;
    let folder: PathBuf = file.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // Full: a reload is due anyway.
            let _ = changed.try_send(());
        }
    })?;
    watcher.watch(&folder, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

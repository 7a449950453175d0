//! A changed document takes force without a restart; a bad one changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use notify::{RecursiveMode, Watcher};
use telemetry::clock;
use telemetry::metrics::labels::Reload;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

use crate::settings::Flags;

/// Changes that come together are taken together.
const SETTLE: Duration = Duration::from_millis(200);

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
    loop {
        tokio::select! {
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                let _ = changes.try_recv();
            }
            _ = hangup.recv() => {}
        }
        reload(&gateway, &flags);
    }
}

fn reload(gateway: &Gateway, flags: &Flags) {
    let metrics = gateway.metrics.gateway();
    match flags.document() {
        Ok(document) if document.spec == **gateway.spec() => {
            metrics.config_reloads.of(Reload::Unchanged).inc();
        }
        Ok(document) => {
            for part in needs_restart(&gateway.spec(), &document.spec) {
                tracing::warn!(part, "this part of the document takes force only with a restart");
            }
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
    if old.admin != new.admin {
        parts.push("admin");
    }
    if old.access_log != new.access_log {
        parts.push("accessLog");
    }
    if old.prefix_index != new.prefix_index {
        parts.push("prefixIndex");
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
fn watch(file: &Path, changed: mpsc::Sender<()>) -> anyhow::Result<notify::RecommendedWatcher> {
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

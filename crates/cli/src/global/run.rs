//! The router's process.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use config::{GlobalDocument, MutualTls, OutageMode, SecretSource, Store};
use fleet::lease::Outage;
use gateway::{Clusters, Gateway, Keys, Policy};
use global::{LeaseSettings, Listener, RedisStore, StoreSettings, Suspicions};
use proxy::{Fetcher, KeysFetcher, Options, Phase, Server, UpstreamTls, listen};
use telemetry::{BuildInfo, Metrics, clock};
use tls::ClientFiles;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::{Flags, reload};
use crate::serve::{announce, bind, descriptors, memory, open_access_log};
use crate::shutdown::{self, Signals};
use crate::{cloud_watch, traces};

/// How often certificates towards members are looked at.
/// Longest time for the goodbye to the store.
const GOODBYE: Duration = Duration::from_secs(1);

pub(super) fn run(flags: Flags) -> anyhow::Result<()> {
    telemetry::logging::init(&flags.log, flags.log_json)?;
    let document = flags.document()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, route(flags, document))
}

async fn route(flags: Flags, document: GlobalDocument) -> anyhow::Result<()> {
    for warning in &document.gateway.warnings {
        tracing::warn!("{warning}");
    }
    let (spec, global) = (&document.gateway.spec, &document.global);
    let keys = Keys::load(spec, None)?;
    let metrics = Metrics::new(BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: "" });
    let access_log = open_access_log(&document.gateway, &metrics)?;
    let clusters = Clusters::new(&document, &metrics, clock::now())?;
    let tls = upstream_tls(&document)?;
    let leases = leases(&document)?;
    let listeners = bind(&document.gateway)?;
    let heartbeats = listen(global.heartbeats.address)
        .with_context(|| format!("cannot listen on {}", global.heartbeats.address))?;
    let options = Options {
        workers: flags.workers,
        connections_max: spec.limits.connections(descriptors()),
        memory_bytes: memory(),
        endpoint_authorization: None,
        upstream_tls: tls.clone(),
    };
    // Before anyone can know that this process runs: the default action of a signal is to kill it.
    let (stop, hangup) = (Signals::catch()?, signal(SignalKind::hangup())?);

    let gateway = Gateway::new(&document.gateway, Policy::Document, metrics, access_log);
    gateway.use_keys(keys);
    gateway.use_clusters(clusters);
    let exporter = traces::begin(&document.gateway, &gateway)?;
    let reporter = cloud_watch::report(&gateway)?;
    let (suspicions, suspected) = Suspicions::channel();
    let address = heartbeats.local_addr()?;
    let listener =
        Listener::new(gateway.clone(), heartbeats, global.heartbeats.tls.clone(), suspicions)?;
    tracing::info!(address = %address, tls = global.heartbeats.tls.is_some(), "heartbeats of members");
    let members: Vec<&str> = global.members.iter().map(|member| member.name.as_str()).collect();
    tracing::info!(?members, "a router over clusters");
    announce(&listeners, spec)?;

    let (phase, phase_seen) = watch::channel(Phase::Serving);
    let (leave, left) = oneshot::channel::<()>();
    let sharing = tokio::task::spawn_local(global::share_limits(gateway.clone(), leases, async {
        // A sender that is gone wants the same.
        let _ = left.await;
    }));
    let fetcher = Rc::new(Fetcher::far(tls.clone()));
    let tasks = [
        tokio::task::spawn_local(listener.run()),
        tokio::task::spawn_local(global::probe(gateway.clone(), fetcher, suspected)),
        tokio::task::spawn_local(global::tick(gateway.clone())),
        tokio::task::spawn_local(gateway::keep_keys(gateway.clone(), KeysFetcher)),
        tokio::task::spawn_local(follow(tls)),
        tokio::task::spawn_local(gateway::watch_cluster(gateway.clone())),
        tokio::task::spawn_local(shutdown::on_signal(stop, gateway.clone(), phase)),
    ];
    let reloading =
        tokio::task::spawn_local(reload::on_change(hangup, gateway.clone(), flags, document));
    let served = Server::new(gateway, options, listeners, phase_seen).run().await;
    // Both fail only if it has ended already.
    let _ = leave.send(());
    let _ = tokio::time::timeout(GOODBYE, sharing).await;
    reloading.abort();
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    served?;
    drop((exporter, reporter));
    tracing::info!("stopped");
    Ok(())
}

/// Towards members with `https`.
fn upstream_tls(document: &GlobalDocument) -> anyhow::Result<Option<UpstreamTls>> {
    let global = &document.global;
    if !global.members.iter().any(|member| member.url.is_tls()) {
        return Ok(None);
    }
    let files = global.member_tls.as_ref().map(|files: &MutualTls| ClientFiles {
        ca: Some(files.ca_file.clone()),
        own: Some((files.cert_file.clone(), files.key_file.clone())),
        protocols: &[],
    });
    let name = global.member_tls.as_ref().and_then(|files| files.server_name.clone());
    let tls = UpstreamTls::load(files.unwrap_or_default(), name);
    Ok(Some(tls.context("the certificates of `memberTls` cannot be used")?))
}

fn leases(document: &GlobalDocument) -> anyhow::Result<LeaseSettings> {
    let global = &document.global;
    let outage = match global.outage {
        OutageMode::Safe => Outage::Safe,
        OutageMode::Closed => Outage::Closed,
        OutageMode::Open => Outage::Open,
    };
    let store = match &global.store {
        Store::Embedded => None,
        Store::Redis(redis) => {
            let settings = StoreSettings {
                url: redis.url.clone(),
                username: redis.username.clone(),
                password: redis.password.as_ref().map(secret).transpose()?,
                prefix: redis.prefix.clone(),
                timeout: redis.timeout,
            };
            Some(RedisStore::new(settings, outage == Outage::Safe)?)
        }
    };
    Ok(LeaseSettings { store, outage, routers: global.routers.get() })
}

fn secret(source: &SecretSource) -> anyhow::Result<String> {
    let text = match source {
        SecretSource::File(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the store's password from {}", path.display()))?,
        SecretSource::Env(name) => std::env::var(name)
            .with_context(|| format!("the store's password should be in the variable {name}"))?,
    };
    Ok(text.trim().to_owned())
}

async fn follow(tls: Option<UpstreamTls>) {
    if let Some(tls) = tls {
        tls.follow().await;
    }
}

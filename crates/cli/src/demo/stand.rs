//! A gateway on a thread of its own, as `wicketgate serve --endpoint …` would run it.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use config::{AccessLogTarget, Document};
use gateway::{Gateway, Policy};
use proxy::{Fetcher, Listeners, Options, Phase, Server, listen};
use telemetry::{AccessLog, BuildInfo, Metrics, Target, clock};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

/// How long the gateway may take to find out what its endpoints serve.
const READY_TIMEOUT: Duration = Duration::from_secs(15);
const READY_POLL: Duration = Duration::from_millis(5);

/// A running gateway.
pub(super) struct Stand {
    pub(super) traffic: SocketAddr,
    pub(super) admin: SocketAddr,
    gateway: Arc<Gateway>,
    phase: watch::Sender<Phase>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// Ports that people expect; another one where it is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) traffic: u16,
    pub(super) admin: u16,
}

/// Any that are free.
pub(super) const EPHEMERAL: Ports = Ports { traffic: 0, admin: 0 };
/// Those of `wicketgate serve`.
pub(super) const USUAL: Ports = Ports { traffic: 8080, admin: 9090 };

/// What the thread tells once it listens.
struct Started {
    traffic: SocketAddr,
    admin: SocketAddr,
    gateway: Arc<Gateway>,
}

impl Stand {
    /// Starts a gateway on the loopback and waits until it knows all `endpoints`.
    pub(super) async fn start(
        endpoints: &[String],
        policy: Policy,
        ports: Ports,
    ) -> anyhow::Result<Self> {
        let document = document(endpoints)?;
        let (phase, phase_seen) = watch::channel(Phase::Serving);
        let (told, started) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn(move || serve(&document, policy, ports, phase_seen, told))?;
        let Ok(Started { traffic, admin, gateway }) = started.await else {
            return Err(end_of(thread)
                .err()
                .unwrap_or_else(|| anyhow::anyhow!("the gateway ended")));
        };
        let stand = Self { traffic, admin, gateway, phase, thread };
        stand.ready(endpoints.len()).await?;
        Ok(stand)
    }

    async fn ready(&self, endpoints: usize) -> anyhow::Result<()> {
        let begun = clock::now();
        loop {
            let known: usize =
                self.gateway.catalog().pools.iter().map(|pool| pool.members.len()).sum();
            if known == endpoints && self.gateway.is_ready() {
                return Ok(());
            }
            if clock::now().since(begun) > READY_TIMEOUT {
                anyhow::bail!("the gateway found {known} of {endpoints} simulated servers");
            }
            tokio::time::sleep(READY_POLL).await;
        }
    }

    /// How many requests each endpoint (`host:port`) got so far.
    pub(super) fn picks(&self) -> Vec<(String, u64)> {
        let catalog = self.gateway.catalog();
        let members = catalog.pools.iter().flat_map(|pool| &pool.members);
        members.map(|it| (it.member.authority.clone(), it.gauges.picks.get())).collect()
    }

    /// Ends it, and what is still under way.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.phase.send_replace(Phase::Over);
        end_of(self.thread)
    }
}

fn end_of(thread: JoinHandle<anyhow::Result<()>>) -> anyhow::Result<()> {
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the gateway's thread panicked")))
}

fn document(endpoints: &[String]) -> anyhow::Result<Document> {
    let mut document =
        config::from_flags(endpoints, None, None).map_err(|errors| anyhow::anyhow!("{errors}"))?;
    let spec = &mut document.spec;
    spec.access_log.target = AccessLogTarget::Off;
    // All clients of the demo have the same address.
    spec.limits.connections_per_source_max = 0;
    Ok(document)
}

fn serve(
    document: &Document,
    policy: Policy,
    ports: Ports,
    phase: watch::Receiver<Phase>,
    told: oneshot::Sender<Started>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let listeners =
            Listeners { traffic: bind(ports.traffic)?, tls: None, admin: bind(ports.admin)? };
        let (traffic, admin) = (listeners.traffic.local_addr()?, listeners.admin.local_addr()?);
        let metrics = Metrics::new(BuildInfo { version: env!("CARGO_PKG_VERSION"), revision: "" });
        let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
        let access_log = AccessLog::open(Target::Off, dropped)?;
        let gateway = Gateway::new(document, policy, metrics, access_log);
        // Nobody to tell: the demo is over.
        let _ = told.send(Started { traffic, admin, gateway: gateway.clone() });

        let fetcher = Rc::new(Fetcher::new(None));
        let watching = tokio::task::spawn_local(gateway::watch(gateway.clone(), fetcher));
        let options = Options {
            // One thread moves what the demo sends, and leaves the other core to the simulator.
            workers: 1,
            connections_max: document.spec.limits.connections_max,
            memory_bytes: None,
            endpoint_authorization: None,
            upstream_tls: None,
        };
        Server::new(gateway, options, listeners, phase).run().await?;
        watching.abort();
        Ok(())
    })
}

fn bind(port: u16) -> anyhow::Result<TcpListener> {
    let at = |port| listen(SocketAddr::from(([127, 0, 0, 1], port)));
    at(port).or_else(|_| at(0)).context("cannot listen on the loopback")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_taken_is_replaced_by_another() {
        let taken = bind(0).unwrap().local_addr().unwrap();
        let holder = bind(taken.port()).unwrap();
        let other = bind(holder.local_addr().unwrap().port()).unwrap();
        assert_ne!(holder.local_addr().unwrap(), other.local_addr().unwrap());
    }
}

//! A member's side: reports to every router, every two seconds and at once when it matters.
//!
//! One task makes heartbeats, and one for each router sends them on a connection of its own, so that a router
//! that hangs delays nobody else's. A router that falls behind gets the newest one, not all.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::Membership;
use fleet::Heartbeat;
use gateway::Gateway;
use prost::Message;
use rand::RngExt;
use rustls::pki_types::ServerName;
use telemetry::clock;
use telemetry::metrics::MembershipMetrics;
use telemetry::metrics::labels::Report;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::pulse::Pulse;
use crate::wire::{Acknowledged, Beat};
use crate::{certificates, frame};

/// Looks at what changed: at most five extra heartbeats a second.
const LOOK: Duration = Duration::from_millis(200);
/// Most time for a connection, and for the answer to a report.
const PATIENCE: Duration = Duration::from_secs(2);
/// After a router could not be reached.
const RETRY: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How often names of routers are resolved.
const RESOLVE: Duration = Duration::from_secs(30);
const RESOLVE_FIRST: Duration = Duration::from_secs(1);
/// Bytes of a router's answer.
const ACKNOWLEDGED_MAX: usize = 4096;

/// Why a member cannot report.
#[derive(Debug, thiserror::Error)]
pub enum ReporterError {
    #[error("the certificates of `global.tls` cannot be used")]
    Tls(#[from] tls::TlsError),
}

/// Reports to all routers.
pub struct Reporter {
    gateway: Arc<Gateway>,
    membership: Membership,
    tls: Option<tls::Client>,
    metrics: Arc<MembershipMetrics>,
    newest: watch::Sender<Arc<Sealed>>,
    /// Somebody has nothing to send and wants a fresh one.
    wanted: Notify,
}

/// A heartbeat as it is sent.
#[derive(Debug, Default)]
struct Sealed {
    sequence: u64,
    bytes: Vec<u8>,
}

impl Reporter {
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(gateway: Arc<Gateway>, membership: Membership) -> Result<Arc<Self>, ReporterError> {
        let tls = membership.tls.as_ref().map(certificates::client);
        let tls = tls.map(tls::Client::load).transpose()?;
        let metrics = gateway.metrics.membership();
        let newest = watch::Sender::new(Arc::default());
        Ok(Arc::new(Self { gateway, membership, tls, metrics, newest, wanted: Notify::new() }))
    }

    /// Reports as long as it is polled.
    pub async fn run(self: Arc<Self>) {
        tokio::join!(self.clone().beat(), self.follow());
    }

    /// Makes heartbeats.
    async fn beat(self: Arc<Self>) {
        let mut pulse = Pulse::new(rand::rng().random(), clock::now());
        let mut due = clock::now();
        let mut looks = tokio::time::interval(LOOK.min(self.membership.interval));
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let is_wanted = tokio::select! {
                _ = looks.tick() => false,
                () = self.wanted.notified() => true,
            };
            let now = clock::now();
            let census = self.gateway.census(now);
            let is_draining = self.gateway.is_draining();
            if !is_wanted && now < due && !pulse.has_big_news(&census, is_draining) {
                continue;
            }
            let jitter = rand::rng().random_range(0.9..=1.1);
            due = now + self.membership.interval.mul_f64(jitter);
            let heartbeat = pulse.beat(&census, is_draining, 0, now);
            self.publish(heartbeat);
        }
    }

    fn publish(&self, mut heartbeat: Heartbeat) {
        let sequence = heartbeat.sequence;
        let mut bytes = Beat::new(&self.membership.cluster, &heartbeat).encode_to_vec();
        while bytes.len() > Heartbeat::BYTES_MAX && heartbeat.models.pop().is_some() {
            tracing::warn!(bytes = bytes.len(), "a report is too long: the last model is left out");
            bytes = Beat::new(&self.membership.cluster, &heartbeat).encode_to_vec();
        }
        self.metrics.report_bytes.set(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.newest.send_replace(Arc::new(Sealed { sequence, bytes }));
    }

    /// Keeps one task for each address behind the routers' names.
    async fn follow(self: Arc<Self>) {
        let mut tasks: HashMap<(String, SocketAddr), Aborted> = HashMap::new();
        let mut interval = RESOLVE_FIRST;
        loop {
            for router in &self.membership.routers {
                let Some(found) = addresses(router).await else { continue };
                tasks.retain(|(of, address), _| of != router || found.contains(address));
                for address in found {
                    tasks.entry((router.clone(), address)).or_insert_with(|| {
                        let reporting = self.clone().report_to(router.clone(), address);
                        Aborted(tokio::task::spawn_local(reporting))
                    });
                }
            }
            tokio::time::sleep(interval).await;
            interval = (interval * 2).min(RESOLVE);
        }
    }

    /// Reports to one router.
    async fn report_to(self: Arc<Self>, router: String, address: SocketAddr) {
        let mut pause = RETRY;
        let mut complained = false;
        loop {
            let open = Open::new(&self.metrics);
            let outcome = self.converse(&router, address, &open, &mut complained).await;
            if open.is_open() {
                pause = RETRY;
            }
            drop(open);
            self.metrics.reports.of(Report::Lost).inc();
            if let Err(error) = outcome
                && !std::mem::replace(&mut complained, true)
            {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(router, %address, error, "no reports to a global router");
            }
            let jitter = rand::rng().random_range(0.75..=1.25);
            tokio::time::sleep(pause.mul_f64(jitter)).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }

    /// One connection's life.
    async fn converse(
        &self,
        router: &str,
        address: SocketAddr,
        open: &Open,
        complained: &mut bool,
    ) -> std::io::Result<()> {
        let io = within(TcpStream::connect(address)).await?;
        io.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return self.send_all(io, router, open, complained).await;
        };
        // Looked at for each connection, so that new certificates are used.
        if let Err(error) = tls.reload() {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "new certificates are not usable; the old ones stay");
        }
        let host = router.rsplit_once(':').map_or(router, |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let name = self
            .membership
            .tls
            .as_ref()
            .and_then(|files| files.server_name.as_deref())
            .unwrap_or(host)
            .to_owned();
        let name = ServerName::try_from(name).map_err(std::io::Error::other)?;
        let io = within(TlsConnector::from(tls.config()).connect(name, io)).await?;
        self.send_all(io, router, open, complained).await
    }

    async fn send_all(
        &self,
        mut io: impl AsyncRead + AsyncWrite + Unpin,
        router: &str,
        open: &Open,
        complained: &mut bool,
    ) -> std::io::Result<()> {
        let mut newest = self.newest.subscribe();
        newest.mark_unchanged();
        self.wanted.notify_one();
        loop {
            // Ends only with the reporter.
            newest.changed().await.map_err(std::io::Error::other)?;
            let sealed = newest.borrow_and_update().clone();
            within(frame::write(&mut io, &sealed.bytes)).await?;
            let answer = within(frame::read(&mut io, ACKNOWLEDGED_MAX)).await?;
            let answer = answer.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            let answer = Acknowledged::decode(answer.as_slice()).map_err(std::io::Error::other)?;
            match answer.refused {
                None => {
                    open.taken();
                    if std::mem::take(complained) {
                        tracing::info!(router, "a global router takes reports again");
                    }
                    self.metrics.reports.of(Report::Taken).inc();
                }
                Some(why) => {
                    open.refused();
                    self.metrics.reports.of(Report::Refused).inc();
                    if !std::mem::replace(complained, true) {
                        let sequence = sealed.sequence;
                        tracing::warn!(router, sequence, why, "a global router refuses reports");
                    }
                }
            }
        }
    }
}

/// Counts a router as one that takes reports, until dropped.
struct Open {
    metrics: Arc<MembershipMetrics>,
    is_open: std::cell::Cell<bool>,
}

impl Open {
    fn new(metrics: &Arc<MembershipMetrics>) -> Self {
        Self { metrics: metrics.clone(), is_open: std::cell::Cell::new(false) }
    }

    fn is_open(&self) -> bool {
        self.is_open.get()
    }

    fn taken(&self) {
        if !self.is_open.replace(true) {
            self.metrics.routers.inc();
        }
    }

    fn refused(&self) {
        if self.is_open.replace(false) {
            self.metrics.routers.dec();
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.refused();
    }
}

/// A task that ends when it is dropped.
struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn within<T>(io: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    let timed = tokio::time::timeout(PATIENCE, io).await;
    timed.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}

/// What a name stands for; `None`: that cannot be found out now.
async fn addresses(router: &str) -> Option<BTreeSet<SocketAddr>> {
    match tokio::time::timeout(PATIENCE, lookup_host(router)).await {
        Ok(Ok(found)) => Some(found.collect()),
        Ok(Err(error)) => {
            tracing::debug!(router, error = &error as &dyn std::error::Error, "not resolved");
            None
        }
        Err(_) => None,
    }
}

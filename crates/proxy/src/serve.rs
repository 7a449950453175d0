//! Listeners and the threads behind them.

mod connections;
mod worker;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gateway::Gateway;
use telemetry::clock;
use tls::{ServerFiles, TlsError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::admin::Admin;
use crate::drain::{Drain, Phase};
use crate::h1;
use crate::settings::Settings;
use crate::upstream::UpstreamTls;
use bytes::BytesMut;
use connections::Connections;
use worker::{Accepted, Workers};

/// How the data path is laid out. What a document may change while we run is not here.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that serve traffic; 0: one for each core.
    pub workers: usize,
    /// Most open client connections.
    pub connections_max: u32,
    /// Memory that the process may use, if that is known.
    pub memory_bytes: Option<u64>,
    /// Value of `Authorization` towards endpoints.
    pub endpoint_authorization: Option<String>,
    /// Towards endpoints that are gateways of other clusters.
    pub upstream_tls: Option<UpstreamTls>,
}

/// Where traffic and administration listen, bound.
pub struct Listeners {
    pub traffic: TcpListener,
    pub tls: Option<(TcpListener, ServerFiles)>,
    pub admin: TcpListener,
}

/// What listeners with TLS offer, the best first.
pub const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// A running data path.
pub struct Server {
    gateway: Arc<Gateway>,
    options: Options,
    listeners: Listeners,
    phase: watch::Receiver<Phase>,
}

/// How long a failed accept (no file descriptor left, mostly) holds back the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Binds a listener; may be bound again at once after a restart.
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    TcpListener::from_std(socket.into())
}

impl Server {
    pub fn new(
        gateway: Arc<Gateway>,
        options: Options,
        listeners: Listeners,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self { gateway, options, listeners, phase }
    }

    /// Serves until draining is over. Must run inside a `LocalSet`.
    pub async fn run(self) -> Result<(), TlsError> {
        let Self { gateway, options, listeners, phase } = self;
        let Listeners { traffic, tls, admin } = listeners;
        let certificate = match &tls {
            Some((_, files)) => Some(Arc::new(tls::Server::load(files.clone())?)),
            None => None,
        };
        let workers = Workers::start(&gateway, &options, &phase);
        let connections = Connections::new(options.connections_max);

        let administration = tokio::task::spawn_local(administer(admin, gateway.clone()));
        let mut tasks = vec![tokio::task::spawn_local(accept(
            traffic,
            None,
            gateway.clone(),
            workers.clone(),
            connections.clone(),
            phase.clone(),
        ))];
        if let (Some((listener, _)), Some(certificate)) = (tls, certificate.clone()) {
            tasks.push(tokio::task::spawn_local(accept(
                listener,
                Some(certificate),
                gateway.clone(),
                workers.clone(),
                connections.clone(),
                phase.clone(),
            )));
        }
        let reloading = certificate.map(|certificate| {
            let gateway = gateway.clone();
            tokio::task::spawn_local(async move {
                certificate.follow(|leaf| gateway.show_certificate(leaf)).await;
            })
        });
        for task in tasks {
            // Ends with the phase; a panic inside it was reported where it happened.
            let _ = task.await;
        }
        workers.finish().await;
        if let Some(reloading) = reloading {
            reloading.abort();
        }
        administration.abort();
        Ok(())
    }
}

/// Accepts until accepting is over, and hands each connection to the least busy thread.
async fn accept(
    listener: TcpListener,
    tls: Option<Arc<tls::Server>>,
    gateway: Arc<Gateway>,
    workers: Workers,
    connections: Connections,
    phase: watch::Receiver<Phase>,
) {
    let mut drain = Drain::new(phase);
    let per_source_max = || gateway.spec().limits.connections_per_source_max;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = std::future::poll_fn(|cx| drain.poll_closed(cx)) => return,
        };
        match accepted {
            Ok((io, client)) => {
                gateway.metrics.gateway().connections_accepted.inc();
                let Some(permit) = connections.admit(client.ip(), per_source_max()) else {
                    // Refused fast: closing costs less than any answer.
                    drop(io);
                    continue;
                };
                let _ = io.set_nodelay(true);
                if let Ok(io) = io.into_std() {
                    let tls = tls.as_ref().map(|certificate| certificate.config());
                    workers.give(Accepted { io, client, tls, permit });
                }
            }
            Err(error) => {
                // One connection that failed, or no descriptor left; either way the listener stays.
                tracing::warn!(error = &error as &dyn std::error::Error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves administration. Must run inside a `LocalSet`, on another thread than traffic, so that it
/// answers when traffic is at its limits. Never ends.
pub async fn administer(listener: TcpListener, gateway: Arc<Gateway>) {
    let handler = Rc::new(Admin::new(gateway.clone()));
    let mut beat = tokio::time::interval(gateway::BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = beat.tick() => {
                gateway.sample(clock::now());
                continue;
            }
        };
        let Ok((io, client)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let settings = Rc::new(Settings::of(&gateway.spec()));
        // Not told to drain: probes and people look on until the very end.
        let (_, never) = watch::channel(Phase::Serving);
        let serving =
            serve_admin_connection(io, client, handler.clone(), settings, Drain::new(never));
        tokio::task::spawn_local(serving);
    }
}

async fn serve_admin_connection(
    io: TcpStream,
    client: SocketAddr,
    handler: Rc<Admin>,
    settings: Rc<Settings>,
    drain: Drain,
) {
    h1::serve(io, BytesMut::new(), client, handler, settings, drain).await;
}

//! Listeners and the life of the process's gRPC side.

mod incoming;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tls::{ServerFiles, TlsError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::Server;

use crate::grpc::Services;
use crate::health::Health;
use crate::settings::Picker;
use incoming::Incoming;

/// How far the shutdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    #[default]
    Serving,
    /// Not ready any more; streams are still taken, since proxies need time to notice.
    Draining,
    /// No new connections, and no new streams on the old ones.
    Closed,
    /// The drain time is over: streams end with an error.
    Over,
}

/// Where proxies connect, bound.
pub struct Listeners {
    pub ext_proc: TcpListener,
    /// Health by itself, for probes; it never speaks TLS.
    pub health: TcpListener,
    /// For `ext_proc`.
    pub tls: Option<ServerFiles>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("serving gRPC failed")]
    Transport(#[from] tonic::transport::Error),
}

/// What the listener with TLS offers.
pub const PROTOCOLS: &[&[u8]] = &[b"h2"];

/// How often readiness is looked at.
const READINESS_INTERVAL: Duration = Duration::from_millis(100);
/// Requests that one connection of a proxy may carry at once: a proxy opens few connections, and a
/// limit that it reaches makes requests wait.
const STREAMS_MAX: u32 = 65_536;
/// Windows: one piece of a body in flight for each stream, and many of them on a connection, so that
/// a stream that is not read does not stop the others.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Proxies vanish without a word; streams that nobody reads must not hold credit for ever.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Binds a listener; may be bound again at once after a restart.
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// Serves until draining is over.
pub async fn serve(
    picker: Arc<Picker>,
    listeners: Listeners,
    phase: watch::Receiver<Phase>,
) -> Result<(), ServeError> {
    let Listeners { ext_proc, health: health_listener, tls } = listeners;
    let tls = tls.map(tls::Server::load).transpose()?.map(Arc::new);
    let (ready, is_ready) = watch::channel(picker.gateway.is_ready());
    let health = Health::new(picker.gateway.clone(), is_ready);

    let mut helpers = JoinSet::new();
    helpers.spawn(follow_readiness(picker.clone(), ready));
    helpers.spawn(picker.clone().keep_resolved());
    if let Some(tls) = &tls {
        let (tls, gateway) = (tls.clone(), picker.gateway.clone());
        helpers.spawn(async move { tls.follow(|leaf| gateway.show_certificate(leaf)).await });
    }
    let probes = Server::builder().serve_with_incoming(
        Services::health_only(health.clone()),
        Incoming::new(health_listener, None),
    );
    helpers.spawn(async {
        if let Err(error) = probes.await {
            tracing::error!(error = &error as &dyn std::error::Error, "serving health failed");
        }
    });

    let services = Services::all(health, picker, phase.clone());
    let served = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_keepalive_interval(Some(PING_INTERVAL))
        .http2_keepalive_timeout(Some(PING_INTERVAL))
        .serve_with_incoming_shutdown(
            services,
            Incoming::new(ext_proc, tls),
            reached(phase.clone(), Phase::Closed),
        );
    let over = async {
        reached(phase, Phase::Over).await;
        // Streams see the same and say goodbye; they need a moment to.
        tokio::time::sleep(READINESS_INTERVAL).await;
    };
    tokio::select! {
        served = served => served?,
        () = over => {}
    }
    Ok(())
}

async fn reached(mut phase: watch::Receiver<Phase>, least: Phase) {
    // An error: whoever could give the order is gone, and with it the process.
    let _ = phase.wait_for(|phase| *phase >= least).await;
}

async fn follow_readiness(picker: Arc<Picker>, ready: watch::Sender<bool>) {
    loop {
        let is_ready = picker.gateway.is_ready();
        ready.send_if_modified(|known| std::mem::replace(known, is_ready) != is_ready);
        tokio::time::sleep(READINESS_INTERVAL).await;
    }
}

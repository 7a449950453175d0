//! Threads that serve traffic, each with an event loop of its own.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway::{Certificate, Gateway};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Options;
use super::connections::Permit;
use crate::drain::{Drain, Phase};
use crate::forward::{Certified, Traffic};
use crate::handler::Handler;
use crate::settings::Settings;
use crate::sniff::{Rewound, Spoken, sniff};
use crate::timer::{Timer, deadline_in};
use crate::upstream::Means;
use crate::{h1, h2};

/// Accepted connections that may wait for their thread.
const HANDED_OVER_MAX: usize = 1024;
/// How often idle connections to endpoints are looked through.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// After the drain time: how long streams have to say goodbye.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection on its way to a thread.
pub(super) struct Accepted {
    pub(super) io: std::net::TcpStream,
    pub(super) client: SocketAddr,
    pub(super) tls: Option<Arc<rustls::ServerConfig>>,
    pub(super) permit: Permit,
}

/// The threads.
#[derive(Clone)]
pub(super) struct Workers {
    inboxes: Arc<Mutex<Vec<Inbox>>>,
    threads: Arc<Mutex<Vec<std::thread::JoinHandle<()>>>>,
    phase: watch::Receiver<Phase>,
}

struct Inbox {
    sender: mpsc::Sender<Accepted>,
    open: Arc<AtomicUsize>,
}

impl Workers {
    pub(super) fn start(
        gateway: &Arc<Gateway>,
        options: &Options,
        phase: &watch::Receiver<Phase>,
    ) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if options.workers == 0 { cores } else { options.workers };
        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        for number in 0..count {
            let (sender, inbox) = mpsc::channel(HANDED_OVER_MAX);
            let open = Arc::new(AtomicUsize::new(0));
            let (gateway, options, phase) = (gateway.clone(), options.clone(), phase.clone());
            let counter = open.clone();
            let thread = std::thread::Builder::new()
                .name(format!("traffic-{number}"))
                .spawn(move || run(&gateway, &options, inbox, &counter, phase));
            match thread {
                Ok(thread) => {
                    threads.push(thread);
                    inboxes.push(Inbox { sender, open });
                }
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "a traffic thread did not start"
                    );
                }
            }
        }
        Self {
            inboxes: Arc::new(Mutex::new(inboxes)),
            threads: Arc::new(Mutex::new(threads)),
            phase: phase.clone(),
        }
    }

    /// Hands a connection to the thread with the fewest. Dropped if that one cannot keep up.
    pub(super) fn give(&self, accepted: Accepted) {
        let inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let least = inboxes.iter().min_by_key(|inbox| inbox.open.load(Ordering::Relaxed));
        if let Some(inbox) = least {
            inbox.open.fetch_add(1, Ordering::Relaxed);
            if inbox.sender.try_send(accepted).is_err() {
                inbox.open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until each thread has served its connections to their end, or time is over.
    pub(super) async fn finish(&self) {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let joined = tokio::task::spawn_blocking(move || {
            for thread in threads {
                // A panic was reported where it happened.
                let _ = thread.join();
            }
        });
        let mut drain = Drain::new(self.phase.clone());
        let over = async {
            std::future::poll_fn(|cx| drain.poll_deadline(cx)).await;
            tokio::time::sleep(2 * LAST_WORDS).await;
        };
        tokio::select! {
            _ = joined => {}
            () = over => {}
        }
    }
}

/// One thread's life.
fn run(
    gateway: &Arc<Gateway>,
    options: &Options,
    mut inbox: mpsc::Receiver<Accepted>,
    open: &Arc<AtomicUsize>,
    phase: watch::Receiver<Phase>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a traffic thread has no event loop"
            );
            return;
        }
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let authorization = options.endpoint_authorization.as_deref().map(Rc::from);
        let means =
            Means { tls: options.upstream_tls.clone(), is_far: gateway.clusters().is_some() };
        let traffic = Traffic::new(gateway.clone(), options.memory_bytes, authorization, means);
        let traffic = Rc::new(traffic);
        let sweeping = tokio::task::spawn_local(sweep(traffic.clone()));
        let copying = tokio::task::spawn_local(traffic.clone().send_copies());
        let mut serving = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                accepted = inbox.recv() => {
                    let Some(accepted) = accepted else { break };
                    let closing = Closing { open: open.clone(), gateway: gateway.clone() };
                    closing.gateway.metrics.gateway().connections_open.inc();
                    let connection = serve(accepted, traffic.clone(), Drain::new(phase.clone()));
                    serving.spawn_local(async move {
                        connection.await;
                        drop(closing);
                    });
                }
                Some(_) = serving.join_next() => {}
            }
        }
        let mut drain = Drain::new(phase);
        let over = async {
            std::future::poll_fn(|cx| drain.poll_deadline(cx)).await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            () = async { while serving.join_next().await.is_some() {} } => {}
            () = over => {}
        }
        sweeping.abort();
        copying.abort();
    });
}

/// Counts a connection as closed, however it ends.
struct Closing {
    open: Arc<AtomicUsize>,
    gateway: Arc<Gateway>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.gateway.metrics.gateway().connections_open.dec();
    }
}

async fn sweep(traffic: Rc<Traffic>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        traffic.sweep();
    }
}

/// Serves a connection. The rarer kinds are boxed, so that each plain one does not carry their
/// room along.
async fn serve(accepted: Accepted, traffic: Rc<Traffic>, drain: Drain) {
    let Accepted { io, client, tls, permit } = accepted;
    let Ok(io) = TcpStream::from_std(io) else { return };
    let settings = Rc::new(traffic.settings());
    match tls {
        None => serve_plain(io, client, traffic, settings, drain).await,
        Some(config) => Box::pin(serve_tls(io, config, client, traffic, settings, drain)).await,
    }
    drop(permit);
}

async fn serve_tls(
    io: TcpStream,
    config: Arc<rustls::ServerConfig>,
    client: SocketAddr,
    traffic: Rc<Traffic>,
    settings: Rc<Settings>,
    drain: Drain,
) {
    let handshake =
        tokio::time::timeout(settings.tls_handshake, TlsAcceptor::from(config).accept(io));
    let Ok(Ok(io)) = Box::pin(handshake).await else { return };
    let shown = io.get_ref().1.peer_certificates().and_then(<[_]>::first);
    match shown.map(|shown| Certificate::from_der(shown)) {
        None => serve_agreed(io, client, traffic, settings, drain).await,
        Some(Ok(certificate)) => {
            let certified = Rc::new(Certified { traffic, certificate });
            serve_agreed(io, client, certified, settings, drain).await;
        }
        // It was verified, but says nothing that we can read.
        Some(Err(error)) => tracing::debug!(%client, %error, "a client's certificate"),
    }
}

/// Serves what was agreed on in the handshake.
async fn serve_agreed<H: Handler>(
    io: TlsStream<TcpStream>,
    client: SocketAddr,
    handler: Rc<H>,
    settings: Rc<Settings>,
    drain: Drain,
) {
    if io.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(h2::serve(io, client, handler, settings, drain)).await;
    } else {
        h1::serve(io, bytes::BytesMut::new(), client, handler, settings, drain).await;
    }
}

async fn serve_plain(
    mut io: TcpStream,
    client: SocketAddr,
    traffic: Rc<Traffic>,
    settings: Rc<Settings>,
    drain: Drain,
) {
    let mut timer = Timer::default();
    let spoken = {
        let mut closed = drain.clone();
        tokio::select! {
            spoken = sniff(&mut io, deadline_in(settings.first_request), &mut timer) => spoken,
            // Whoever has said nothing until now is not waited for.
            () = std::future::poll_fn(|cx| closed.poll_closed(cx)) => Spoken::Nothing,
        }
    };
    match spoken {
        Spoken::Nothing => {}
        Spoken::Http1(first) => h1::serve(io, first, client, traffic, settings, drain).await,
        Spoken::Http2(first) => {
            Box::pin(h2::serve(Rewound::new(first, io), client, traffic, settings, drain)).await;
        }
    }
}

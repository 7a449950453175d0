//! A router's side: members report here, each for itself only.

use std::sync::Arc;
use std::time::Duration;

use config::MutualTls;
use fleet::{Heartbeat, MemberId};
use gateway::{Certificate, Clusters, Gateway};
use prost::Message;
use telemetry::clock;
use telemetry::metrics::labels;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::probes::Suspicions;
use crate::wire::{Acknowledged, Beat};
use crate::{certificates, frame};

/// Connections at most: a hundred members, twice, and some that come anew.
const CONNECTIONS_MAX: usize = 512;
const HANDSHAKE: Duration = Duration::from_secs(5);
/// A connection without a report for so long is given up.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a failed accept holds back the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why nobody can report.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    #[error("the certificates of `heartbeats.tls` cannot be used")]
    Tls(#[from] tls::TlsError),
}

/// Where members report.
pub struct Listener {
    gateway: Arc<Gateway>,
    listener: TcpListener,
    tls: Option<tls::Server>,
    suspicions: Suspicions,
}

impl Listener {
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(
        gateway: Arc<Gateway>,
        listener: TcpListener,
        tls: Option<MutualTls>,
        suspicions: Suspicions,
    ) -> Result<Self, ListenerError> {
        let tls = tls.as_ref().map(certificates::server);
        let tls = tls.map(tls::Server::load).transpose()?;
        Ok(Self { gateway, listener, tls, suspicions })
    }

    /// Listens as long as it is polled. Must run inside a `LocalSet`.
    pub async fn run(self) {
        let this = Arc::new(self);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = this.listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((io, from)) => {
                    let this = this.clone();
                    connections.spawn_local(async move {
                        if let Err(error) = this.serve(io).await {
                            tracing::debug!(%from, %error, "a member's connection");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, io: TcpStream) -> std::io::Result<()> {
        io.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return self.hear(io, None).await };
        // Looked at for each connection, so that new certificates are used.
        if let Err(error) = tls.reload() {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "new certificates are not usable; the old ones stay");
        }
        let handshake = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls.config()).accept(io));
        let io = handshake.await.map_err(std::io::Error::other)??;
        let shown = io.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let shown = shown.ok_or_else(|| std::io::Error::other("no certificate"))?;
        let shown = Certificate::from_der(shown).map_err(std::io::Error::other)?;
        self.hear(io, Some(shown)).await
    }

    async fn hear(
        &self,
        mut io: impl AsyncRead + AsyncWrite + Unpin,
        shown: Option<Certificate>,
    ) -> std::io::Result<()> {
        let Some(clusters) = self.gateway.clusters() else { return Ok(()) };
        let metrics = clusters.metrics();
        metrics.heartbeat_connections.inc();
        let mut reporter = None;
        let mut complained = false;
        let ended = loop {
            let reading = tokio::time::timeout(SILENCE, frame::read(&mut io, Heartbeat::BYTES_MAX));
            let message = match reading.await {
                Ok(Ok(Some(message))) => message,
                Ok(Ok(None)) | Err(_) => break Ok(()),
                Ok(Err(error)) => break Err(error),
            };
            let (sequence, taken) = self.take(clusters, &message, shown.as_ref());
            let refused = match taken {
                Ok(member) => {
                    reporter = Some(member);
                    None
                }
                Err(why) => {
                    if !std::mem::replace(&mut complained, true) {
                        tracing::warn!(why, "a member's report is refused");
                    }
                    Some(why)
                }
            };
            let answer = Acknowledged { sequence: Some(sequence), refused };
            if let Err(error) = frame::write(&mut io, &answer.encode_to_vec()).await {
                break Err(error);
            }
        };
        metrics.heartbeat_connections.dec();
        if let Some(member) = reporter {
            // Its process may have ended: find out now, not when it has been silent for long.
            self.suspicions.raise(member);
        }
        ended
    }

    /// Takes one report. `Err`: why not, in words for the member's operator.
    fn take(
        &self,
        clusters: &Clusters,
        message: &[u8],
        shown: Option<&Certificate>,
    ) -> (u64, Result<MemberId, String>) {
        let beat = match Beat::read(message) {
            Ok(beat) => beat,
            Err(error) => return (0, Err(error.to_string())),
        };
        let sequence = beat.sequence.unwrap_or_default();
        (sequence, self.take_beat(clusters, beat, shown))
    }

    fn take_beat(
        &self,
        clusters: &Clusters,
        beat: Beat,
        shown: Option<&Certificate>,
    ) -> Result<MemberId, String> {
        let cluster = beat.cluster.clone();
        let member = clusters.find(&cluster).filter(|_| cluster.len() <= 63).ok_or_else(|| {
            "this router's document has no member of the name that the report gives in `global.cluster`"
                .to_owned()
        })?;
        let identity = clusters.identity(member).unwrap_or_default();
        if let Some(shown) = shown
            && !shown.is(&identity)
        {
            clusters.count_refused(member, labels::Heartbeat::Refused);
            let name = shown.name().unwrap_or("nobody");
            return Err(format!(
                "member `{cluster}` reports with a certificate of `{name}`, this router expects `{identity}`"
            ));
        }
        let heartbeat = beat.heartbeat().map_err(|error| error.to_string())?;
        let taken = clusters.heard(&self.gateway, member, heartbeat, clock::now());
        taken.map(|()| member).map_err(|error| error.to_string())
    }
}

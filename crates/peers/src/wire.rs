//! One UDP socket for the gossip and for what we share, sealed both.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chitchat::transport::{Socket, Transport};
use chitchat::{ChitchatMessage, Deserializable, Serializable};
use telemetry::PeerMetrics;
use telemetry::metrics::labels::{Direction, PeerLoss};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::Key;
use crate::message::Kind;
use crate::seal::{Opener, Origin, Sealer};

/// Largest UDP payload over IPv4; only the gossip of very many peers comes near.
const RECEIVED_BYTES_MAX: usize = 65_507;
/// Messages that wait to be taken; more are dropped.
const INBOX_MAX: usize = 1024;
/// Datagrams from strangers between two lines in the log.
const STRANGERS_PER_LINE: u64 = 10_000;

/// A message of a peer that is not gossip.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) origin: Origin,
    pub(crate) message: Vec<u8>,
}

/// The socket and the keys.
pub(crate) struct Wire {
    socket: UdpSocket,
    sealer: Sealer,
    opener: Mutex<Opener>,
    metrics: Arc<PeerMetrics>,
    inbox: mpsc::Sender<Received>,
    strangers: AtomicU64,
    /// The network in front of this socket is gone.
    #[cfg(test)]
    pub(crate) is_cut: std::sync::atomic::AtomicBool,
}

impl Wire {
    /// * `sender`: drawn at random, once for a process.
    pub(crate) fn new(
        socket: UdpSocket,
        root: &Key,
        sender: u64,
        metrics: Arc<PeerMetrics>,
    ) -> (Arc<Self>, mpsc::Receiver<Received>) {
        let (inbox, received) = mpsc::channel(INBOX_MAX);
        let wire = Self {
            socket,
            sealer: Sealer::new(root, sender),
            opener: Mutex::new(Opener::new(root.clone())),
            metrics,
            inbox,
            strangers: AtomicU64::new(0),
            #[cfg(test)]
            is_cut: std::sync::atomic::AtomicBool::new(false),
        };
        (Arc::new(wire), received)
    }

    /// Sends one message to many, sealed once. Never waits: what the socket cannot take is dropped.
    pub(crate) fn tell<'a>(&self, message: &[u8], to: impl IntoIterator<Item = &'a SocketAddr>) {
        let datagram = self.sealer.seal(message);
        for address in to {
            match self.socket.try_send_to(&datagram, *address) {
                Ok(bytes) => count(&self.metrics, Direction::Sent, bytes),
                Err(_) => self.metrics.losses.of(PeerLoss::QueueFull).inc(),
            }
        }
    }

    /// What a datagram says, unless it is a stranger's or our own.
    fn open(&self, datagram: &mut [u8], from: SocketAddr) -> Option<Received> {
        #[cfg(test)]
        if self.is_cut.load(Ordering::Relaxed) {
            return None;
        }
        let mut opener = self.opener.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((origin, message)) = opener.open(datagram) else {
            drop(opener);
            self.metrics.losses.of(PeerLoss::Unreadable).inc();
            let strangers = self.strangers.fetch_add(1, Ordering::Relaxed);
            if strangers.is_multiple_of(STRANGERS_PER_LINE) {
                tracing::warn!(%from, "datagram that is no peer's: another clusterId, another key or another version");
            }
            return None;
        };
        (origin.sender != self.sealer.sender())
            .then(|| Received { origin, message: message.to_vec() })
    }
}

/// Lets chitchat speak through a [`Wire`].
pub(crate) struct Gossip(pub(crate) Arc<Wire>);

struct GossipSocket {
    wire: Arc<Wire>,
    buffer: Vec<u8>,
}

#[async_trait::async_trait]
impl Transport for Gossip {
    async fn open(&self, _: SocketAddr) -> anyhow::Result<Box<dyn Socket>> {
        let wire = Arc::clone(&self.0);
        Ok(Box::new(GossipSocket { wire, buffer: vec![0; RECEIVED_BYTES_MAX] }))
    }
}

#[async_trait::async_trait]
impl Socket for GossipSocket {
    async fn send(&mut self, to: SocketAddr, gossip: ChitchatMessage) -> anyhow::Result<()> {
        let mut message = vec![Kind::Gossip.byte()];
        gossip.serialize(&mut message);
        self.wire.tell(&message, [&to]);
        Ok(())
    }

    /// Hands everything that is not gossip to the inbox. Nothing is lost when the future is dropped.
    async fn recv(&mut self) -> anyhow::Result<(SocketAddr, ChitchatMessage)> {
        loop {
            let (bytes, from) = match self.wire.socket.recv_from(&mut self.buffer).await {
                Ok(received) => received,
                // An earlier datagram found nobody; this says nothing about the socket.
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "peers' socket");
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            count(&self.wire.metrics, Direction::Received, bytes);
            let Some(received) = self.wire.open(&mut self.buffer[..bytes], from) else { continue };
            match received.message.split_first() {
                Some((kind, mut rest)) if *kind == Kind::Gossip.byte() => {
                    match ChitchatMessage::deserialize(&mut rest) {
                        Ok(gossip) => return Ok((from, gossip)),
                        Err(_) => self.wire.metrics.losses.of(PeerLoss::Malformed).inc(),
                    }
                }
                _ => {
                    if self.wire.inbox.try_send(received).is_err() {
                        self.wire.metrics.losses.of(PeerLoss::QueueFull).inc();
                    }
                }
            }
        }
    }
}

fn count(metrics: &PeerMetrics, direction: Direction, bytes: usize) {
    metrics.datagrams.of(direction).inc();
    metrics.bytes.of(direction).add(bytes as u64);
}

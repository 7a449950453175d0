//! Carries what is shared, and knows who is there.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use chitchat::{
    ChitchatConfig, ChitchatHandle, ChitchatId, FailureDetectorConfig, NodeState, spawn_chitchat,
};
use gateway::Gateway;
use rand::RngExt;
use telemetry::{PeerMetrics, clock};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::seeds;
use crate::settings::Settings;
use crate::sharing::Sharing;
use crate::wire::{Gossip, Received, Wire};

/// Between two rounds of gossip, each with up to three peers.
const GOSSIP_INTERVAL: Duration = Duration::from_millis(250);
/// A dead peer is remembered, and now and then called, for so long.
const DEAD_REMEMBERED: Duration = Duration::from_secs(600);
/// Longest time to find out the own address at the start.
const OWN_ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);
/// Belongs to nobody (RFC 5737). Nothing is sent there; the route tells our own address.
const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 9);

/// Why peers cannot be reached at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot listen for peers on {address} (UDP)")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot start the gossip: {0}")]
    Gossip(String),
}

/// A gateway's connection to its peers. Shares while [`Peers::run`] runs.
pub struct Peers {
    wire: Arc<Wire>,
    inbox: mpsc::Receiver<Received>,
    sharing: Sharing,
    metrics: Arc<PeerMetrics>,
    gossip: ChitchatHandle,
    advertised: SocketAddr,
    flush_interval: Duration,
    seeds: Vec<String>,
    members_changed: watch::Receiver<u64>,
}

impl Peers {
    /// Begins to listen and to gossip. Before traffic: from now on the gateway hashes prompts as its
    /// peers do.
    ///
    /// # Errors
    /// The address is not to be had. That no peer answers is no error.
    pub async fn open(settings: &Settings, gateway: Arc<Gateway>) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Listen { address: settings.listen, source };
        let socket = UdpSocket::bind(settings.listen).await.map_err(failed)?;
        let local = socket.local_addr().map_err(failed)?;
        let advertised = advertised(settings, local).await;
        let metrics = Arc::clone(&gateway.metrics.gateway().peers);
        let sender = rand::rng().random();
        let (wire, inbox) = Wire::new(socket, &settings.key, sender, Arc::clone(&metrics));
        let members_changed = gateway.members_changed();
        let sharing = Sharing::new(gateway, settings);
        let config = gossip_config(sender, local, advertised);
        let gossip = spawn_chitchat(config, Vec::new(), &Gossip(Arc::clone(&wire))).await;
        let gossip = gossip.map_err(|error| OpenError::Gossip(format!("{error:#}")))?;
        let flush_interval = settings.flush_interval;
        Ok(Self {
            wire,
            inbox,
            sharing,
            metrics,
            gossip,
            advertised,
            flush_interval,
            seeds: settings.seeds.clone(),
            members_changed,
        })
    }

    /// Where peers reach this gateway.
    pub fn advertised(&self) -> SocketAddr {
        self.advertised
    }

    /// Shares until `stop`, then says goodbye.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut flush = tokio::time::interval(self.flush_interval);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let live = self.gossip.with_chitchat(|chitchat| chitchat.live_nodes_watcher()).await;
        let mut company = Company::new(live, self.advertised);
        let (found, mut found_seeds) = mpsc::channel(1);
        let resolving = tokio::spawn(seeds::resolve(self.seeds.clone(), found));
        loop {
            tokio::select! {
                _ = flush.tick() => {
                    if company.look() {
                        self.sharing.peer_came();
                    }
                    let live = company.addresses.len();
                    self.metrics.live.set(i64::try_from(live).unwrap_or(i64::MAX));
                    self.flush(&company.addresses);
                }
                received = self.inbox.recv() => {
                    let Some(Received { origin, message }) = received else { break };
                    let now = clock::now();
                    self.sharing.receive(origin.sender, origin.counter, &message, now);
                }
                Some(addresses) = found_seeds.recv() => self.greet(&addresses, &company.addresses),
                Ok(()) = self.members_changed.changed() => self.sharing.follow_members(),
                () = &mut stop => break,
            }
        }
        resolving.abort();
        self.wire.tell(&Sharing::farewell(), &company.addresses);
        // It has ended already if this fails.
        let _ = self.gossip.shutdown().await;
    }

    /// Gossips with seeds that are no known peers yet, so that they become some.
    fn greet(&self, seeds: &BTreeSet<SocketAddr>, known: &BTreeSet<SocketAddr>) {
        for seed in seeds.difference(known).filter(|seed| **seed != self.advertised) {
            if let Err(error) = self.gossip.gossip(*seed) {
                tracing::warn!(%seed, "the gossip has ended: {error:#}");
            }
        }
    }

    fn flush(&mut self, to: &BTreeSet<SocketAddr>) {
        let now = clock::now();
        self.sharing.expire(now);
        if to.is_empty() {
            self.sharing.flush_to_nobody(now);
            return;
        }
        let mut messages = Vec::new();
        self.sharing.flush(now, &mut messages);
        for message in &messages {
            self.wire.tell(message, to);
        }
    }
}

/// The peers that are alive.
struct Company {
    live: watch::Receiver<BTreeMap<ChitchatId, NodeState>>,
    own: SocketAddr,
    known: BTreeSet<ChitchatId>,
    addresses: BTreeSet<SocketAddr>,
}

impl Company {
    fn new(live: watch::Receiver<BTreeMap<ChitchatId, NodeState>>, own: SocketAddr) -> Self {
        Self { live, own, known: BTreeSet::new(), addresses: BTreeSet::new() }
    }

    /// Looks who is there; whether somebody came.
    fn look(&mut self) -> bool {
        let live = self.live.borrow_and_update();
        let others = live.keys().filter(|id| id.gossip_advertise_addr != self.own);
        let now: BTreeSet<_> = others.cloned().collect();
        drop(live);
        let came: Vec<_> = now.difference(&self.known).map(|id| id.gossip_advertise_addr).collect();
        let left: Vec<_> = self.known.difference(&now).map(|id| id.gossip_advertise_addr).collect();
        for address in &came {
            tracing::info!(peer = %address, "peer is there");
        }
        for address in &left {
            tracing::info!(peer = %address, "peer is gone");
        }
        self.addresses = now.iter().map(|id| id.gossip_advertise_addr).collect();
        self.known = now;
        !came.is_empty()
    }
}

fn gossip_config(sender: u64, local: SocketAddr, advertised: SocketAddr) -> ChitchatConfig {
    let started = clock::unix_seconds(clock::wall()) * 1000.0;
    ChitchatConfig {
        chitchat_id: ChitchatId::new(format!("{sender:016x}"), started as u64, advertised),
        // Deployments are kept apart by the key, which is made from the name.
        cluster_id: String::new(),
        gossip_interval: GOSSIP_INTERVAL,
        listen_addr: local,
        // See `seeds`: chitchat itself would resolve them once a minute, and wait for it at the start.
        seed_nodes: Vec::new(),
        failure_detector_config: FailureDetectorConfig {
            initial_interval: 2 * GOSSIP_INTERVAL,
            dead_node_grace_period: DEAD_REMEMBERED,
            ..FailureDetectorConfig::default()
        },
        marked_for_deletion_grace_period: DEAD_REMEMBERED,
        catchup_callback: None,
        extra_liveness_predicate: None,
    }
}

/// Where peers reach us.
async fn advertised(settings: &Settings, local: SocketAddr) -> SocketAddr {
    if let Some(mut address) = settings.advertise {
        if address.port() == 0 {
            address.set_port(local.port());
        }
        return address;
    }
    if !local.ip().is_unspecified() {
        return local;
    }
    let by_seeds = async {
        for seed in &settings.seeds {
            let addresses = seeds::addresses_of(seed).await;
            if let Some(ip) = addresses.into_iter().find_map(source_of_route) {
                return Some(ip);
            }
        }
        None
    };
    if let Ok(Some(ip)) = tokio::time::timeout(OWN_ADDRESS_TIMEOUT, by_seeds).await {
        return SocketAddr::new(ip, local.port());
    }
    let ip = source_of_route(ELSEWHERE).unwrap_or(local.ip());
    SocketAddr::new(ip, local.port())
}

/// Our address as somebody there would see it. Sends nothing.
fn source_of_route(to: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = std::net::UdpSocket::bind(any).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

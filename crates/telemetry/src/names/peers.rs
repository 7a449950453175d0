//! What gateways tell each other.

use super::{Kind, Metric, Unit, metric};

pub static PEERS: Metric = metric(
    "wicketgate_peers",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Other gateways that are alive and share load and prefixes with this one.",
);

pub static PEER_DATAGRAMS: Metric = metric(
    "wicketgate_peer_datagrams_total",
    Kind::Counter,
    Unit::Count,
    &["direction"],
    "Datagrams to and from peers, gossip included.",
);

pub static PEER_BYTES: Metric = metric(
    "wicketgate_peer_bytes_total",
    Kind::Counter,
    Unit::Bytes,
    &["direction"],
    "UDP payload to and from peers.",
);

pub static PEER_PREFIX_BLOCKS: Metric = metric(
    "wicketgate_peer_prefix_blocks_total",
    Kind::Counter,
    Unit::Count,
    &["direction"],
    "Prefix blocks told to peers (once, however many there are) and learned from them.",
);

pub static PEER_LOSSES: Metric = metric(
    "wicketgate_peer_losses_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Datagrams and prompts between peers that came to nothing.",
);

//! How a gateway finds its peers and how often it speaks.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Key;

/// Settings of [`Peers`](crate::Peers).
#[derive(Clone, Debug)]
pub struct Settings {
    /// UDP.
    pub listen: SocketAddr,
    /// Where peers reach this one; `None`: the address that `listen` names, or if that is `0.0.0.0`
    /// the one from which the seeds are reached. Port 0 stands for the port listened on.
    pub advertise: Option<SocketAddr>,
    /// `HOST:PORT` of some peers; a name stands for all its addresses and is resolved again at least
    /// every half minute. It may name this gateway too.
    pub seeds: Vec<String>,
    pub key: Key,
    /// Time between two reports. Default 20 ms.
    pub flush_interval: Duration,
    /// A peer that is silent for so long counts for nothing. Default 1 s.
    pub silence: Duration,
}

impl Settings {
    pub fn new(listen: SocketAddr, key: Key) -> Self {
        Self {
            listen,
            advertise: None,
            seeds: Vec::new(),
            key,
            flush_interval: Duration::from_millis(20),
            silence: Duration::from_secs(1),
        }
    }
}

//! Other gateways in front of the same endpoints.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How this gateway finds its peers and shares with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// UDP. Default `0.0.0.0:9004`.
    pub listen: SocketAddr,
    /// `None`: found out.
    pub advertise: Option<SocketAddr>,
    /// `HOST:PORT`. May be empty: then peers must name this gateway.
    pub seeds: Vec<String>,
    /// Default `wicketgate`.
    pub cluster_id: String,
    pub key_file: Option<PathBuf>,
    /// 5 ms to 1 s. Default 20 ms.
    pub flush_interval: Duration,
    /// 1 s to 60 s, not below three flush intervals. Default 1 s.
    pub silence: Duration,
}

impl Default for Peers {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9004)),
            advertise: None,
            seeds: Vec::new(),
            cluster_id: "wicketgate".to_owned(),
            key_file: None,
            flush_interval: Duration::from_millis(20),
            silence: Duration::from_secs(1),
        }
    }
}

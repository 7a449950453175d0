//! A gateway as a member of the global tier.

use std::path::PathBuf;
use std::time::Duration;

/// How this cluster's gateway reports to the global routers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// What the routers call this cluster: `members[].name` of their document.
    pub cluster: String,
    /// `HOST:PORT` of each router. A name stands for all its addresses.
    pub routers: Vec<String>,
    /// `None`: reports are not encrypted, which only the loopback allows.
    pub tls: Option<MutualTls>,
    /// 100 ms to 10 s. Default 2 s.
    pub interval: Duration,
}

/// A certificate of our own, and who may have signed the other side's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutualTls {
    /// PEM; read again when it changes.
    pub ca_file: PathBuf,
    /// PEM, leaf first; read again when it changes.
    pub cert_file: PathBuf,
    /// PEM.
    pub key_file: PathBuf,
    /// Name that the other side's certificate must have, if not the host's.
    pub server_name: Option<String>,
}

impl Membership {
    /// The usual time between two reports.
    pub const INTERVAL: Duration = Duration::from_secs(2);
}

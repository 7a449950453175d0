//! A server that answers requests, and how to reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{EndpointId, Slot};

/// One address that serves a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub id: EndpointId,
    pub slot: Slot,
    pub address: EndpointAddress,
    pub labels: BTreeMap<String, String>,
}

/// `http://HOST:PORT` with an optional path prefix, checked. Compared as written, so `localhost`
/// and `127.0.0.1` are two addresses.
///
/// Model servers are inside the trusted network and reached without TLS; another cluster's gateway may
/// be `https` ([`Self::of_cluster`]).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointAddress {
    host: Arc<str>,
    port: u16,
    path_prefix: Arc<str>,
    is_tls: bool,
}

/// Why a text is no endpoint address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` has no scheme: write http://HOST:PORT")]
    NoScheme(String),
    #[error("`{0}` is https: endpoints are reached over plain http inside the trusted network")]
    Https(String),
    #[error("`{0}` has no valid host")]
    Host(String),
    #[error("`{0}` has no valid port between 1 and 65535")]
    Port(String),
    #[error("`{0}` has a query, a fragment or a user name, which an endpoint cannot have")]
    Extra(String),
}

impl EndpointAddress {
    /// The address of another cluster's gateway: `http://HOST:PORT` or `https://HOST:PORT`.
    ///
    /// # Errors
    /// The text is no such address.
    pub fn of_cluster(text: &str) -> Result<Self, AddressError> {
        match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => parse(text, rest, true),
            _ => text.parse(),
        }
    }

    /// Whether it is reached over TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Host without brackets: a name, an IPv4 or an IPv6 address.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Empty, or a path that begins with `/` and does not end with one.
    pub fn path_prefix(&self) -> &str {
        &self.path_prefix
    }

    /// `host:port` as it stands in a `Host` header; IPv6 in brackets.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for EndpointAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => parse(text, rest, false),
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => {
                Err(AddressError::Https(text.to_owned()))
            }
            _ => Err(AddressError::NoScheme(text.to_owned())),
        }
    }
}

/// What follows the scheme of `text`.
fn parse(text: &str, rest: &str, is_tls: bool) -> Result<EndpointAddress, AddressError> {
    let shown = || text.to_owned();
    if rest.contains(['?', '#', '@']) {
        return Err(AddressError::Extra(shown()));
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, after) = v6.split_once(']').ok_or_else(|| AddressError::Host(shown()))?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| AddressError::Host(shown()))?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let host_is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(host_is_plain) {
        return Err(AddressError::Host(shown()));
    }
    let port = match port {
        None if is_tls => 443,
        None => 80,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| AddressError::Port(shown()))?,
    };
    let path_prefix = path.trim_end_matches('/').into();
    Ok(EndpointAddress { host: host.into(), port, path_prefix, is_tls })
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path_prefix)
    }
}

impl fmt::Debug for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which model server an endpoint runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    Vllm,
    Sglang,
    Tgi,
    /// `trtllm-serve`, or Triton with the TensorRT-LLM backend.
    TensorRtLlm,
    LlamaCpp,
    /// Not known (yet): served on what the gateway accounts itself.
    #[default]
    Unknown,
}

impl EngineKind {
    /// All of them; [`Self::index`] is the position.
    pub const ALL: [Self; 6] =
        [Self::Vllm, Self::Sglang, Self::Tgi, Self::TensorRtLlm, Self::LlamaCpp, Self::Unknown];

    /// Position in [`Self::ALL`], which is in the order of declaration.
    pub fn index(self) -> usize {
        self as usize
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Tgi => "tgi",
            Self::TensorRtLlm => "trtllm",
            Self::LlamaCpp => "llamacpp",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressError, EndpointAddress};

    fn parse(text: &str) -> Result<EndpointAddress, AddressError> {
        text.parse()
    }

    #[test]
    fn an_address_reads_back_as_it_was_written() {
        for text in ["http://127.0.0.1:8000", "http://[::1]:8000", "http://gpu-1.lan:80/vllm"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_missing_port_is_80_and_a_trailing_slash_means_nothing() {
        assert_eq!(parse("http://gpu/").unwrap().to_string(), "http://gpu:80");
    }

    #[test]
    fn only_another_cluster_is_reached_over_tls() {
        let address = EndpointAddress::of_cluster("https://gw.west/v").unwrap();
        assert_eq!(
            (address.to_string().as_str(), address.is_tls()),
            ("https://gw.west:443/v", true)
        );
        let address = EndpointAddress::of_cluster("http://gw.west").unwrap();
        assert_eq!((address.port(), address.is_tls()), (80, false));
        assert_ne!(parse("http://a:443"), EndpointAddress::of_cluster("https://a:443"));
        for text in ["gw:8000", "https://", "https://gw:0", "ftp://gw", "https://u@gw"] {
            assert!(EndpointAddress::of_cluster(text).is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn what_is_no_plain_http_address_is_refused() {
        for text in [
            "gpu:8000",
            "https://gpu",
            "http://",
            "http://gpu:0",
            "http://gpu:99999",
            "http://[::1",
            "http://user@gpu",
            "http://gpu/?x=1",
            "http://gp u",
            "http://[gpu]:80",
            "ftp://gpu",
        ] {
            assert!(parse(text).is_err(), "{text} was accepted");
        }
    }
}

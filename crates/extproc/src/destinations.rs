//! Endpoints as a proxy knows them: `ip:port`, because proxies do not look names up.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use gateway::{Catalog, Gateway, Subset};
use types::{EndpointAddress, EndpointId};

/// How often endpoints with a new name are looked for.
const NEW_NAMES_INTERVAL: Duration = Duration::from_secs(1);
/// How often known names are looked up again, in intervals of new ones.
const KNOWN_NAMES_ROUNDS: u32 = 30;

/// Names and addresses of endpoints, in both directions.
#[derive(Debug, Default)]
pub struct Destinations {
    names: ArcSwap<Names>,
    book: ArcSwapOption<Book>,
}

/// Addresses of hosts that are names.
type Names = HashMap<Box<str>, IpAddr>;

/// Who is where, as long as catalog and names stay as they are.
#[derive(Debug)]
struct Book {
    catalog: Arc<Catalog>,
    names: Arc<Names>,
    /// By address and port; most endpoints are alone there.
    endpoints: HashMap<IpAddr, Vec<(u16, EndpointId)>>,
}

impl Destinations {
    /// Where the proxy finds an endpoint; `None` while its name is not resolved.
    pub fn of(&self, address: &EndpointAddress) -> Option<SocketAddr> {
        resolved(&self.names.load(), address)
    }

    /// The endpoint at `ip:port`.
    pub fn find(&self, gateway: &Gateway, text: &str) -> Option<EndpointId> {
        let (ip, port) = parse(text)?;
        let book = self.book(gateway);
        let (_, id) = book.endpoints.get(&ip)?.iter().find(|(known, _)| Some(*known) == port)?;
        Some(*id)
    }

    /// The endpoints that a proxy names: `ip:port`, or `ip` for all ports of it.
    pub(crate) fn subset(&self, gateway: &Gateway, texts: &[String]) -> Subset {
        let book = self.book(gateway);
        let mut ids = Vec::with_capacity(texts.len());
        for (ip, port) in texts.iter().filter_map(|text| parse(text)) {
            let there = book.endpoints.get(&ip).map_or(&[][..], Vec::as_slice);
            let named = there.iter().filter(|(known, _)| port.is_none_or(|port| port == *known));
            ids.extend(named.map(|(_, id)| *id));
        }
        ids.into_iter().collect()
    }

    /// The book in force. Made anew when the catalog or a name has changed, which is seldom.
    fn book(&self, gateway: &Gateway) -> Arc<Book> {
        let catalog = gateway.catalog();
        let names = self.names.load();
        if let Some(book) = self.book.load_full()
            && Arc::ptr_eq(&book.catalog, &catalog)
            && Arc::ptr_eq(&book.names, &names)
        {
            return book;
        }
        let mut endpoints: HashMap<IpAddr, Vec<(u16, EndpointId)>> = HashMap::new();
        for member in catalog.pools.iter().flat_map(|pool| &pool.members) {
            let endpoint = &member.member.endpoint;
            if let Some(address) = resolved(&names, &endpoint.address) {
                let there = endpoints.entry(address.ip()).or_default();
                if !there.contains(&(address.port(), endpoint.id)) {
                    there.push((address.port(), endpoint.id));
                }
            }
        }
        let (catalog, names) = (Arc::clone(&catalog), Arc::clone(&names));
        let book = Arc::new(Book { catalog, names, endpoints });
        self.book.store(Some(book.clone()));
        book
    }

    pub(crate) async fn keep_resolved(&self, gateway: &Gateway) {
        for round in 0_u32.. {
            self.resolve(gateway, round % KNOWN_NAMES_ROUNDS == 0).await;
            tokio::time::sleep(NEW_NAMES_INTERVAL).await;
        }
    }

    async fn resolve(&self, gateway: &Gateway, known_too: bool) {
        let before = self.names.load_full();
        let mut after = HashMap::new();
        for member in gateway.members() {
            let address = &member.endpoint.address;
            let host = address.host();
            if host.parse::<IpAddr>().is_ok() || after.contains_key(host) {
                continue;
            }
            let old = before.get(host).copied();
            let ip = match old {
                Some(ip) if !known_too => Some(ip),
                _ => look_up(host, address.port(), old).await,
            };
            if let Some(ip) = ip {
                after.insert(host.into(), ip);
            }
        }
        if after != *before {
            self.names.store(after.into());
        }
    }
}

fn resolved(names: &Names, address: &EndpointAddress) -> Option<SocketAddr> {
    let ip = match address.host().parse() {
        Ok(ip) => ip,
        Err(_) => *names.get(address.host())?,
    };
    Some(SocketAddr::new(ip, address.port()))
}

/// One address of a host, the old one as long as it is among them, and also when the answer fails.
async fn look_up(host: &str, port: u16, old: Option<IpAddr>) -> Option<IpAddr> {
    match tokio::net::lookup_host((host, port)).await {
        Ok(found) => {
            let ips: Vec<_> = found.map(|address| address.ip()).collect();
            old.filter(|old| ips.contains(old)).or_else(|| {
                // Most engines listen on IPv4.
                ips.iter().copied().find(IpAddr::is_ipv4).or(ips.first().copied())
            })
        }
        Err(error) => {
            if old.is_none() {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(
                    error,
                    host,
                    "an endpoint's name cannot be resolved; it gets no requests"
                );
            }
            old
        }
    }
}

/// `ip:port`, `[ip]:port`, or an address without a port.
fn parse(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return (address.port() != 0).then_some((address.ip(), Some(address.port())));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().map(|ip| (ip, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{document_of, gateway_of};

    #[test]
    fn a_subset_tells_ports_of_one_address_apart() {
        let gateway =
            gateway_of(&["http://10.0.0.1:8000", "http://10.0.0.1:8001", "http://[::1]:8000"]);
        let destinations = Destinations::default();
        let ids = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
            format!("{:?}", destinations.subset(&gateway, &texts))
        };
        let id = |at: usize| gateway.members()[at].endpoint.id;
        let of = |ids: &[EndpointId]| format!("{:?}", ids.iter().copied().collect::<Subset>());
        assert_eq!(ids(&["10.0.0.1:8001"]), of(&[id(1)]));
        assert_eq!(ids(&["10.0.0.1"]), of(&[id(0), id(1)]));
        assert_eq!(ids(&["[::1]:8000"]), of(&[id(2)]));
        assert_eq!(ids(&["::1"]), of(&[id(2)]));
        for nothing in ["", "10.0.0.9:8000", "10.0.0.1:0", "gpu:8000", "10.0.0.1:99999", "]["] {
            assert_eq!(ids(&[nothing]), of(&[]), "{nothing}");
        }
    }

    #[test]
    fn an_endpoint_that_comes_later_is_found() {
        let gateway = gateway_of(&["http://10.0.0.1:8000"]);
        let destinations = Destinations::default();
        assert_eq!(destinations.find(&gateway, "10.0.0.2:8000"), None);
        gateway.apply(&document_of(&["http://10.0.0.1:8000", "http://10.0.0.2:8000"]));
        let second = gateway.members()[1].endpoint.id;
        assert_eq!(destinations.find(&gateway, "10.0.0.2:8000"), Some(second));
    }

    #[tokio::test]
    async fn a_name_gets_an_address_once_it_is_resolved() {
        let gateway = gateway_of(&["http://localhost:8000"]);
        let destinations = Destinations::default();
        let address = gateway.members()[0].endpoint.address.clone();
        assert_eq!(destinations.of(&address), None);
        destinations.resolve(&gateway, true).await;
        let resolved = destinations.of(&address).unwrap();
        assert!(resolved.ip().is_loopback());
        assert_eq!(
            destinations.find(&gateway, &resolved.to_string()),
            Some(gateway.members()[0].endpoint.id)
        );
    }
}

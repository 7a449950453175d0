//! How many connections are open, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The count of open connections.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    open: AtomicU32,
    open_max: u32,
    by_source: Mutex<HashMap<IpAddr, u32>>,
}

/// One open connection; counted until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    counts: Arc<Counts>,
    source: Option<IpAddr>,
}

impl Connections {
    pub(super) fn new(open_max: u32) -> Self {
        Self(Arc::new(Counts { open: AtomicU32::new(0), open_max, by_source: Mutex::default() }))
    }

    /// Lets one more connection in, if there is room.
    ///
    /// * `per_source_max`: most from one address; 0 is no limit. Private addresses have none: a
    ///   load balancer or an ingress stands behind one, with all its clients.
    pub(super) fn admit(&self, source: IpAddr, per_source_max: u32) -> Option<Permit> {
        let counts = &self.0;
        if counts.open.fetch_add(1, Ordering::Relaxed) >= counts.open_max {
            counts.open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut permit = Permit { counts: counts.clone(), source: None };
        if per_source_max > 0 && !is_private(source) {
            let mut by_source = counts.by_source.lock().unwrap_or_else(PoisonError::into_inner);
            let open = by_source.entry(source).or_insert(0);
            if *open >= per_source_max {
                return None;
            }
            *open += 1;
            permit.source = Some(source);
        }
        Some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(source) = self.source {
            let mut by_source =
                self.counts.by_source.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(open) = by_source.get_mut(&source) {
                *open -= 1;
                if *open == 0 {
                    by_source.remove(&source);
                }
            }
        }
    }
}

fn is_private(source: IpAddr) -> bool {
    match source.to_canonical() {
        IpAddr::V4(source) => source.is_loopback() || source.is_private() || source.is_link_local(),
        IpAddr::V6(source) => {
            source.is_loopback() || source.is_unique_local() || source.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 1));
    const PRIVATE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[test]
    fn connections_beyond_the_limit_are_refused_until_one_closes() {
        let connections = Connections::new(2);
        let first = connections.admit(PRIVATE, 0);
        let second = connections.admit(PRIVATE, 0);
        assert!(first.is_some() && second.is_some());
        assert!(connections.admit(PRIVATE, 0).is_none());
        drop(first);
        assert!(connections.admit(PRIVATE, 0).is_some());
    }

    #[test]
    fn one_public_address_cannot_take_all_connections_but_a_private_one_can() {
        let connections = Connections::new(100);
        let held: Vec<_> = (0..10).map(|_| connections.admit(PUBLIC, 3)).collect();
        assert_eq!(held.iter().flatten().count(), 3);
        let behind: Vec<_> = (0..10).map(|_| connections.admit(PRIVATE, 3)).collect();
        assert_eq!(behind.iter().flatten().count(), 10);
        drop(held);
        assert!(connections.admit(PUBLIC, 3).is_some());
        assert_eq!(connections.0.by_source.lock().unwrap().len(), 0, "nothing is left behind");
    }
}

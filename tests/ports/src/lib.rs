//! Addresses on the loopback for servers that tests and benchmarks start and that must be told theirs.
//!
//! A server that can say where it listens is better given port 0. For the others a port is chosen below
//! the range from which connections get their own ports: one from inside it may be taken by any
//! connection of any process between being found free and being bound.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Linux gives connections 32768 and up.
const FIRST: u32 = 11_000;
const COUNT: u32 = 20_000;

/// An address that was free a moment ago, for TCP and for UDP; none comes twice from one process.
pub fn free_address() -> io::Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, consecutive_ports(1)?)))
}

/// As many of them as are asked for.
pub fn free_addresses<const N: usize>() -> io::Result<[SocketAddr; N]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    for address in &mut addresses {
        *address = free_address()?;
    }
    Ok(addresses)
}

/// The first of `count` ports in a row that were free a moment ago.
pub fn consecutive_ports(count: u16) -> io::Result<u16> {
    /// How many ports this process has gone through. Processes begin far from each other.
    static GONE_THROUGH: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        let step = GONE_THROUGH.fetch_add(u32::from(count), Ordering::Relaxed);
        let from = std::process::id().wrapping_mul(97).wrapping_add(step) % COUNT;
        let first = u16::try_from(FIRST + from).map_err(io::Error::other)?;
        if (first..first.saturating_add(count)).all(is_free) {
            return Ok(first);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no {count} free ports in a row")))
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_a_row_can_all_be_bound() {
        let first = consecutive_ports(4).unwrap();
        for port in first..first + 4 {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }

    #[test]
    fn no_connection_gets_such_a_port_as_its_own() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();
        assert!(u32::from(client.local_addr().unwrap().port()) >= FIRST + COUNT);
        assert!(u32::from(free_address().unwrap().port()) < FIRST + COUNT);
    }

    #[test]
    fn no_address_comes_twice() {
        let [first, second] = free_addresses().unwrap();
        assert_ne!(first, second);
    }
}

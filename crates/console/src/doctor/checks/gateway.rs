//! The gateway as a whole: whether it serves, and whether only those do who should.

use std::net::SocketAddr;

use crate::doctor::catalog::{self, Finding};
use crate::doctor::facts::Facts;

pub(in crate::doctor) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    let listen = &facts.settings.listen;
    if is_beyond_loopback(listen) && !facts.settings.auth {
        let seen = format!("it listens at {listen} and serves requests without credentials");
        findings.push(Finding::new(&catalog::TRAFFIC_OPEN, "spec.listener", seen));
    }
    let Some(gateway) = &facts.gateway else { return };
    if !gateway.is_ready {
        let seen = format!("/readyz says: {}", gateway.readiness);
        findings.push(Finding::new(&catalog::GATEWAY_NOT_READY, &gateway.admin, seen));
    }
    if !gateway.tells_settings {
        let seen = "/debug/settings answers 404";
        findings.push(Finding::new(&catalog::GATEWAY_OLDER, &gateway.admin, seen));
    }
    let admin = &facts.settings.admin;
    if is_beyond_loopback(admin) && gateway.is_open {
        let seen = format!("it listens at {admin} and answers without a token");
        findings.push(Finding::new(&catalog::ADMIN_OPEN, "spec.admin", seen));
    }
}

/// Whether an address reaches beyond this machine; one that is not known does not count.
fn is_beyond_loopback(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok_and(|address| !address.ip().is_loopback())
}

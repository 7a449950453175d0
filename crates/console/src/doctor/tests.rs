//! Each finding from the facts that deserve it, those about endpoints on simulated servers; and none for a
//! fleet in order.

mod offline;
mod online;

use std::collections::BTreeSet;

use super::catalog::Finding;

/// The ids, each once.
fn ids(findings: &[Finding]) -> BTreeSet<&'static str> {
    findings.iter().map(|finding| finding.kind.id).collect()
}

/// Kinds that are proved elsewhere: by the command itself, since they are about not being able to ask.
const BY_COMMAND: [&str; 1] = ["gateway-unreachable"];

#[test]
fn every_kind_has_a_test() {
    let tested: BTreeSet<&str> =
        offline::PROVED.iter().chain(&online::PROVED).chain(&BY_COMMAND).copied().collect();
    let all: BTreeSet<&str> = super::catalog::ALL.iter().map(|kind| kind.id).collect();
    assert_eq!(tested, all);
}

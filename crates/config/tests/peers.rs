//! The section `peers`.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::path::Path;
use std::time::Duration;

use config::Peers;
use config::schema::{Field, walk};
use wicketgate_config as config;

fn text(section: &str) -> String {
    format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         discover: [{{ url: 'http://a' }}]\n{section}"
    )
}

fn peers(section: &str) -> Option<Peers> {
    config::parse(&text(section), "test").unwrap_or_else(|errors| panic!("{errors}")).spec.peers
}

fn refused(section: &str) -> String {
    match config::parse(&text(section), "test") {
        Ok(document) => panic!("accepted: {:?}", document.spec.peers),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn a_gateway_has_no_peers_unless_the_document_says_so() {
    assert_eq!(peers(""), None);
    assert_eq!(peers("  peers: {}\n"), Some(Peers::default()));
}

#[test]
fn every_field_of_the_section_is_read() {
    let read = peers(
        "  peers: { listen: '10.0.0.1:7', advertise: '10.0.0.2:0', seeds: ['gw.ns.svc:9004', '[::1]:9004'], \
         clusterId: a, keyFile: /k, flushInterval: 50ms, silence: 3s }\n",
    );
    let expected = Peers {
        listen: "10.0.0.1:7".parse().unwrap(),
        advertise: Some("10.0.0.2:0".parse().unwrap()),
        seeds: vec!["gw.ns.svc:9004".to_owned(), "[::1]:9004".to_owned()],
        cluster_id: "a".to_owned(),
        key_file: Some(Path::new("/k").to_owned()),
        flush_interval: Duration::from_millis(50),
        silence: Duration::from_secs(3),
    };
    assert_eq!(read, Some(expected));
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let mut section = "  peers:\n".to_owned();
    walk(&mut |path: &str, field: &Field| {
        if let (Some(key), Some(default)) = (path.strip_prefix("spec.peers."), field.default) {
            section.push_str(&format!("    {key}: {default}\n"));
        }
    });
    assert_eq!(section.lines().count(), 5, "{section}");
    assert_eq!(peers(&section), Some(Peers::default()));
}

#[test]
fn a_seed_is_a_host_and_a_port() {
    for seed in [
        "gateway",
        "gateway:",
        ":9004",
        "gateway:0",
        "gateway:99999",
        "http://a:1",
        "a b:1",
        "::1:1",
    ] {
        let report = refused(&format!("  peers: {{ seeds: ['{seed}'] }}\n"));
        assert!(report.contains("HOST:PORT"), "{seed}: {report}");
    }
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    for section in ["flushInterval: 1ms", "flushInterval: 2s", "silence: 500ms", "listen: ':9004'"]
    {
        refused(&format!("  peers: {{ {section} }}\n"));
    }
}

#[test]
fn a_silence_shorter_than_three_flushes_is_refused() {
    let report = refused("  peers: { flushInterval: 500ms, silence: 1s }\n");
    assert!(report.contains("`silence` must be at least three times `flushInterval`"), "{report}");
}

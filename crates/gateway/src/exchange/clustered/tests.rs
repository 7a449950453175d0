use config::GlobalDocument;
use fleet::{Heartbeat, ModelLoad};
use telemetry::{AccessLog, BuildInfo, Metrics, Target};

use super::*;
use crate::exchange::{Attempt, Failure, Verdict};
use crate::testing::{at, body, exchange_at};
use crate::{Gateway, Policy};

use std::sync::Arc;

/// A router whose document has this YAML below `spec:`, over members `a`, `b` and `c` that all serve `llama`.
fn router(spec: &str) -> Arc<Gateway> {
    let members =
        ["a", "b", "c"].map(|name| format!("{{ name: {name}, url: 'https://{name}.test' }}"));
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: GlobalInferenceGateway\nspec:\n  members: [{}]\n  \
         heartbeats: {{ address: '127.0.0.1:9005' }}\n{spec}",
        members.join(", ")
    );
    let document = GlobalDocument::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors}"));
    let metrics = Metrics::new(BuildInfo { version: "test", revision: "" });
    let dropped = Arc::clone(&metrics.gateway().access_log_dropped_lines);
    let log = AccessLog::open(Target::Off, dropped).unwrap();
    let clusters = Clusters::new(&document, &metrics, at(0)).unwrap();
    let gateway = Gateway::new(&document.gateway, Policy::Document, metrics, log);
    gateway.use_clusters(clusters);
    for name in ["a", "b", "c"] {
        hear(&gateway, name, 1, at(0));
    }
    gateway
}

fn hear(gateway: &Arc<Gateway>, name: &str, sequence: u64, now: Timestamp) {
    let mut load = ModelLoad::new("llama");
    (load.endpoints_ready, load.in_flight_max) = (2, 100);
    let clusters = gateway.clusters().unwrap();
    let uptime = now.as_duration();
    let heartbeat =
        Heartbeat { epoch: 1, sequence, uptime, models: vec![load], ..Heartbeat::default() };
    clusters.heard(gateway, clusters.find(name).unwrap(), heartbeat, now).unwrap();
}

fn placed(gateway: &Arc<Gateway>, now: Timestamp) -> Exchange {
    let mut exchange = exchange_at(gateway, now);
    exchange.place(&body("llama"), None, now).unwrap();
    exchange
}

fn attempt(exchange: &mut Exchange, now: Timestamp) -> (Attempt, String) {
    let attempt = exchange.attempt(now).unwrap();
    (attempt, exchange.member_name().unwrap().to_owned())
}

fn in_flight(gateway: &Gateway) -> u32 {
    gateway.clusters().unwrap().view(at(0)).members.iter().map(|member| member.in_flight).sum()
}

#[test]
fn models_of_heartbeats_are_served_and_a_request_has_two_members_at_most() {
    let gateway = router("");
    let mut exchange = placed(&gateway, at(0));
    let (first, member) = attempt(&mut exchange, at(0));
    assert!(first.address.is_tls() && first.lost.is_some());
    assert_eq!(in_flight(&gateway), 1);
    assert_eq!(exchange.failed(Failure::Connect, at(0)), Verdict::Retry);
    let (_, other) = attempt(&mut exchange, at(0));
    assert_ne!(member, other);
    assert_eq!(exchange.member_reason(), Some("failover"));
    let Verdict::Refuse(refusal) = exchange.failed(Failure::Connect, at(0)) else {
        panic!("a third member was tried");
    };
    assert_eq!((refusal.status, refusal.component), (503, Component::Member));
    assert_eq!(refusal.member.as_deref(), Some(other.as_str()));
    assert!(refusal.message.starts_with(&format!("member `{other}`")), "{}", refusal.message);
    drop(exchange);
    assert_eq!(in_flight(&gateway), 0);
}

#[test]
fn three_refused_connections_take_a_member_out() {
    let gateway = router("");
    let clusters = gateway.clusters().unwrap().clone();
    let mut out = None;
    for _ in 0..30 {
        let mut exchange = placed(&gateway, at(1));
        let (_, member) = attempt(&mut exchange, at(1));
        let lost = out.get_or_insert(member.clone()).clone();
        if member == lost {
            let _ = exchange.failed(Failure::Connect, at(1));
        } else {
            exchange.answered(200, None, at(1));
            exchange.finish(Ending::Complete, at(1));
        }
    }
    let view = clusters.view(at(1));
    let states: Vec<_> =
        view.members.iter().map(|member| (member.member.clone(), member.state.clone())).collect();
    assert!(states.contains(&(out.unwrap(), "ejected".to_owned())), "{states:?}");
}

#[tokio::test]
async fn what_waits_at_a_silent_member_is_called_back_and_goes_to_another() {
    let gateway = router("");
    let clusters = gateway.clusters().unwrap().clone();
    let mut exchange = placed(&gateway, at(0));
    let (attempt_there, member) = attempt(&mut exchange, at(0));
    // The others go on reporting.
    for second in 1..=20 {
        for name in ["a", "b", "c"].into_iter().filter(|name| **name != *member) {
            hear(&gateway, name, 1 + second, at(second));
        }
        clusters.tick(at(second));
    }
    attempt_there.lost.unwrap().lost().await;
    assert_eq!(exchange.failed(Failure::Lost, at(20)), Verdict::Retry);
    let (_, other) = attempt(&mut exchange, at(20));
    assert_ne!(member, other);
}

#[test]
fn a_drained_member_gets_nothing_new() {
    let gateway = router("");
    let clusters = gateway.clusters().unwrap().clone();
    assert!(clusters.drain("a", true, at(0)).is_some());
    assert!(clusters.drain("nowhere", true, at(0)).is_none());
    for _ in 0..20 {
        let mut exchange = placed(&gateway, at(0));
        let (_, member) = attempt(&mut exchange, at(0));
        assert_ne!(member, "a");
    }
}

#[test]
fn a_tenant_keeps_to_the_members_that_it_may_use() {
    let gateway = router("  tenants: [{ tenant: anonymous, members: [b] }]\n");
    for _ in 0..10 {
        let mut exchange = placed(&gateway, at(0));
        assert_eq!(attempt(&mut exchange, at(0)).1, "b");
        assert_eq!(exchange.choices().count(), 1, "nor is another one tried after it");
    }
}

#[test]
fn a_member_that_is_full_is_passed_over_and_that_is_no_failure() {
    let gateway = router("");
    let mut exchange = placed(&gateway, at(0));
    let (_, member) = attempt(&mut exchange, at(0));
    assert_eq!(exchange.answered(429, Some(Duration::ZERO), at(0)), Verdict::Retry);
    for _ in 0..20 {
        let mut exchange = placed(&gateway, at(0));
        assert_ne!(attempt(&mut exchange, at(0)).1, member);
    }
    let view = gateway.clusters().unwrap().view(at(0));
    assert!(view.members.iter().all(|member| member.state == "fresh"), "{view:?}");
}

#[test]
fn a_client_is_told_the_shortest_wait_of_the_members_that_refused_not_the_last_ones() {
    let waits = |first: u64, second: u64| {
        let gateway = router("");
        let mut exchange = placed(&gateway, at(0));
        let wait = |seconds| Some(Duration::from_secs(seconds));
        attempt(&mut exchange, at(0));
        assert_eq!(exchange.answered(429, wait(first), at(0)), Verdict::Retry);
        attempt(&mut exchange, at(0));
        assert_eq!(exchange.answered(429, wait(second), at(0)), Verdict::Forward);
        exchange.retry_after_instead(true)
    };
    assert_eq!(waits(3, 20), Some(3));
    assert_eq!(waits(20, 3), Some(3));
    // A date, which is taken for no number.
    assert_eq!(waits(0, 7), Some(7));
}

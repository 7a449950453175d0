//! Members that fail, in each way in which they can.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::http::{CHAT, Client, request};
use crate::load::{Load, Outcome, failed, prompt, streamed};
use crate::process::until;
use crate::stand::{Plan, Stand};

/// Shorter than by default, so that a test need not wait for ten seconds of silence.
fn impatient() -> serde_json::Value {
    json!({ "heartbeats": { "suspectAfter": "3s", "deadAfter": "5s" } })
}

fn answered_by<'o>(outcomes: &'o [Outcome], member: &str) -> Vec<&'o Outcome> {
    outcomes.iter().filter(|outcome| outcome.member == member).collect()
}

#[tokio::test]
async fn a_killed_cluster_costs_only_the_streams_that_it_had_begun() {
    let engine = sim::ServerSpec { time_scale: 0.2, ..sim::ServerSpec::default() };
    let plan = Plan { engine, router: impatient(), ..Plan::default() };
    let mut stand = Stand::start(plan).await;
    let load = Load::start(stand.router().traffic, 9, |n| streamed(&format!("Question {n}"), 60));
    let router = stand.router();
    until("all members have requests", async || {
        let mut busy = true;
        for name in ["a", "b", "c"] {
            busy &= router.member(name).await["in_flight"].as_u64() > Some(0);
        }
        busy
    })
    .await;
    stand.clusters[0].process.kill();
    let killed = Instant::now();
    let router = stand.router();
    until("it is out", async || matches!(router.state("a").await.as_str(), "ejected" | "dead"))
        .await;
    // Its sockets are closed: refused connections tell at once.
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let sent = router.member("a").await["sent"].clone();
    until("the others go on", async || {
        router.metric("wicketgate_fleet_decisions_total", &[]).await > 60.0
    })
    .await;
    assert_eq!(router.member("a").await["sent"], sent, "nothing is sent to it any more");
    let outcomes = load.end().await;
    for outcome in failed(&outcomes) {
        // Its client saw it begin: nobody may repeat it.
        assert!(
            outcome.status == 200 && outcome.member == "a" && !outcome.text.is_empty(),
            "{outcome:?}"
        );
    }
    assert!(failed(&outcomes).len() <= 9, "{:?}", failed(&outcomes).len());
}

/// Its kernel still takes connections and bytes, but nobody is there.
#[tokio::test]
async fn requests_that_wait_at_a_cluster_that_hangs_are_answered_by_another() {
    let plan = Plan { router: impatient(), ..Plan::default() };
    let stand = Stand::start(plan).await;
    let load = Load::start(stand.router().traffic, 9, |n| prompt(&format!("Question {n}"), 8));
    let router = stand.router();
    until("all members had requests", async || {
        let mut all = true;
        for name in ["a", "b", "c"] {
            all &= router.member(name).await["sent"].as_u64() > Some(0);
        }
        all
    })
    .await;
    stand.clusters[0].process.signal("STOP");
    until("it is out", async || matches!(router.state("a").await.as_str(), "ejected" | "dead"))
        .await;
    until("nothing waits there any more", async || router.member("a").await["in_flight"] == 0)
        .await;
    let sent = router.member("a").await["sent"].clone();
    let before = router.metric("wicketgate_fleet_decisions_total", &[]).await;
    until("the others go on", async || {
        router.metric("wicketgate_fleet_decisions_total", &[]).await > before + 50.0
    })
    .await;
    assert_eq!(router.member("a").await["sent"], sent);
    // It comes back, is tried, and ramps up.
    stand.clusters[0].process.signal("CONT");
    router.until_state("a", "fresh").await;
    let ramp = router.member("a").await["ramp"].as_f64().unwrap();
    assert!(ramp < 0.5, "{ramp}");
    let outcomes = load.end().await;
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes));
    assert!(outcomes.iter().any(|outcome| outcome.reason == "failover"));
}

#[tokio::test]
async fn a_cluster_that_comes_and_goes_costs_no_request() {
    let mut stand = Stand::start(Plan { router: impatient(), ..Plan::default() }).await;
    let load = Load::start(stand.router().traffic, 4, |n| prompt(&format!("Question {n}"), 4));
    for _ in 0..2 {
        stand.clusters[1].process.signal("STOP");
        let router = stand.router();
        until("it is out", async || matches!(router.state("b").await.as_str(), "ejected" | "dead"))
            .await;
        stand.clusters[1].process.signal("CONT");
        stand.router().until_state("b", "fresh").await;
    }
    stand.clusters[1].process.kill();
    stand.clusters[1].restart().await;
    stand.router().until_state("b", "fresh").await;
    let outcomes = load.end().await;
    let lost: Vec<_> = failed(&outcomes);
    // Whole answers: whatever had begun at the kill was answered by another or ended with an error before a byte.
    assert!(lost.iter().all(|outcome| outcome.member == "b" && outcome.status == 200), "{lost:?}");
    assert!(lost.len() <= 4, "{lost:?}");
}

/// Streams on other members do not notice.
#[tokio::test]
async fn streams_on_other_members_go_on_untouched() {
    let engine = sim::ServerSpec { time_scale: 1.0, ..sim::ServerSpec::default() };
    let plan = Plan { engine, router: impatient(), ..Plan::default() };
    let mut stand = Stand::start(plan).await;
    let mut streams = Vec::new();
    for n in 0..12 {
        let mut client = Client::connect(stand.router().traffic).await;
        // Long enough that none has ended at the kill, also where the machine stalls.
        let body = streamed(&format!("Story {n}"), 1000).to_string();
        client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
        let head = client.until("data: ").await;
        streams.push((head.contains("x-wicketgate-member: a"), client));
    }
    assert!(streams.iter().any(|(is_lost, _)| !is_lost));
    stand.clusters[0].process.kill();
    for (is_lost, mut client) in streams {
        let answer = client.answer().await;
        let is_whole = answer.complete && answer.text().ends_with("data: [DONE]\n\n");
        assert_eq!(is_whole, !is_lost, "{answer:?}");
        assert!(!is_lost || answer.text().contains("endpoint_cut"), "{answer:?}");
    }
}

/// Each router decides for itself; clients of one that is gone go to the other.
#[tokio::test]
async fn a_router_that_ends_takes_nothing_from_the_other() {
    let plan = Plan { routers: 2, router: impatient(), ..Plan::default() };
    let mut stand = Stand::start(plan).await;
    let load = Load::start(stand.routers[1].traffic, 4, |n| prompt(&format!("Question {n}"), 4));
    stand.routers[0].process.kill();
    let router = &stand.routers[1];
    let before = router.metric("wicketgate_fleet_decisions_total", &[]).await;
    until("it goes on", async || {
        router.metric("wicketgate_fleet_decisions_total", &[]).await > before + 100.0
    })
    .await;
    for name in ["a", "b", "c"] {
        assert_eq!(router.state(name).await, "fresh");
    }
    let outcomes = load.end().await;
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes));
    assert!(!answered_by(&outcomes, "a").is_empty());
}

/// A router that hears nobody distrusts itself before it distrusts all others.
#[tokio::test]
async fn a_router_that_is_cut_off_from_all_heartbeats_goes_on_serving() {
    let plan = Plan { router: impatient(), relayed: true, ..Plan::default() };
    let stand = Stand::start(plan).await;
    let load = Load::start(stand.router().traffic, 4, |n| prompt(&format!("Question {n}"), 4));
    stand.relays[0].stall();
    let router = stand.router();
    until("it has noticed", async || router.metric("wicketgate_fleet_frozen", &[]).await == 1.0)
        .await;
    let before = router.metric("wicketgate_fleet_decisions_total", &[]).await;
    until("it goes on", async || {
        router.metric("wicketgate_fleet_decisions_total", &[]).await > before + 100.0
    })
    .await;
    stand.relays[0].resume();
    until("it hears them again", async || {
        router.metric("wicketgate_fleet_frozen", &[]).await == 0.0
    })
    .await;
    let outcomes = load.end().await;
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes));
}

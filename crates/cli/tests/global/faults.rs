//! Members that reset connections while they report, and that speak TLS.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::heartbeats::Authority;
use crate::http::chat;
use crate::load::prompt;
use crate::process::until;
use crate::relay::Relay;
use crate::stand::{Plan, Stand, free_address};

/// Nothing of it is seen by heartbeats, which go another way.
#[tokio::test]
async fn requests_whose_connections_are_reset_are_answered_by_another_at_once() {
    let mut stand = Stand::start(Plan::default()).await;
    let relay = Relay::start(stand.clusters[0].traffic).await;
    let members = stand.clusters.iter().enumerate().map(|(at, cluster)| {
        let address = if at == 0 { relay.address } else { cluster.traffic };
        json!({ "name": cluster.name, "url": format!("http://{address}") })
    });
    let members = members.collect::<Vec<_>>();
    stand.routers[0].rewrite(&json!({ "members": members }));
    let router = stand.router();
    let through = relay.address.to_string();
    until("the new address is known", async || {
        router.admin("/debug/fleet").await.text().contains(&through)
    })
    .await;
    relay.reset();
    let begun = Instant::now();
    let mut times = Vec::new();
    // After the first it is avoided, so the next ones take a while.
    while times.len() < 3 && begun.elapsed() < Duration::from_secs(30) {
        let asked = Instant::now();
        let answer = chat(router.traffic, &prompt("Hi", 2)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_ne!(answer.header("x-wicketgate-member"), Some("a"), "{answer:?}");
        if answer.header("x-wicketgate-reason") == Some("failover") {
            times.push(asked.elapsed());
        }
    }
    times.sort_unstable();
    // The least, because a machine that builds and tests stalls now and then.
    assert!(times.first().is_some_and(|least| *least < Duration::from_secs(1)), "{times:?}");
}

#[tokio::test]
async fn members_with_https_are_reached_with_the_routers_own_certificate_and_no_other() {
    let authority = Authority::new();
    let address = free_address();
    let mut tls = authority.identity("a", &["127.0.0.1"]);
    let ca = tls["caFile"].take();
    tls["address"] = json!(address.to_string());
    tls["clientCaFile"] = ca.clone();
    tls.as_object_mut().unwrap().remove("caFile");
    let plan = Plan {
        clusters: 1,
        members: vec![json!({ "url": format!("https://{address}") })],
        of_clusters: vec![json!({ "listener": { "tls": tls } })],
        router: json!({ "memberTls": authority.identity("router", &["router"]) }),
        ..Plan::default()
    };
    let stand = Stand::start(plan).await;
    let answer = chat(stand.router().traffic, &prompt("Hi", 3)).await;
    assert_eq!((answer.status, answer.header("x-wicketgate-member")), (200, Some("a")));

    // A router with a certificate of another authority gets no answer.
    let stranger = Authority::new();
    let mut foreign = stranger.identity("router", &["router"]);
    foreign["caFile"] = ca;
    let plan = Plan {
        clusters: 1,
        members: vec![json!({ "url": format!("https://{address}") })],
        router: json!({ "memberTls": foreign }),
        ..Plan::default()
    };
    let other = Stand::start(plan).await;
    let answer = chat(other.router().traffic, &prompt("Hi", 3)).await;
    assert!(matches!(answer.status, 502 | 503), "{answer:?}");
    assert_eq!(answer.header("x-wicketgate-component"), Some("member"), "{answer:?}");
    drop(stand);
}

//! Two gateways in front of the same endpoints share what they know.

use serde_json::{Value, json};

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, chat, request};
use crate::sims::{asked, fast, fleet, prompt, slow, streamed};

/// The second is told of the first; the first learns of the second.
async fn pair(urls: &[String]) -> (Gateway, Gateway) {
    let document = document(urls, json!({ "peers": { "clusterId": "e2e" } }));
    let own = ["--peer-listen", "127.0.0.1:0", "--peer-key", "secret"];
    let first = Gateway::with_document(&document, &own).await;
    first.said("reached_at=").await;
    let address = reached_at(&first.stderr());
    let second =
        Gateway::with_document(&document, &[&own, ["--peer", &address].as_slice()].concat()).await;
    for gateway in [&first, &second] {
        gateway.scraped(urls.len()).await;
        gateway
            .until("the peer is there", async || {
                gateway.metric("wicketgate_peers", &[]).await == 1.0
            })
            .await;
    }
    (first, second)
}

/// Where peers reach a gateway, as it said at its start.
fn reached_at(said: &str) -> String {
    let rest = said.split("reached_at=").nth(1).unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

async fn learned(gateway: &Gateway) -> f64 {
    gateway.metric("wicketgate_peer_prefix_blocks_total", &["received"]).await
}

/// Requests that peers have, as this gateway sees them, over all endpoints.
async fn peers_in_flight(gateway: &Gateway) -> u64 {
    let endpoints = gateway.endpoints().await;
    endpoints.iter().filter_map(|endpoint| endpoint["peers_in_flight"].as_u64()).sum()
}

/// The reference's affinity ends with two replicas (HA-2).
#[tokio::test]
async fn a_conversation_whose_turns_alternate_between_gateways_stays_on_one_endpoint() {
    let fleet = fleet(4, slow()).await;
    let (first, second) = pair(&fleet.urls()).await;
    let counts = async || {
        let mut counts = Vec::new();
        for server in fleet.servers() {
            counts.push(asked(server).await.len());
        }
        counts
    };
    let (conversations, turns) = (4, 4);
    let mut stayed = 0;
    for conversation in 0..conversations {
        let mut said = format!("I am {conversation}. ").repeat(800);
        let mut homes = vec![0; 4];
        for turn in 0..turns {
            let (one, other) = if turn % 2 == 0 { (&first, &second) } else { (&second, &first) };
            let known = learned(other).await;
            let before = counts().await;
            assert_eq!(chat(one.traffic, &prompt(&said, 2)).await.status, 200);
            other.until("the turn is known", async || learned(other).await > known).await;
            other.until("its end is known", async || peers_in_flight(other).await == 0).await;
            said.push_str(&format!("Answer {turn} to {conversation}. ").repeat(100));
            for (home, (before, after)) in homes.iter_mut().zip(before.iter().zip(counts().await)) {
                *home += after - before;
            }
        }
        stayed += homes.into_iter().max().unwrap();
    }
    assert!(stayed >= conversations * turns - 1, "{stayed}");
}

#[tokio::test]
async fn a_stream_through_one_gateway_counts_at_the_other_until_its_gateway_dies() {
    let fleet = fleet(2, slow()).await;
    let (mut first, second) = pair(&fleet.urls()).await;
    let mut client = Client::connect(first.traffic).await;
    let body = streamed("Tell me all", 4000).to_string();
    client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    client.until("data:").await;
    second.until("it is seen", async || peers_in_flight(&second).await == 1).await;
    first.signal("KILL");
    first.ended().await;
    second.until("it is forgotten", async || peers_in_flight(&second).await == 0).await;
    second
        .until("the peer is gone", async || second.metric("wicketgate_peers", &[]).await == 0.0)
        .await;
    assert_eq!(chat(second.traffic, &prompt("Hi", 2)).await.status, 200);
}

/// The picker behind a proxy and the gateway with its own share like two of a kind.
#[tokio::test]
async fn serve_and_epp_share_with_each_other() {
    let fleet = fleet(1, slow()).await;
    let flags = ["--peer-listen", "127.0.0.1:0", "--peer-key", "secret"];
    let serving = Gateway::with_flags(&fleet.urls(), &flags).await;
    serving.said("reached_at=").await;
    let address = reached_at(&serving.stderr());
    let picker =
        Gateway::picker(&fleet.urls(), &[&flags, ["--peer", &address].as_slice()].concat()).await;
    let peers = async || picker.metric("wicketgate_peers", &[]).await;
    picker.until("the peer is there", async || peers().await == 1.0).await;
    let mut client = Client::connect(serving.traffic).await;
    let body = streamed("Tell me all", 4000).to_string();
    client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    client.until("data:").await;
    picker.until("it is seen", async || peers_in_flight(&picker).await == 1).await;
}

#[tokio::test]
async fn a_gateway_that_is_stopped_ends_in_order_and_says_goodbye() {
    let fleet = fleet(1, fast()).await;
    let (mut first, second) = pair(&fleet.urls()).await;
    first.signal("TERM");
    assert!(first.ended().await.success());
    assert_eq!(chat(second.traffic, &prompt("Hi", 2)).await.status, 200);
}

#[tokio::test]
async fn a_port_for_peers_that_is_taken_stops_the_start() {
    let fleet = fleet(1, fast()).await;
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = std::process::Command::new(crate::gateway::BINARY)
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--endpoint", &fleet.urls()[0], "--peer-listen", &address])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("cannot listen for peers on {address}")), "{said}");
}

/// Without a key it works too, and says what that means.
#[tokio::test]
async fn sharing_without_a_key_is_warned_of() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::with_flags(&fleet.urls(), &["--peer-listen", "127.0.0.1:0"]).await;
    gateway.said("there is no key").await;
    let endpoints: Vec<Value> = gateway.endpoints().await;
    assert_eq!(endpoints[0]["peers_in_flight"], 0);
}

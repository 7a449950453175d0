//! Who gets a request, and what the client is told of it.

use serde_json::json;

use crate::http::{CHAT, Client, ask, chat, post, request};
use crate::load::{prompt, streamed};
use crate::process::until;
use crate::stand::{MODEL, Plan, Stand};

#[tokio::test]
async fn a_request_goes_to_a_member_and_its_answer_says_which_and_why() {
    let stand = Stand::start(Plan::default()).await;
    let to = stand.router().traffic;
    let answer = chat(to, &prompt("Hi", 5)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let member = answer.header("x-wicketgate-member").unwrap().to_owned();
    assert!(["a", "b", "c"].contains(&member.as_str()), "{member}");
    assert!(answer.header("x-wicketgate-reason").is_some(), "{answer:?}");
    assert_eq!(answer.json()["usage"]["completion_tokens"], 5);

    let answer = chat(to, &streamed("Hi", 5)).await;
    assert!(answer.complete && answer.text().ends_with("data: [DONE]\n\n"), "{answer:?}");
    let models = ask(to, "GET", "/v1/models", &[], b"").await.json();
    assert_eq!(models["data"][0]["id"], MODEL);
    let decisions = stand.router().metric("wicketgate_fleet_decisions_total", &[]).await;
    assert_eq!(decisions, 2.0);
}

#[tokio::test]
async fn without_the_setting_no_answer_tells_which_member_gave_it() {
    let router = json!({ "exposeDecision": false });
    let stand = Stand::start(Plan { router, ..Plan::default() }).await;
    let answer = chat(stand.router().traffic, &prompt("Hi", 5)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-wicketgate-member"), None);
}

#[tokio::test]
async fn a_model_that_no_member_serves_is_not_found() {
    let stand = Stand::start(Plan { clusters: 1, ..Plan::default() }).await;
    let mut body = prompt("Hi", 5);
    body["model"] = json!("nobody-has-this");
    let answer = post(stand.router().traffic, CHAT, &body).await;
    assert_eq!((answer.status, answer.code()), (404, "model_not_found".to_owned()));
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_place_at_the_member() {
    let engine = sim::ServerSpec { time_scale: 1.0, ..sim::ServerSpec::default() };
    let stand = Stand::start(Plan { clusters: 1, engine, ..Plan::default() }).await;
    let router = stand.router();
    let mut client = Client::connect(router.traffic).await;
    let body = streamed("Tell me a long story", 5000).to_string();
    client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    client.until("data: ").await;
    assert_eq!(router.member("a").await["in_flight"], 1);
    drop(client);
    until("the place is free", async || router.member("a").await["in_flight"] == 0).await;
}

/// The error of a member's own, told on with the member's name.
#[tokio::test]
async fn an_error_names_the_member_and_the_part_of_it_that_failed() {
    let full = json!({ "rateLimits": [{ "name": "none", "requests": { "perHour": 1 } }] });
    let plan = Plan { clusters: 1, of_clusters: vec![full], ..Plan::default() };
    let stand = Stand::start(plan).await;
    let to = stand.router().traffic;
    assert_eq!(chat(to, &prompt("Hi", 5)).await.status, 200);
    let answer = chat(to, &prompt("Hi", 5)).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.header("x-wicketgate-member"), Some("a"));
    assert_eq!(answer.header("x-wicketgate-component"), Some("limit"));
    assert!(answer.header("retry-after").is_some());
}

/// A member that reports to be idle and refuses what it gets.
#[tokio::test]
async fn a_member_that_lies_about_its_room_gets_little_and_costs_no_request() {
    let refuses = json!({ "rateLimits": [{ "name": "none", "requests": { "perHour": 1 } }] });
    let plan = Plan { of_clusters: vec![refuses], ..Plan::default() };
    let stand = Stand::start(plan).await;
    let mut from_the_liar = 0;
    for n in 0..60 {
        let answer = chat(stand.router().traffic, &prompt(&format!("Question {n}"), 3)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        from_the_liar += usize::from(answer.header("x-wicketgate-member") == Some("a"));
    }
    assert!(from_the_liar <= 1, "{from_the_liar}");
    let asked = stand.router().metric("wicketgate_fleet_decisions_total", &["member=\"a\""]).await;
    assert!(asked < 20.0, "it was asked {asked} times");
}

#[tokio::test]
async fn requests_of_the_routers_region_stay_there_while_it_has_room() {
    let plan = Plan {
        router: json!({ "region": "eu" }),
        members: vec![
            json!({ "region": "us" }),
            json!({ "region": "eu" }),
            json!({ "region": "us" }),
        ],
        ..Plan::default()
    };
    let stand = Stand::start(plan).await;
    for n in 0..10 {
        let answer = chat(stand.router().traffic, &prompt(&format!("Question {n}"), 3)).await;
        assert_eq!(answer.header("x-wicketgate-member"), Some("b"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_changed_document_takes_a_member_out_and_brings_one_in() {
    let mut stand = Stand::start(Plan { clusters: 2, ..Plan::default() }).await;
    let only = |name: &str, at: usize, stand: &Stand| json!({ "members": [{ "name": name, "url": format!("http://{}", stand.clusters[at].traffic) }] });
    let (a, b) = (only("a", 0, &stand), only("b", 1, &stand));
    for (document, member) in [(a, "a"), (b, "b")] {
        stand.routers[0].rewrite(&document);
        let router = stand.router();
        until("the document is in force", async || {
            let fleet = router.admin("/debug/fleet").await.json();
            let members = fleet["members"].as_array().map_or(0, Vec::len);
            members == 1 && router.state(member).await == "fresh"
        })
        .await;
        let answer = chat(router.traffic, &prompt("Hi", 3)).await;
        assert_eq!(answer.header("x-wicketgate-member"), Some(member), "{answer:?}");
    }
    // What is wrong leaves the old one in force.
    std::fs::write(stand.router().file(), "kind: GlobalInferenceGateway\n").unwrap();
    stand.router().process.said("the old one stays in force").await;
    assert_eq!(chat(stand.router().traffic, &prompt("Hi", 3)).await.status, 200);
}

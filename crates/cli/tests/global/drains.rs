//! Members that are taken out on purpose: nothing is lost.

use crate::http::{CHAT, Client, chat, request};
use crate::load::{Load, failed, prompt, streamed};
use crate::process::until;
use crate::stand::{Plan, Stand};

#[tokio::test]
async fn a_member_that_an_operator_drains_gets_nothing_new_and_finishes_what_it_has() {
    let engine = sim::ServerSpec { time_scale: 1.0, ..sim::ServerSpec::default() };
    let stand = Stand::start(Plan { clusters: 2, engine, ..Plan::default() }).await;
    let router = stand.router();
    let mut client = Client::connect(router.traffic).await;
    let body = streamed("Tell me a story", 400).to_string();
    client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
    let head = client.until("data: ").await;
    let member = if head.contains("x-wicketgate-member: a") { "a" } else { "b" };
    let other = if member == "a" { "b" } else { "a" };

    let (is_done, text) = router.command(&["drain", member]);
    assert!(is_done && text.contains("draining (drained)"), "{text}");
    assert_eq!(router.member(member).await["in_flight"], 1);
    for n in 0..10 {
        let answer = chat(router.traffic, &prompt(&format!("Question {n}"), 2)).await;
        assert_eq!(answer.header("x-wicketgate-member"), Some(other));
    }
    let answer = client.answer().await;
    assert!(answer.complete && answer.text().ends_with("data: [DONE]\n\n"));

    let (is_done, text) = router.command(&["undrain", member]);
    assert!(is_done, "{text}");
    router.until_state(member, "fresh").await;
    let (is_done, text) = router.command(&["drain", "nowhere"]);
    assert!(!is_done && text.contains("members: a, b"), "{text}");
}

#[tokio::test]
async fn clusters_that_restart_one_after_the_other_under_load_lose_no_request() {
    // Within seconds, so that all are in their ramps at once.
    let mut stand = Stand::start(Plan::default()).await;
    let load = Load::start(stand.router().traffic, 6, |n| {
        if n % 2 == 0 {
            prompt(&format!("Question {n}"), 8)
        } else {
            streamed(&format!("Q {n}"), 8)
        }
    });
    for at in 0..3 {
        let name = stand.clusters[at].name.clone();
        stand.clusters[at].process.signal("TERM");
        // It says so at once, long before it would be missed.
        stand.router().until_state(&name, "draining").await;
        stand.clusters[at].process.ended().await;
        stand.clusters[at].restart().await;
        stand.router().until_state(&name, "fresh").await;
    }
    let router = stand.router();
    let sent = async || router.member("c").await["sent"].as_u64().unwrap_or(0);
    let before = sent().await;
    until("the last one gets requests again", async || sent().await > before).await;
    let outcomes = load.end().await;
    assert!(failed(&outcomes).is_empty(), "{:?}", failed(&outcomes));
    assert!(outcomes.len() > 50, "{}", outcomes.len());
}

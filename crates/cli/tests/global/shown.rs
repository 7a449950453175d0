//! What a router shows of its members: on the live page, in `top`, on the page of metrics, and to CloudWatch.

use std::process::Command;

use serde_json::{Value, json};

use crate::http::chat;
use crate::load::prompt;
use crate::process::{BINARY, until};
use crate::stand::{Plan, Stand};

async fn busy(router: Value) -> Stand {
    let price = json!({ "price": { "inputPerMillion": 1.0, "outputPerMillion": 3.0 } });
    let members = vec![price.clone(), price];
    let stand = Stand::start(Plan { clusters: 2, router, members, ..Plan::default() }).await;
    for n in 0..6 {
        let answer = chat(stand.router().traffic, &prompt(&format!("Question {n}"), 5)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    stand
}

#[tokio::test]
async fn a_router_shows_its_members_and_no_endpoints_that_were_never_scraped() {
    let stand = busy(json!({})).await;
    let router = stand.router();
    let live = router.admin("/debug/live").await.json();
    let members = live["fleet"]["members"].as_array().unwrap();
    assert_eq!(members.len(), 2);
    assert!(members.iter().all(|member| member["state"] == "fresh"), "{members:?}");
    let shares: f64 = members.iter().filter_map(|member| member["share_now"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{members:?}");
    let reasons: u64 = members
        .iter()
        .filter_map(|member| member["reasons"].as_object())
        .flat_map(|reasons| reasons.values().filter_map(Value::as_u64))
        .sum();
    assert_eq!(reasons, 6, "{members:?}");
    assert_eq!(live["who"]["pools"][0]["endpoints"], json!([]));
    assert_eq!(live["pools"][0]["rows"]["state"], json!([]));

    let output = Command::new(BINARY)
        .args(["top", "--once", "--interval", "100ms", "--admin", &router.admin.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("2/2 ready"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("a ") && line.contains("fresh")), "{text}");
    assert!(!text.contains("stale") && !text.contains("no request was decided"), "{text}");
}

#[tokio::test]
async fn a_router_has_the_fleets_pace_in_place_of_a_clusters() {
    let stand = busy(json!({})).await;
    let router = stand.router();
    until("the fleet's rate has the requests", async || {
        router.metric("wicketgate_fleet_requests_per_second", &[]).await > 0.0
    })
    .await;
    assert!(router.metric("wicketgate_fleet_capacity_requests", &[]).await > 0.0);
    assert_eq!(router.metric("wicketgate_endpoint_up", &[]).await, 2.0);
    let page = router.admin("/metrics").await.text();
    assert!(!page.contains("wicketgate_cluster_"), "a router has no cluster of its own");
}

#[tokio::test]
async fn a_router_reports_its_fleet_and_each_member_to_cloudwatch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("emf");
    let cloud_watch = json!({ "mode": "emf", "target": file, "interval": "1s", "dimensions": { "Fleet": "test" } });
    let _stand = busy(json!({ "observability": { "cloudWatch": cloud_watch } })).await;
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    until("the fleet and a member that had requests are reported", async || {
        let lines = lines();
        let has = |of: &dyn Fn(&Value) -> bool| lines.iter().any(of);
        has(&|line| {
            line["FleetReadyMembers"] == 2.0 && line["FleetRequestRate"].as_f64() > Some(0.0)
        }) && has(&|line| {
            line["Member"] == "a" && line["Fleet"] == "test" && line["MemberReady"] == 1.0
        }) && has(&|line| line["MemberRequestRate"].as_f64() > Some(0.0))
            && has(&|line| line["FleetSpendPerHour"].as_f64() > Some(0.0))
    })
    .await;
    assert!(lines().iter().all(|line| line.get("KvUsage").is_none()), "no metrics of a cluster");
}

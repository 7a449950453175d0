//! `wicketgate top` without a terminal, and `wicketgate doctor`, against a running gateway.

use serde_json::{Value, json};
use sim::{FaultKind, Quirks, ServerSpec};

use crate::commands::run;
use crate::gateway::Gateway;
use crate::http::{CHAT, ask};
use crate::sims::{fast, fleet, listens, prompt};

/// Few connections, so that the test does not depend on the machine's limit of descriptors, and a short
/// idle time, which the doctor waits for.
fn settings() -> Value {
    json!({ "limits": { "connectionsMax": 16 }, "timeouts": { "endpointIdle": "100ms" } })
}

/// Runs the doctor; its exit code and the ids of its findings.
fn doctor(arguments: &[&str]) -> (i32, Vec<String>) {
    let (code, said, complained) = run(&[&["doctor", "--json"], arguments].concat());
    let report: Value =
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{complained}"));
    let findings = report["findings"].as_array().unwrap();
    (code, findings.iter().map(|finding| finding["id"].as_str().unwrap().to_owned()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // the doctor and top run while servers answer
async fn top_without_a_terminal_prints_the_fleet_once() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), settings()).await;
    let body = prompt("Hello", 4).to_string();
    let headers = [("X-Request-Id", "seen-by-top")];
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &headers, body.as_bytes()).await.status, 200);
    let admin = format!("http://{}", gateway.admin);
    for arguments in [&["--once"][..], &[]] {
        let common = ["top", "--admin", &admin, "--interval", "100ms"];
        let (code, said, complained) = run(&[&common, arguments].concat());
        assert_eq!((code, complained.as_str()), (0, ""), "{said}");
        for server in fleet.servers() {
            assert!(said.contains(&server.address().to_string()), "{said}");
        }
        assert!(said.contains("2/2 ready") && said.contains("seen-by-top"), "{said}");
        assert!(!said.contains('\x1b'), "plain text");
    }
}

#[test]
fn top_says_that_no_gateway_answers() {
    let (code, _, complained) = run(&["top", "--once", "--admin", "127.0.0.1:1"]);
    assert_eq!(code, 1);
    assert!(complained.contains("127.0.0.1:1") && complained.contains("--admin"), "{complained}");
    let (code, _, complained) = run(&["top", "--once", "--interval", "0s"]);
    assert_eq!(code, 2);
    assert!(complained.contains("100ms to 1h"), "{complained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // the doctor and top run while servers answer
async fn the_doctor_has_nothing_to_say_of_a_fleet_in_order() {
    let fleet = fleet(2, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), settings()).await;
    let admin = gateway.admin.to_string();
    let (code, said, complained) = run(&["doctor", "--admin", &admin]);
    assert_eq!((code, complained.as_str()), (0, ""), "{said}");
    assert!(said.contains("2 endpoints: nothing to mend"), "{said}");
    let file = gateway.document_file().display().to_string();
    assert_eq!(doctor(&["-f", &file]), (0, vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // the doctor and top run while servers answer
async fn the_doctor_tells_by_its_exit_code_how_bad_it_is() {
    let quirks = Quirks { prefix_caching: false, ..Quirks::default() };
    let fleet = fleet(2, ServerSpec { quirks, ..fast() }).await;
    let gateway = Gateway::over(&fleet.urls(), settings()).await;
    let admin = gateway.admin.to_string();
    let off = "prefix-caching-off".to_owned();
    assert_eq!(doctor(&["--admin", &admin]), (1, vec![off.clone(), off]));

    let (code, said, _) = run(&["doctor", "--admin", &admin]);
    assert_eq!(code, 1);
    assert_eq!(said.matches("    why:  ").count(), 1, "the same is explained once:\n{said}");

    fleet.server(0).fault(FaultKind::Refuse);
    listens(fleet.server(0), false).await;
    let url = fleet.server(0).url();
    gateway.until("the endpoint is stale", async || gateway.state_of(&url).await == "stale").await;
    let (code, found) = doctor(&["--admin", &admin]);
    assert_eq!(code, 2);
    assert_eq!(found, ["endpoint-stale", "endpoint-unreachable", "prefix-caching-off"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)] // the doctor and top run while servers answer
async fn the_doctor_counts_what_the_gateway_refused() {
    let fleet = fleet(1, fast()).await;
    let mut extra = settings();
    extra["limits"]["requestBodyBytesMax"] = json!("1KiB");
    let gateway = Gateway::over(&fleet.urls(), extra).await;
    let body = prompt(&"long ".repeat(1000), 4).to_string();
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &[], body.as_bytes()).await.status, 413);
    gateway.rewrite("kind: Nonsense");
    gateway.signal("HUP");
    let rejected = ["outcome=\"rejected\""];
    gateway
        .until("the document was rejected", async || {
            gateway.metric("wicketgate_config_reloads_total", &rejected).await > 0.0
        })
        .await;
    let admin = gateway.admin.to_string();
    let (code, mut found) = doctor(&["--admin", &admin]);
    found.sort();
    assert_eq!((code, found), (1, vec!["bodies-refused".to_owned(), "reload-rejected".to_owned()]));
}

#[test]
fn the_doctor_says_when_there_is_nothing_to_look_at() {
    assert_eq!(doctor(&["--admin", "127.0.0.1:1"]), (2, vec!["gateway-unreachable".to_owned()]));
    let (code, _, complained) = run(&["doctor", "-f", "/nonexistent.yaml"]);
    assert_eq!(code, 2);
    assert!(complained.contains("/nonexistent.yaml"), "{complained}");
}

//! `wicketgate check` and `wicketgate explain`, and how `serve` refuses to start.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::gateway::{BINARY, Gateway, document};
use crate::http::{CHAT, ask};
use crate::sims::{fast, fleet, prompt};

pub(crate) fn run(arguments: &[&str]) -> (i32, String, String) {
    told(Command::new(BINARY).args(arguments).stdin(Stdio::null()).output().unwrap())
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The contract of `check`.
#[test]
fn check_says_where_a_document_is_wrong_and_exits_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    let good = "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  schedulers:\n    \
                - name: chat\n      modelName: m\n      endpoints: [{ url: \"http://127.0.0.1:8000\" }]\n";
    std::fs::write(&file, good).unwrap();
    let name = file.display().to_string();
    let (code, said, complained) = run(&["check", "-f", &name]);
    assert!(code == 0 && said.contains("valid") && said.contains(&name), "{said}");
    // Open to everybody beyond this machine: allowed, but hardly meant.
    assert!(
        complained.lines().count() == 1 && complained.contains("has no `auth`"),
        "{complained}"
    );
    let open = format!("{good}  auth: {{ apiKeys: {{ file: keys.yaml }}, anonymous: allow }}\n");
    std::fs::write(&file, open).unwrap();
    let (_, _, complained) = run(&["check", "-f", &name]);
    assert!(complained.contains("`auth.anonymous` is `allow`"), "{complained}");
    let closed = format!("{good}  listener: {{ address: \"127.0.0.1:8080\" }}\n");
    std::fs::write(&file, closed).unwrap();
    let (code, _, complained) = run(&["check", "-f", &name]);
    assert_eq!((code, complained.as_str()), (0, ""));

    std::fs::write(&file, good.replace("modelName", "modelname")).unwrap();
    let (code, said, complained) = run(&["check", "-f", &name]);
    assert_eq!((code, said.as_str()), (1, ""));
    assert!(complained.contains(":6:7: error"), "line and column: {complained}");
    assert!(complained.contains("did you mean `modelName`?"), "{complained}");

    let missing = folder.path().join("missing.yaml").display().to_string();
    let (code, _, complained) = run(&["check", "-f", &missing]);
    assert_eq!(code, 1);
    assert!(complained.contains("missing.yaml"), "{complained}");
}

/// A value that exists is valid: a bad start says why and stops.
#[test]
fn serve_does_not_start_with_what_it_cannot_obey() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.json");
    let name = file.display().to_string();
    let urls = ["http://127.0.0.1:1".to_owned()];
    let cases = [
        (json!({ "auth": { "apiKeys": { "file": "/nonexistent" } } }), "/nonexistent"),
        (json!({ "auth": {} }), "no way to authenticate"),
        (
            json!({ "admin": { "token": { "env": "WICKETGATE_TEST_UNSET" } } }),
            "WICKETGATE_TEST_UNSET",
        ),
        (json!({ "limits": { "headersMax": 1 } }), "headersMax"),
        (
            json!({ "listener": { "tls": { "certFile": "/nonexistent", "keyFile": "/nonexistent", "address": "127.0.0.1:0" } } }),
            "/nonexistent",
        ),
    ];
    for (extra, wanted) in cases {
        std::fs::write(&file, document(&urls, extra).to_string()).unwrap();
        let (code, _, complained) = run(&["serve", "-f", &name]);
        assert_eq!(code, 1, "{wanted}");
        assert!(complained.contains(wanted), "{complained}");
    }
    let (code, _, complained) = run(&["serve"]);
    assert_eq!(code, 1);
    assert!(
        complained.contains("nothing to serve") && complained.contains("--endpoint"),
        "{complained}"
    );
    let (code, _, complained) = run(&["serve", "--endpoint", "ftp://x"]);
    assert_eq!(code, 1);
    assert!(complained.contains("ftp://x") || complained.contains("http://"), "{complained}");
}

/// A taken port is told with its address.
#[test]
fn serve_does_not_start_on_a_port_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, complained) = run(&[
        "serve",
        "--endpoint",
        "http://127.0.0.1:1",
        "--listen",
        &address,
        "--admin",
        "127.0.0.1:0",
    ]);
    assert_eq!(code, 1);
    assert!(complained.contains(&address), "{complained}");
}

/// The contract of `explain`: a body before, a request id afterwards.
#[tokio::test]
async fn explain_tells_where_a_request_goes_and_went_and_why() {
    let fleet = fleet(3, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let admin = gateway.admin.to_string();
    let addresses: Vec<String> =
        fleet.servers().iter().map(|server| server.address().to_string()).collect();

    let (code, said, complained) =
        run(&["explain", "--admin", &admin, "--model", "llama-3.1-8b", "--prompt", "Hello"]);
    assert_eq!(code, 0, "{complained}");
    for wanted in addresses.iter().map(String::as_str).chain([
        "goes to",
        "expected-time",
        "matched",
        "≈",
        "ms old",
    ]) {
        assert!(said.contains(wanted), "`{wanted}` is not in\n{said}");
    }

    let body = prompt(&"long prompt ".repeat(200), 2).to_string();
    let mut child = Command::new(BINARY)
        .args(["explain", "--admin", &admin, "--json", "--body", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let (code, said, complained) = told(child.wait_with_output().unwrap());
    assert_eq!(code, 0, "{complained}");
    let before: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(before["candidates"].as_array().unwrap().len(), 3);
    assert!(before["prompt_blocks"].as_u64().unwrap() > 5, "{before}");

    let answer =
        ask(gateway.traffic, "POST", CHAT, &[("X-Request-Id", "explained-1")], body.as_bytes())
            .await;
    assert_eq!(answer.status, 200);
    let (code, said, complained) =
        run(&["explain", "--admin", &admin, "--json", "--request-id", "explained-1"]);
    assert_eq!(code, 0, "{complained}");
    let decided: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&decided["request_id"], &decided["route"]), (&json!("explained-1"), &json!(CHAT)));
    let logged = gateway.logged("explained-1").await;
    assert_eq!(decided["order"][0], logged["endpoint"], "what was decided is what was done");

    let (code, said, _) = run(&["explain", "--admin", &admin, "--json", "--body", "/dev/null"]);
    assert_ne!(code, 0, "{said}");
    let (code, _, complained) = run(&["explain", "--admin", &admin, "--model", "lama"]);
    assert_eq!(code, 1);
    assert!(complained.contains("did you mean `llama-3.1-8b`"), "{complained}");
    let (code, _, complained) = run(&["explain", "--admin", &admin, "--request-id", "never-seen"]);
    assert_eq!(code, 1);
    assert!(complained.contains("never-seen"), "{complained}");
}

/// What comes before the pick: the queue of the pool, and the limits.
#[tokio::test]
async fn explain_tells_whether_a_request_would_wait_and_what_is_left_of_its_limits() {
    let fleet = fleet(1, fast()).await;
    let mut keys = tempfile::NamedTempFile::new().unwrap();
    writeln!(keys, "keys: []").unwrap();
    let extra = json!({
        "flowControl": {},
        "objectives": [{ "name": "fast", "priority": "Critical" }],
        "rateLimits": [{ "name": "few", "per": ["key"], "requests": { "perMinute": 5 } }],
        "auth": { "apiKeys": { "file": keys.path() }, "callers": [{ "name": "team" }] },
    });
    let gateway = Gateway::over(&fleet.urls(), extra).await;
    let admin = gateway.admin.to_string();
    let ask = ["explain", "--admin", &admin, "--model", "llama-3.1-8b"];
    let (code, said, complained) =
        run(&[&ask[..], &["--caller", "team", "--key", "key 1", "--objective", "fast"]].concat());
    assert_eq!(code, 0, "{complained}");
    for wanted in [
        "flow: goes at once",
        "band Critical, flow team",
        "limit few of key key 1: passes; left: 5 of 5 requests a minute",
    ] {
        assert!(said.contains(wanted), "`{wanted}` is not in\n{said}");
    }
    let (code, _, complained) = run(&[&ask[..], &["--caller", "taem"]].concat());
    assert_eq!(code, 1);
    assert!(complained.contains("there is no caller `taem`"), "{complained}");
}

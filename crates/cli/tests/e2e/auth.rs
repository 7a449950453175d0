//! Who may: API keys, tokens, certificates, and what becomes of them.

mod certificates;
mod issuer;
mod tokens;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sim::Fleet;
use tempfile::TempDir;

use crate::commands::run;
use crate::gateway::{BINARY, Gateway, document};
use crate::http::{Answer, CHAT, Client, ask, request};
use crate::sims::{asked, fast, fleet, prompt};

/// A gateway that asks for keys, and the folder where they are.
pub(crate) struct Closed {
    fleet: Fleet,
    pub(crate) gateway: Gateway,
    folder: TempDir,
}

impl Closed {
    /// `auth` is merged into the document's; the file of keys is there already.
    pub(crate) async fn start(auth: Value, extra: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(keys_file(&folder), "keys: []\n").unwrap();
        let fleet = fleet(1, fast()).await;
        let mut spec = json!({ "auth": { "apiKeys": { "file": keys_file(&folder) } } });
        spec["auth"].as_object_mut().unwrap().extend(auth.as_object().unwrap().clone());
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let gateway = Gateway::over(&fleet.urls(), spec).await;
        Self { fleet, gateway, folder }
    }

    /// Makes a key, and waits until it is let in.
    pub(crate) async fn key(&self, name: &str, arguments: &[&str]) -> String {
        let key = create(&keys_file(&self.folder), name, arguments);
        self.gateway
            .until("the key is in force", async || {
                chat(&self.gateway, &bearer(&key)).await.status != 401
            })
            .await;
        key
    }
}

fn keys_file(folder: &TempDir) -> PathBuf {
    folder.path().join("keys.yaml")
}

fn create(file: &Path, name: &str, arguments: &[&str]) -> String {
    let file = file.display().to_string();
    let own = ["keys", "create", "--file", &file, "--name", name];
    let (code, key, complained) = run(&[&own, arguments].concat());
    assert_eq!(code, 0, "{complained}");
    key.trim().to_owned()
}

/// With something on standard input.
fn run_with(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(BINARY)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) type Field = (&'static str, String);

pub(crate) fn bearer(secret: &str) -> Field {
    ("Authorization", format!("Bearer {secret}"))
}

async fn chat(gateway: &Gateway, field: &Field) -> Answer {
    chat_for(gateway, "llama-3.1-8b", field).await
}

async fn chat_for(gateway: &Gateway, model: &str, field: &Field) -> Answer {
    let mut body = prompt("Hi", 2);
    body["model"] = json!(model);
    let fields = [(field.0, field.1.as_str())];
    ask(gateway.traffic, "POST", CHAT, &fields, body.to_string().as_bytes()).await
}

async fn without_a_key_nothing_is_served_but_health() {
    let closed = Closed::start(json!({}), json!({})).await;
    let gateway = &closed.gateway;
    for (method, path) in
        [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/v1/models/llama-3.1-8b")]
    {
        let answer = ask(gateway.traffic, method, path, &[], b"{}").await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
        assert_eq!(answer.header("x-wicketgate-component"), Some("auth"));
        let error = &answer.json()["error"];
        assert_eq!(error["type"], "authentication_error");
        assert_eq!(error["code"], "missing_credentials");
    }
    let answer = ask(gateway.traffic, "POST", "/v1/messages", &[], b"{}").await;
    assert_eq!(answer.json()["type"], "error", "Anthropic's dialect on its paths");
    assert_eq!(answer.json()["error"]["type"], "authentication_error");
    assert_eq!(gateway.admin("/readyz").await.status, 200);
    assert_eq!(gateway.admin("/healthz").await.status, 200);
    assert!(asked(closed.fleet.server(0)).await.is_empty(), "an engine saw a stranger");
    assert_eq!(gateway.metric("wicketgate_auth_refused_total", &["missing"]).await, 4.0);
    assert_eq!(gateway.metric("wicketgate_requests_refused_total", &["unauthorized"]).await, 4.0);
}

async fn a_key_is_taken_wherever_sdks_put_it() {
    let closed = Closed::start(json!({}), json!({})).await;
    let key = closed.key("alice", &[]).await;
    for field in [bearer(&key), ("x-api-key", key.clone()), ("api-key", key.clone())] {
        assert_eq!(chat(&closed.gateway, &field).await.status, 200, "{}", field.0);
    }
    let two = [("x-api-key", key.as_str()), ("api-key", "another")];
    let answer = ask(closed.gateway.traffic, "POST", CHAT, &two, b"{}").await;
    assert_eq!((answer.status, answer.code()), (400, "ambiguous_credentials".to_owned()));
    let twice = [("x-api-key", key.as_str()), ("X-Api-Key", key.as_str())];
    assert_eq!(ask(closed.gateway.traffic, "POST", CHAT, &twice, b"{}").await.status, 400);
    let (one, other) = (format!("Bearer {key}"), "Bearer another");
    let twice = [("Authorization", one.as_str()), ("Authorization", other)];
    assert_eq!(ask(closed.gateway.traffic, "POST", CHAT, &twice, b"{}").await.status, 400);
}

async fn a_key_that_is_revoked_or_runs_out_is_refused_without_a_restart() {
    let closed = Closed::start(json!({}), json!({})).await;
    let file = keys_file(&closed.folder).display().to_string();
    let key = closed.key("alice", &[]).await;
    assert_eq!(chat(&closed.gateway, &bearer(&key)).await.status, 200);
    let (code, ..) = run(&["keys", "revoke", "--file", &file, "--name", "alice"]);
    assert_eq!(code, 0);
    closed
        .gateway
        .until("the key is revoked", async || {
            chat(&closed.gateway, &bearer(&key)).await.status == 401
        })
        .await;
    let old = create(Path::new(&file), "old", &["--expires", "2020-01-01T00:00:00Z"]);
    closed
        .gateway
        .until("the key has run out", async || {
            chat(&closed.gateway, &bearer(&old)).await.code() == "api_key_expired"
        })
        .await;

    // A broken file changes nothing, and the log says so.
    let good = closed.key("bob", &[]).await;
    std::fs::write(&file, "keys: [{ name: x }]").unwrap();
    closed.gateway.said("changed keys cannot be used; the former stay in force").await;
    assert_eq!(chat(&closed.gateway, &bearer(&good)).await.status, 200);
    let rejected = closed.gateway.metric("wicketgate_auth_reloads_total", &["rejected"]).await;
    assert_eq!(rejected, 1.0);
}

/// With one pool a picker leaves lists to an endpoint, for whoever may see all.
#[tokio::test]
async fn a_caller_sees_and_uses_its_models_only() {
    let callers =
        json!({ "callers": [{ "name": "team-a", "models": ["sql"] }, { "name": "team-b" }] });
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet(1, fast()).await;
    let file = keys_file(&folder);
    let alice = create(&file, "alice", &["--caller", "team-a"]);
    let bob = create(&file, "bob", &["--caller", "team-b"]);
    let nobody = create(&file, "nobody", &[]);
    let mut document = document(&fleet.urls(), json!({ "auth": callers }));
    document["spec"]["auth"]["apiKeys"] = json!({ "file": file });
    document["spec"]["schedulers"][0]["loraAdapters"] = json!(["sql"]);
    let gateway = Gateway::with_document(&document, &[]).await;
    gateway.scraped(1).await;

    let models = async |key: &str| {
        let field = bearer(key);
        let answer = ask(gateway.traffic, "GET", "/v1/models", &[(field.0, &field.1)], b"").await;
        let cards = answer.json()["data"].as_array().cloned().unwrap_or_default();
        cards.iter().map(|card| card["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(models(&alice).await, ["sql"]);
    assert_eq!(models(&bob).await, ["llama-3.1-8b", "sql"]);
    let answer = chat(&gateway, &bearer(&alice)).await;
    assert_eq!((answer.status, answer.code()), (404, "model_not_found".to_owned()));
    assert_eq!(chat(&gateway, &bearer(&bob)).await.status, 200);
    let field = bearer(&alice);
    let fields = [(field.0, field.1.as_str())];
    let one = ask(gateway.traffic, "GET", "/v1/models/llama-3.1-8b", &fields, b"").await;
    assert_eq!(one.status, 404);
    let answer = chat(&gateway, &bearer(&nobody)).await;
    assert_eq!((answer.status, answer.code()), (403, "caller_not_allowed".to_owned()));
    gateway.said("no caller of the document matches the API key `nobody`").await;
}

async fn credentials_reach_no_engine_unless_the_document_says_so() {
    for (forward, engine_key) in [(false, false), (true, false), (true, true)] {
        let folder = tempfile::tempdir().unwrap();
        let file = keys_file(&folder);
        let key = create(&file, "alice", &[]);
        let engine = folder.path().join("engine-key");
        std::fs::write(&engine, "engine-secret\n").unwrap();
        let fleet = fleet(1, fast()).await;
        let auth = json!({ "apiKeys": { "file": file }, "forwardCredentials": forward });
        let mut document = document(&fleet.urls(), json!({ "auth": auth }));
        if engine_key {
            document["spec"]["schedulers"][0]["endpointApiKey"] = json!({ "file": engine });
        }
        let gateway = Gateway::with_document(&document, &[]).await;
        gateway.scraped(1).await;
        let secret = format!("Bearer {key}");
        let fields =
            [("Authorization", secret.as_str()), ("api-key", &key), ("Cookie", "session=1")];
        let body = prompt("Hi", 2).to_string();
        let answer = ask(gateway.traffic, "POST", CHAT, &fields, body.as_bytes()).await;
        assert_eq!(answer.status, 200);
        let arrived = asked(fleet.server(0)).await.pop().unwrap();
        let arrived = |wanted: &str| -> Vec<&str> {
            let same = arrived.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            same.map(|(_, value)| value.as_str()).collect()
        };
        let (own, theirs) = (engine_key, forward && !engine_key);
        let wanted = [(own, "Bearer engine-secret"), (theirs, secret.as_str())];
        let wanted: Vec<_> = wanted.iter().filter(|(is, _)| *is).map(|(_, value)| *value).collect();
        assert_eq!(arrived("authorization"), wanted);
        assert_eq!(!arrived("api-key").is_empty(), theirs);
        assert_eq!(!arrived("cookie").is_empty(), forward);
        if engine_key {
            // sgl#30046: the gateway's own questions need the key too.
            let page = fleet.server(0).requests(0, std::time::Duration::ZERO).await;
            let models = page.requests.iter().find(|request| request.path == "/v1/models").unwrap();
            assert!(models.headers.iter().any(|(_, value)| value == "Bearer engine-secret"));
        }
    }
}

/// A body that nobody may send is neither read nor asked for.
async fn a_stranger_is_answered_before_the_body() {
    let closed = Closed::start(json!({}), json!({})).await;
    let mut client = Client::connect(closed.gateway.traffic).await;
    let fields = [("Content-Length", "1000000"), ("Expect", "100-continue")];
    client.send(&request("POST", CHAT, &fields, b"")).await;
    let head = client.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 401"), "and no 100 before it: {head}");
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(closed.gateway.metric("wicketgate_buffered_body_bytes", &[]).await, 0.0);
}

async fn anonymous_requests_do_what_the_document_lets_them() {
    let anonymous = json!({
        "anonymous": "allow",
        "callers": [{ "name": "public", "match": { "anonymous": true }, "models": ["llama-3.1-8b"] }],
    });
    for (auth, lists, calls) in
        [(json!({ "anonymous": "modelsOnly" }), 200, 401), (anonymous, 200, 200)]
    {
        let closed = Closed::start(auth, json!({})).await;
        let none = ("X-Nothing", String::new());
        let to = closed.gateway.traffic;
        assert_eq!(ask(to, "GET", "/v1/models", &[], b"").await.status, lists);
        assert_eq!(chat(&closed.gateway, &none).await.status, calls);
        assert_eq!(chat(&closed.gateway, &bearer("wg-wrong")).await.status, 401);
    }
}

/// peers.md I 127: keys are found in no log, metric or debug page.
async fn no_secret_is_written_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "admincanary\n").unwrap();
    let fleet = fleet(1, fast()).await;
    let file = keys_file(&folder);
    let key = create(&file, "alice", &[]);
    let extra = json!({ "auth": { "apiKeys": { "file": file } } });
    let mut document = document(&fleet.urls(), extra);
    document["spec"]["schedulers"][0]["endpointApiKey"] = json!({ "file": token });
    let gateway = Gateway::with_document(&document, &["--log", "trace"]).await;
    gateway.scraped(1).await;
    let wrong = format!("{key}x");
    let jwt = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ0b2tlbmNhbmFyeSJ9.c2lnbmVk";
    let mut answers = String::new();
    for field in [bearer(&key), bearer(&wrong), bearer(jwt), ("x-api-key", "canarykey".to_owned())]
    {
        let answer = chat(&gateway, &field).await;
        answers.push_str(&format!("{:?}{}", answer.headers, answer.text()));
    }
    gateway.until("all is logged", async || gateway.stdout().lines().count() >= 4).await;
    let mut places = vec![answers, gateway.stdout(), gateway.stderr()];
    for path in ["/metrics", "/debug/decisions", "/debug/endpoints"] {
        places.push(gateway.admin(path).await.text());
    }
    for secret in [key.as_str(), &wrong, jwt, "canarykey", "admincanary", "eyJpc3Mi"] {
        for place in &places {
            assert!(!place.contains(secret), "`{secret}` is in {place}");
        }
    }
}

/// SEC-4: neither what is asked nor what is answered, however much is logged, and also of what fails.
async fn no_prompt_and_no_answer_is_written_anywhere() {
    let fleet = fleet(1, fast()).await;
    let extra = json!({ "flowControl": {} });
    let gateway =
        Gateway::with_document(&document(&fleet.urls(), extra), &["--log", "trace"]).await;
    gateway.scraped(1).await;
    let asked = |model: &str| {
        let mut body = crate::sims::prompt("promptcanary and some more words", 4);
        body["model"] = json!(model);
        body.to_string().into_bytes()
    };
    let broken = br#"{"model":"llama-3.1-8b","messages":[{"content":"promptcanary"#.to_vec();
    let mut said = Vec::new();
    for (body, status) in [(asked("llama-3.1-8b"), 200), (asked("unknown"), 404), (broken, 400)] {
        let answer = request_once(&gateway, &body).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        if status == 200 {
            let text = answer.json()["choices"][0]["message"]["content"]
                .as_str()
                .unwrap()
                .trim()
                .to_owned();
            assert!(text.len() > 3, "{text}");
            said.push(text);
        }
    }
    gateway.until("all is logged", async || gateway.stdout().lines().count() >= 3).await;
    let mut places = vec![gateway.stdout(), gateway.stderr()];
    for path in ["/metrics", "/debug/decisions", "/debug/endpoints", "/debug/flow"] {
        places.push(gateway.admin(path).await.text());
    }
    for text in said.iter().map(String::as_str).chain(["promptcanary"]) {
        for place in &places {
            assert!(!place.contains(text), "`{text}` is in {place}");
        }
    }
}

async fn request_once(gateway: &Gateway, body: &[u8]) -> crate::http::Answer {
    let mut client = crate::http::Client::connect(gateway.traffic).await;
    client.send(&crate::http::request("POST", crate::http::CHAT, &[], body)).await;
    client.answer().await
}

#[tokio::test]
async fn administration_asks_for_its_token_but_probes_need_none() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "sesame\n").unwrap();
    let fleet = fleet(1, fast()).await;
    let admin = json!({ "admin": { "token": { "file": token } } });
    let gateway = Gateway::with_document(&document(&fleet.urls(), admin), &[]).await;
    gateway.until("it is ready", async || gateway.admin("/readyz").await.status == 200).await;
    for path in ["/metrics", "/debug/decisions", "/debug/endpoints", "/", "/nowhere"] {
        let answer = gateway.admin(path).await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.header("www-authenticate").is_some());
        for (shown, status) in [("Bearer sesam", 401), ("sesame", 401), ("Bearer sesame", 200)] {
            let answer = ask(gateway.admin, "GET", path, &[("Authorization", shown)], b"").await;
            assert_eq!(
                answer.status,
                if path == "/nowhere" && status == 200 { 404 } else { status }
            );
        }
    }
    std::fs::write(&token, "changed\n").unwrap();
    gateway
        .until("the changed token is asked for", async || {
            let shown = [("Authorization", "Bearer changed")];
            ask(gateway.admin, "GET", "/metrics", &shown, b"").await.status == 200
        })
        .await;
}

#[test]
fn keys_are_made_listed_checked_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let file = keys_file(&folder).display().to_string();
    let key = create(Path::new(&file), "alice", &["--caller", "team-a", "--expires", "90days"]);
    let on_file = |command: &str| ["keys", command, "--file", &file].map(str::to_owned);
    let check = |key: &str| {
        let arguments = on_file("check");
        run_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), key)
    };
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&key[3..20]), "only a hash is kept");
    let (code, said, _) = check(&key);
    assert_eq!((code, said.trim()), (0, "`alice`, caller `team-a`: in force"));
    assert!(check(&key[..40]).2.contains("no whole key"));
    let (code, said, _) = run(&["keys", "list", "--file", &file]);
    assert_eq!(code, 0);
    assert!(
        said.contains("alice") && said.contains("in force") && !said.contains("sha256"),
        "{said}"
    );
    let (code, _, complained) = run(&["keys", "create", "--file", &file, "--name", "alice"]);
    assert!(code == 1 && complained.contains("already"), "{complained}");
    assert_eq!(run(&["keys", "revoke", "--file", &file, "--name", "alice"]).0, 0);
    assert_eq!(check(&key).0, 1);
    let (code, _, complained) = run(&["keys", "revoke", "--file", &file, "--name", "bob"]);
    assert!(code == 1 && complained.contains("no key `bob`"), "{complained}");
    let imported = "sk-0123456789abcdef0123456789abcdef";
    let import = ["keys", "create", "--file", &file, "--name", "bob", "--import"];
    assert_eq!(run_with(&import, imported).0, 0);
    assert_eq!(check(imported).0, 0);
}

crate::front::on_both_paths!(
    without_a_key_nothing_is_served_but_health,
    a_key_is_taken_wherever_sdks_put_it,
    a_key_that_is_revoked_or_runs_out_is_refused_without_a_restart,
    credentials_reach_no_engine_unless_the_document_says_so,
    a_stranger_is_answered_before_the_body,
    anonymous_requests_do_what_the_document_lets_them,
    no_secret_is_written_anywhere,
    no_prompt_and_no_answer_is_written_anywhere,
);

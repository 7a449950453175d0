//! Header fields: which reach endpoints, which reach clients, and which are ours.

use serde_json::json;
use sim::Fleet;

use crate::gateway::Gateway;
use crate::http::{CHAT, ask, chat, post};
use crate::scripted::{Act, Scripted};
use crate::sims::{asked, fast, fleet, prompt};

async fn start() -> (Fleet, Gateway) {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    (fleet, gateway)
}

/// The fields that the last request brought, lower-case names.
async fn arrived(fleet: &Fleet) -> Vec<(String, String)> {
    let request = asked(fleet.server(0)).await.pop().unwrap();
    request.headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
}

async fn send(gateway: &Gateway, fields: &[(&str, &str)]) -> crate::http::Answer {
    ask(gateway.traffic, "POST", CHAT, fields, prompt("Hi", 2).to_string().as_bytes()).await
}

/// B.3; llm-d-router 242 and agentgateway PR 3144: clients chose the endpoint that way.
#[tokio::test]
async fn fields_that_steer_routing_or_claim_identity_never_reach_an_endpoint() {
    let (fleet, gateway) = start().await;
    for name in [
        "x-gateway-destination-endpoint",
        "X-Gateway-Destination-Endpoint-Subset",
        "X-GATEWAY-MODEL-NAME",
        "x-gateway-inference-objective",
        "x-gateway-inference-fairness-id",
        "x-llm-d-anything",
        "X-Prefiller-Url",
        "x-prefiller-host-port",
        "x-slo-ttft-ms",
        "x-envoy-original-path",
        "x-ai-eg-model",
        "x-internal-tenant",
        "x-wicketgate-endpoint",
        "X-Forwarded-For",
        "x-forwarded-host",
        "x-forwarded-proto",
        "Forwarded",
        "X-Real-IP",
        "x-data-parallel-host-port",
    ] {
        let answer = send(&gateway, &[(name, "evil-value")]).await;
        assert_eq!(answer.status, 200, "{name}");
        let fields = arrived(&fleet).await;
        assert!(
            fields.iter().all(|(_, value)| !value.contains("evil-value")),
            "{name}: {fields:?}"
        );
        let underscored = name.replace('-', "_");
        let answer = send(&gateway, &[(&underscored, "evil-value")]).await;
        assert_eq!(answer.status, if name.contains('-') { 400 } else { 200 }, "{underscored}");
    }
}

/// A.4 "Hop-by-hop".
#[tokio::test]
async fn fields_of_the_connection_end_with_it() {
    let (fleet, gateway) = start().await;
    let answer = send(
        &gateway,
        &[
            ("Connection", "keep-alive, X-Nominated"),
            ("X-Nominated", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"),
            ("Proxy-Authorization", "Basic abc"),
            ("TE", "trailers"),
            ("Trailer", "x-late"),
            ("Upgrade", "foo"),
            ("Http2-Settings", "AAMAAABkAAQAAP__"),
            ("X-Custom", "kept"),
        ],
    )
    .await;
    assert_eq!(answer.status, 200);
    let fields = arrived(&fleet).await;
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "content-type", "host", "x-custom", "x-request-id"]);
    let host = fields.iter().find(|(name, _)| name == "host").unwrap();
    assert_eq!(host.1, fleet.server(0).address().to_string(), "a Host that we chose");
}

/// peers.md §3.3: others drop unknown fields.
#[tokio::test]
async fn fields_that_nobody_knows_arrive_as_they_were_sent() {
    let (fleet, gateway) = start().await;
    let sent = [
        ("X-Foo", "a,  b"),
        ("X-Foo", "c"),
        ("OpenAI-Organization", "org"),
        ("x-stainless-lang", "python"),
        ("anthropic-version", "2023-06-01"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("Accept", "text/event-stream"),
        ("User-Agent", "test/1.0"),
        ("Cookie", "a=b"),
    ];
    assert_eq!(send(&gateway, &sent).await.status, 200);
    let fields = arrived(&fleet).await;
    for (name, value) in sent {
        assert!(
            fields.contains(&(name.to_ascii_lowercase(), value.to_owned())),
            "{name}: {fields:?}"
        );
    }
}

/// peers.md §3.3: a client's key is meant for the gateway.
#[tokio::test]
async fn the_key_of_a_client_does_not_reach_an_endpoint_and_ours_does_if_given() {
    let fleet = fleet(1, fast()).await;
    for (arguments, wanted) in
        [(&[][..], None), (&["--endpoint-api-key", "ours"], Some("Bearer ours"))]
    {
        let gateway = Gateway::with_flags(&fleet.urls(), arguments).await;
        assert_eq!(send(&gateway, &[("Authorization", "Bearer theirs")]).await.status, 200);
        let fields = arrived(&fleet).await;
        let keys: Vec<&str> = fields
            .iter()
            .filter(|(name, _)| name == "authorization")
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(keys, wanted.into_iter().collect::<Vec<_>>());
    }
}

/// peers.md §3.3: others make an id and do not tell the worker.
#[tokio::test]
async fn one_request_id_is_in_the_request_the_answer_and_the_log() {
    let (fleet, gateway) = start().await;
    let given = send(&gateway, &[("X-Request-Id", "my-id.1:2_3")]).await;
    assert_eq!(given.header("x-request-id"), Some("my-id.1:2_3"));
    let made = chat(gateway.traffic, &prompt("Hi", 2)).await;
    for answer in [given, made] {
        let id = answer.header("x-request-id").unwrap().to_owned();
        let seen = asked(fleet.server(0)).await;
        let with_id =
            |fields: &[(String, String)]| fields.contains(&("x-request-id".to_owned(), id.clone()));
        assert_eq!(seen.iter().filter(|request| with_id(&request.headers)).count(), 1);
        assert_eq!(gateway.logged(&id).await["status"], 200);
    }
    for evil in ["a b", "a\u{7f}b", &"x".repeat(129), "a,b", "<script>"] {
        let answer = send(&gateway, &[("X-Request-Id", evil)]).await;
        if answer.status == 200 {
            assert_ne!(answer.header("x-request-id"), Some(evil), "a dangerous id is replaced");
        }
        let fields = arrived(&fleet).await;
        assert!(fields.iter().all(|(_, value)| value != evil), "{evil}");
    }
    let refused = ask(gateway.traffic, "POST", CHAT, &[("X-Request-Id", "refused-1")], b"{").await;
    assert_eq!((refused.status, refused.header("x-request-id")), (400, Some("refused-1")));
}

/// A refused body is one line in the log, with the status that was sent and the id that was given.
#[tokio::test]
async fn a_refused_request_is_logged_once_with_what_was_answered() {
    let fleet = fleet(1, fast()).await;
    let gateway =
        Gateway::over(&fleet.urls(), json!({ "limits": { "requestBodyBytesMax": 1000 } })).await;
    let body = prompt(&"x".repeat(2000), 2).to_string();
    let answer =
        ask(gateway.traffic, "POST", CHAT, &[("X-Request-Id", "too-large-1")], body.as_bytes())
            .await;
    assert_eq!((answer.status, answer.header("x-request-id")), (413, Some("too-large-1")));
    let line = gateway.logged("too-large-1").await;
    assert_eq!((&line["status"], &line["code"]), (&json!(413), &json!("request_too_large")));
    assert_eq!(send(&gateway, &[("X-Request-Id", "fine-1")]).await.status, 200);
    gateway.logged("fine-1").await;
    assert_eq!(gateway.stdout().lines().count(), 2, "{}", gateway.stdout());
    assert_eq!(gateway.metric("wicketgate_requests_open", &[]).await, 0.0);
}

/// B.3 "Removed from responses"; A.4 hop-by-hop on the way back.
#[tokio::test]
async fn fields_of_an_answer_that_are_not_the_clients_do_not_reach_it() {
    let act = Act::Write(vec![
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nServer: uvicorn\r\n\
          Connection: keep-alive, x-nominated\r\nX-Nominated: 1\r\nKeep-Alive: timeout=5\r\nUpgrade: foo\r\n\
          X-Gateway-Destination-Endpoint: 10.0.0.1:80\r\nX-Wicketgate-Component: picker\r\n\
          X-Wicketgate-Endpoint: 10.0.0.1\r\nX-Request-Id: theirs\r\nX-Custom: kept\r\nSet-Cookie: a=1\r\n\
          Set-Cookie: b=2\r\n\r\n{}"
            .to_vec(),
    ]);
    let endpoint = Scripted::start(None, act).await;
    let gateway =
        Gateway::with_document(&crate::gateway::document(&[endpoint.url()], json!({})), &[]).await;
    let answer = send(&gateway, &[("X-Request-Id", "ours")]).await;
    let mut names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["content-length", "content-type", "set-cookie", "set-cookie", "x-custom", "x-request-id"]
    );
    assert_eq!(answer.header("x-request-id"), Some("ours"));
}

/// The same, whoever carries the answer: nothing that an endpoint says in our name.
async fn what_an_endpoint_says_in_our_name_reaches_nobody() {
    let act = Act::Write(vec![
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\
          X-Gateway-Destination-Endpoint: 10.0.0.1:80\r\nX-Wicketgate-Component: picker\r\n\
          X-Wicketgate-Endpoint: 10.0.0.1\r\nX-Llm-D-Request-Dropped-Reason: evicted\r\nX-Custom: kept\r\n\r\n{}"
            .to_vec(),
    ]);
    let endpoint = Scripted::start(None, act).await;
    let gateway =
        Gateway::with_document(&crate::gateway::document(&[endpoint.url()], json!({})), &[]).await;
    let answer = send(&gateway, &[]).await;
    assert_eq!((answer.status, answer.header("x-custom")), (200, Some("kept")));
    let ours = ["x-gateway-", "x-wicketgate-", "x-llm-d-"];
    for (name, _) in &answer.headers {
        assert!(!ours.iter().any(|prefix| name.starts_with(prefix)), "`{name}` passed");
    }
}

crate::front::on_both_paths!(what_an_endpoint_says_in_our_name_reaches_nobody,);

/// B.3: `exposeDecision` is for operators; addresses stay hidden without it.
#[tokio::test]
async fn the_endpoint_is_named_to_clients_only_if_the_document_says_so() {
    let fleet = fleet(1, fast()).await;
    for expose in [false, true] {
        let gateway = Gateway::over(&fleet.urls(), json!({ "exposeDecision": expose })).await;
        let answer = chat(gateway.traffic, &prompt("Hi", 2)).await;
        let address = fleet.server(0).address().to_string();
        assert_eq!(answer.header("x-wicketgate-endpoint"), expose.then_some(address.as_str()));
        assert_eq!(format!("{:?}", answer.headers).contains(&address), expose);
    }
}

/// B.3 and CVE-2025-58160: a name with a line break or an escape sequence.
#[tokio::test]
async fn a_model_name_that_could_break_a_line_is_refused_and_not_logged_raw() {
    let (fleet, gateway) = start().await;
    for name in [
        "a\r\nx-gateway-destination-endpoint: 1",
        "a\nb",
        "a\u{0}b",
        "\u{1b}[31mred",
        "a\u{7f}b",
        " ",
        "",
    ] {
        let answer = post(gateway.traffic, CHAT, &json!({ "model": name, "messages": [] })).await;
        assert_eq!(answer.status, 400, "{name:?}: {}", answer.text());
    }
    let long = "m".repeat(300);
    assert_eq!(
        post(gateway.traffic, CHAT, &json!({ "model": long, "messages": [] })).await.status,
        400
    );
    assert!(asked(fleet.server(0)).await.is_empty());
    let said = gateway.stdout() + &gateway.stderr();
    assert!(!said.contains('\u{1b}') && !said.contains('\0'), "control characters in the log");
}

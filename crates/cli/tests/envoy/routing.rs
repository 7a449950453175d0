//! Where requests go.

use serde_json::Value;

use crate::http::ask;
use crate::stand::{Example, Setup};
use crate::upstream::{Act, Upstream};

const BOTH: [Example; 2] = [Example::OriginalDst, Example::OverrideHost];

#[tokio::test]
#[ignore = "needs Envoy"]
async fn the_endpoint_that_was_picked_gets_the_request() {
    for example in BOTH {
        let stand = Setup::new(example, Act::Answer).start().await;
        for number in 0..9 {
            let id = format!("pick-{number}");
            let answer = stand.chat("llama", &[("x-request-id", &id)]).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        let mut got: Vec<String> = stand
            .upstreams
            .iter()
            .flat_map(|upstream| {
                std::iter::repeat_n(upstream.address.to_string(), upstream.seen().len())
            })
            .collect();
        got.sort();
        let lines = stand.picker.logged(9).await;
        let mut picked: Vec<_> =
            lines.iter().map(|line| line["endpoint"].as_str().unwrap().to_owned()).collect();
        picked.sort();
        assert_eq!(picked, got, "{example:?}");
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_retry_goes_down_the_list_and_the_one_that_served_is_charged() {
    let arguments = ["--destinations", "3"];
    let stand =
        Setup::new(Example::OverrideHost, Act::Status(503)).arguments(&arguments).start().await;
    stand.upstreams[2].set(Act::Answer);
    let served = stand.upstreams[2].address.to_string();
    let mut retried = 0;
    for number in 0..6 {
        let answer = stand.chat("llama", &[]).await;
        assert_eq!(answer.status, 200, "request {number}: {answer:?}");
        let lines = stand.picker.logged(number + 1).await;
        let line = lines.last().unwrap();
        assert_eq!(line["endpoint"], served, "{line}");
        retried += u32::from(line["attempts"].as_u64() > Some(1));
    }
    assert_eq!(stand.upstreams[2].seen().len(), 6);
    assert!(retried > 0, "the first pick is not always the one that works");
    assert_eq!(stand.picker.in_flight().await, 0);
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn an_endpoint_that_dies_costs_no_request() {
    let arguments = ["--destinations", "3"];
    let mut stand =
        Setup::new(Example::OverrideHost, Act::Answer).arguments(&arguments).start().await;
    assert_eq!(stand.chat("llama", &[]).await.status, 200);
    drop(stand.upstreams.remove(0));
    for number in 0..30 {
        let answer = stand.chat("llama", &[]).await;
        assert_eq!(answer.status, 200, "request {number}: {answer:?}");
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_client_cannot_choose_its_endpoint_or_its_model_by_a_field() {
    for example in BOTH {
        let stand = Setup::new(example, Act::Answer).start().await;
        let elsewhere = Upstream::start("127.0.0.1", Act::Answer, 0).await;
        let address = elsewhere.address.to_string();
        let spoofed = [
            ("x-gateway-destination-endpoint", address.as_str()),
            ("x-gateway-model-name", "secret"),
            ("x-gateway-base-model-name", "secret"),
            ("x-prefiller-host-port", "10.0.0.9:22"),
        ];
        assert_eq!(stand.chat("sql", &spoofed).await.status, 200);
        assert!(elsewhere.seen().is_empty(), "{example:?}");
        let seen = stand.upstreams.iter().flat_map(Upstream::seen).next().unwrap();
        assert!(seen.head.contains("x-gateway-model-name: sql\r\n"), "{}", seen.head);
        assert!(seen.head.contains("x-gateway-base-model-name: llama\r\n"), "{}", seen.head);
        assert!(!seen.head.contains("secret") && !seen.head.contains("prefiller"), "{}", seen.head);
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_rewritten_request_is_answered_under_the_name_that_was_asked_for() {
    let stand =
        Setup::new(Example::OriginalDst, Act::Answer).arguments(&["--trust-rewrite"]).start().await;
    let answer = stand.chat("llama", &[("x-llm-d-model-name-rewrite", "sql")]).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["model"], "llama");
    let seen = stand.upstreams.iter().flat_map(Upstream::seen).next().unwrap();
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(asked["model"], "sql");
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn endpoints_with_ipv6_addresses_are_reached() {
    for example in BOTH {
        let stand = Setup::new(example, Act::Answer).host("::1").start().await;
        let answer = stand.chat("llama", &[]).await;
        assert_eq!(answer.status, 200, "{example:?}: {answer:?}");
    }
}

/// Only what is named as `llama` by its base model gets to an endpoint.
const BY_BASE_MODEL: &str = r#"              - match:
                  prefix: "/"
                  headers: [{ name: x-gateway-base-model-name, string_match: { exact: llama } }]
"#;
const ELSEWHERE: &str = r#"                  timeout: 0s
              - match: { prefix: "/" }
                direct_response: { status: 418 }
"#;
/// No picker is asked there.
const UNPICKED: &str = r#"                direct_response: { status: 418 }
                typed_per_filter_config:
                  envoy.filters.http.ext_proc:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute
                    disabled: true
"#;

#[tokio::test]
#[ignore = "needs Envoy"]
async fn routes_are_decided_by_the_model_in_the_body() {
    for has_router in [false, true] {
        let setup = Setup::new(Example::OriginalDst, Act::Answer)
            .edit("              - match: { prefix: \"/\" }\n", BY_BASE_MODEL)
            .edit("                  timeout: 0s\n", ELSEWHERE);
        let setup = if has_router {
            setup.router().edit("                direct_response: { status: 418 }\n", UNPICKED)
        } else {
            setup
        };
        let stand = setup.start().await;
        assert_eq!(stand.chat("sql", &[]).await.status, 200, "an adapter of it");
        let spoofed = [("x-gateway-base-model-name", "llama")];
        let answer = stand.chat("other", &spoofed).await;
        // A router leaves unknown models to other routes; a picker knows that nobody has it.
        assert_eq!(answer.status, if has_router { 418 } else { 404 }, "{answer:?}");
    }
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_router_and_a_picker_in_two_filters_harm_no_body() {
    let stand = Setup::new(Example::OriginalDst, Act::Answer).router().start().await;
    for length in [10, 6_300, 62_001, 1 << 20, 4 << 20] {
        let text = "x".repeat(length);
        let sent = serde_json::json!({ "model": "sql", "messages": [{ "role": "user", "content": text }] });
        let sent = sent.to_string();
        let answer = ask(stand.traffic, "POST", "/v1/chat/completions", &[], sent.as_bytes()).await;
        assert_eq!(answer.status, 200, "{length}: {answer:?}");
        let is_there = stand
            .upstreams
            .iter()
            .flat_map(Upstream::seen)
            .any(|seen| seen.body == sent.as_bytes());
        assert!(is_there, "{length}");
    }
}

/// A filter before the picker's that says which endpoints may be chosen.
const SUBSET: &str = r#"          http_filters:
          - name: envoy.filters.http.set_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
              metadata:
              - metadata_namespace: envoy.lb.subset_hint
                value: { x-gateway-destination-endpoint-subset: [LIST] }
"#;

#[tokio::test]
#[ignore = "needs Envoy"]
async fn a_subset_of_the_proxys_is_never_left() {
    let only: &'static str = SUBSET.replace("LIST", "\"ENDPOINT\"").leak();
    let setup = Setup::new(Example::OriginalDst, Act::Answer);
    let stand = setup.edit("          http_filters:\n", only).start().await;
    for _ in 0..9 {
        assert_eq!(stand.chat("llama", &[]).await.status, 200);
    }
    assert_eq!(stand.counts(), [0, 9, 0]);

    let none: &'static str = SUBSET.replace("LIST", "").leak();
    let setup = Setup::new(Example::OriginalDst, Act::Answer);
    let stand = setup.edit("          http_filters:\n", none).start().await;
    let answer = stand.chat("llama", &[]).await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "no_endpoints"), "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    let reason = answer.header("x-llm-d-request-dropped-reason");
    assert_eq!(reason, Some("rejected-no-endpoints"));
}

#[tokio::test]
#[ignore = "needs Envoy"]
async fn envoy_and_the_picker_verify_each_other() {
    // The health check goes the same way, so the stand itself would not come up without.
    let stand = Setup::new(Example::OriginalDst, Act::Answer).tls().start().await;
    assert_eq!(stand.chat("llama", &[]).await.status, 200);
}

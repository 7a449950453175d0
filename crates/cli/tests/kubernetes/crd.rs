//! What an API server says of resources before it takes them.

use config::{ApiGroup, KIND};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Error};
use serde_json::{Value, json};

use crate::control_plane::{root, shared};
use crate::namespace::Namespace;

/// The API of a group's resources in the namespace.
fn api(namespace: &Namespace, group: ApiGroup) -> Api<DynamicObject> {
    let (name, version) = group.api_version().split_once('/').unwrap();
    let kind = GroupVersionKind::gvk(name, version, KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, wicketgate_kube::crd::PLURAL);
    Api::namespaced_with(namespace.client.clone(), &namespace.name, &resource)
}

fn resource(group: ApiGroup, spec: Value) -> DynamicObject {
    let object = json!({
        "apiVersion": group.api_version(),
        "kind": KIND,
        "metadata": { "name": "gateway" },
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// What `kubectl apply --dry-run=server` would say; unknown fields are errors, as for `kubectl`.
async fn dry_run(namespace: &Namespace, group: ApiGroup, spec: Value) -> Result<(), String> {
    let url = format!("{}?dryRun=All&fieldValidation=Strict", api(namespace, group).resource_url());
    let body = serde_json::to_vec(&resource(group, spec)).unwrap();
    let post = ::http::Request::post(url).header("content-type", "application/json").body(body);
    match namespace.client.request::<Value>(post.unwrap()).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("the API server was not asked: {error}"),
    }
}

/// A document of AWS's as the reference has it.
fn aws_example() -> Value {
    let text = std::fs::read_to_string(root().join("docs/examples/aws-manifest.yaml")).unwrap();
    let document: Value = serde_saphyr::from_str(&text).unwrap();
    document["spec"].clone()
}

fn scheduler(more: Value) -> Value {
    let mut scheduler = json!({ "name": "chat", "modelName": "llama", "modelSelector": { "matchLabels": { "app": "llama" } } });
    for (key, value) in more.as_object().unwrap() {
        scheduler[key] = value.clone();
    }
    scheduler
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn an_example_of_awss_is_taken_as_it_is() {
    let namespace = Namespace::new(shared().await).await;
    dry_run(&namespace, ApiGroup::Aws, aws_example()).await.unwrap();
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn every_example_of_the_documentation_is_taken() {
    let namespace = Namespace::new(shared().await).await;
    let mut taken = 0;
    for entry in std::fs::read_dir(root().join("docs/examples")).unwrap() {
        let path = entry.unwrap().path();
        let Some("yaml" | "yml") = path.extension().and_then(|ending| ending.to_str()) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let document: Value = serde_saphyr::from_str(&text).unwrap();
        if document["kind"] != KIND {
            continue;
        }
        let group = match document["apiVersion"].as_str() {
            Some(version) if version == ApiGroup::Aws.api_version() => ApiGroup::Aws,
            _ => ApiGroup::Wicketgate,
        };
        let said = dry_run(&namespace, group, document["spec"].clone()).await;
        assert_eq!(said, Ok(()), "{}", path.display());
        taken += 1;
    }
    assert!(taken > 1, "there are examples");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn what_cannot_work_is_refused_with_the_words_of_check() {
    let namespace = Namespace::new(shared().await).await;
    let ours = ApiGroup::Wicketgate;
    let second = json!({ "name": "code", "modelName": "qwen", "modelSelector": {} });
    let provider = json!({ "name": "idp", "issuer": "https://idp.example.org", "remoteJWKS": { "uri": "https://idp.example.org/keys" } });
    let cases = [
        (
            ours,
            json!({ "bbr": { "enabled": false }, "schedulers": [scheduler(json!({})), second] }),
            "bbr must be enabled when more than one scheduler is defined",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({})), scheduler(json!({ "name": "other" }))] }),
            "modelName must be unique across schedulers",
        ),
        (ours, json!({}), "there is nothing to serve"),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "weights": { "queue": 1 }, "configMapRef": { "name": "own" } }))] }),
            "weights and configMapRef are mutually exclusive",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "scheduler": "epp", "weights": { "lru": 1 } }))] }),
            "weights.lru is only valid when scheduler is llm-d",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "policy": "reference", "pickerConfig": { "file": "picker.yaml" } }))] }),
            "policy and pickerConfig are mutually exclusive",
        ),
        (
            ours,
            json!({ "schedulers": [{ "name": "chat", "modelName": "llama" }] }),
            "a scheduler has no endpoints",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({}))], "auth": { "jwt": { "provider": provider } } }),
            "at least one of audiences or requiredClaims must be specified",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "targetPort": 70000 }))] }),
            "should be less than or equal to 65535",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "engineType": "ollama" }))] }),
            "Unsupported value: \"ollama\"",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "routeTimeout": "ten minutes" }))] }),
            "spec.schedulers[0].routeTimeout",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({ "modelNmae": "llama" }))] }),
            "unknown field \"spec.schedulers[0].modelNmae\"",
        ),
        (
            ours,
            json!({ "schedulers": [scheduler(json!({})), scheduler(json!({ "modelName": "x" }))] }),
            "Duplicate value",
        ),
        (
            ApiGroup::Aws,
            json!({ "tls": {}, "schedulers": [scheduler(json!({}))] }),
            "spec.bbr: Required value",
        ),
        (
            ApiGroup::Aws,
            json!({ "tls": {}, "bbr": { "enabled": true }, "schedulers": [scheduler(json!({ "endpoints": [] }))] }),
            "unknown field \"spec.schedulers[0].endpoints\"",
        ),
        (
            ApiGroup::Aws,
            json!({ "tls": {}, "bbr": { "enabled": true }, "schedulers": [scheduler(json!({ "engineType": "tgi" }))] }),
            "Unsupported value: \"tgi\"",
        ),
        (
            ApiGroup::Aws,
            json!({ "tls": {}, "bbr": { "enabled": true, "maxRequestBodyBytes": 268_435_457 }, "schedulers": [scheduler(json!({}))] }),
            "should be less than or equal to 268435456",
        ),
    ];
    for (group, spec, expected) in cases {
        let said = dry_run(&namespace, group, spec.clone()).await;
        let said = said.expect_err(&format!("{expected}: {spec}"));
        assert!(said.contains(expected), "{spec}\nexpected {expected}\nsaid {said}");
    }
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn the_most_schedulers_that_the_schema_allows_are_taken() {
    let namespace = Namespace::new(shared().await).await;
    let schedulers = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|n| {
                scheduler(json!({ "name": format!("s{n}"), "modelName": format!("model-{n}") }))
            })
            .collect()
    };
    let aws =
        |count| json!({ "tls": {}, "bbr": { "enabled": true }, "schedulers": schedulers(count) });
    dry_run(&namespace, ApiGroup::Aws, aws(100)).await.unwrap();
    let said = dry_run(&namespace, ApiGroup::Aws, aws(101)).await.unwrap_err();
    assert!(said.contains("must have at most 100 items"), "{said}");
    let ours = |count| json!({ "schedulers": schedulers(count) });
    dry_run(&namespace, ApiGroup::Wicketgate, ours(256)).await.unwrap();
    let said = dry_run(&namespace, ApiGroup::Wicketgate, ours(257)).await.unwrap_err();
    assert!(said.contains("must have at most 256 items"), "{said}");
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test --only kubernetes"]
async fn what_the_server_keeps_is_the_document_that_was_applied() {
    let namespace = Namespace::new(shared().await).await;
    let api = api(&namespace, ApiGroup::Wicketgate);
    let spec = json!({
        "schedulers": [scheduler(json!({ "loraAdapters": ["sql"], "routeTimeout": "10m" }))],
        "podDefaults": { "nodeSelector": { "disk": "ssd" }, "tolerations": [{ "key": "gpu" }] },
        "limits": { "requestBodyBytesMax": "16MiB" },
        "objectives": [{ "name": "urgent", "priority": "Critical" }, { "name": "late", "priority": -5 }],
    });
    let resource = resource(ApiGroup::Wicketgate, spec.clone());
    let made = api.create(&PostParams::default(), &resource).await.unwrap();
    let kept = serde_json::to_value(&made).unwrap();
    assert_eq!(kept["spec"], spec, "nothing was dropped and nothing was added");
    let document =
        config::parse(&kept.to_string(), "resource").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(document.name, "gateway");
    assert_eq!(document.namespace.as_deref(), Some(namespace.name.as_str()));
}

use serde_json::{Value, json};

use super::*;

fn resource(spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "metadata": {
            "name": "lab", "namespace": "serving", "uid": "1", "generation": 3,
            "managedFields": [{ "manager": "kubectl" }],
        },
        "spec": spec,
        "status": { "readyEndpoints": 1 },
    }))
    .unwrap()
}

fn scheduler(more: Value) -> Value {
    let mut scheduler = json!({ "name": "chat", "modelName": "llama", "modelSelector": { "matchLabels": { "app": "llama" } } });
    for (key, value) in more.as_object().unwrap() {
        scheduler[key] = value.clone();
    }
    scheduler
}

fn maps(list: &[(&str, &str, Value)]) -> Maps {
    let map = |(name, label, data): &(&str, &str, Value)| {
        let map =
            json!({ "metadata": { "name": name, "labels": { *label: "true" } }, "data": data });
        ((*name).to_owned(), serde_json::from_value(map).unwrap())
    };
    list.iter().map(map).collect()
}

fn adapters(composed: &Composed) -> Vec<&str> {
    let all = composed.document.spec.schedulers.iter().flat_map(|one| &one.lora_adapters);
    all.map(|name| name.as_str()).collect()
}

const OLD: &str = "inference.networking.k8s.io/bbr-managed";
const NEW: &str = "inference.llm-d.ai/ipp-managed";

#[test]
fn what_the_server_added_is_no_part_of_the_document() {
    let spec = json!({ "schedulers": [scheduler(json!({}))] });
    let composed = compose(&resource(spec), &Maps::new()).unwrap();
    assert_eq!(composed.document.name, "lab");
    assert_eq!(composed.document.namespace.as_deref(), Some("serving"));
    assert!(composed.document.warnings.is_empty(), "{:?}", composed.document.warnings);
}

#[test]
fn a_broken_resource_says_what_is_wrong_with_it() {
    let spec = json!({ "schedulers": [scheduler(json!({ "targetPrt": 1 }))] });
    let error = compose(&resource(spec), &Maps::new()).unwrap_err().to_string();
    assert!(error.contains("serving/lab:") && error.contains("targetPort"), "{error}");
}

#[test]
fn adapters_of_both_labels_join_those_of_the_document() {
    let spec = json!({ "schedulers": [scheduler(json!({ "loraAdapters": ["sql"] }))] });
    let maps = maps(&[
        ("a", OLD, json!({ "baseModel": "llama", "adapters": "- de\n- sql\n" })),
        ("b", NEW, json!({ "baseModel": "llama", "adapters": "[fr]" })),
        ("c", NEW, json!({ "baseModel": "another", "adapters": "[es]" })),
        ("d", "unlabelled", json!({ "baseModel": "llama", "adapters": "[it]" })),
    ]);
    let composed = compose(&resource(spec), &maps).unwrap();
    assert_eq!(adapters(&composed), ["sql", "de", "fr"]);
    assert!(composed.notes.is_empty(), "{:?}", composed.notes);
}

#[test]
fn an_adapter_that_means_another_model_is_left_out_and_the_rest_holds() {
    let qwen = json!({ "name": "code", "modelName": "qwen", "modelSelector": {} });
    let spec = json!({ "schedulers": [scheduler(json!({})), qwen] });
    let maps = maps(&[
        ("a", NEW, json!({ "baseModel": "llama", "adapters": "[qwen, de]" })),
        ("b", NEW, json!({ "baseModel": "qwen", "adapters": "[de, fr]" })),
        ("c", NEW, json!({ "adapters": "[x]" })),
        ("d", NEW, json!({ "baseModel": "llama", "adapters": "{ x: y }" })),
    ]);
    let composed = compose(&resource(spec), &maps).unwrap();
    assert_eq!(adapters(&composed), ["de", "fr"]);
    let told = composed.notes.join("\n");
    for part in
        ["`a`: `qwen`", "`b`: `de`", "`c`: there is no `baseModel`", "`d`: `adapters` is no"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_pickers_document_comes_from_its_map() {
    let spec = json!({ "schedulers": [scheduler(json!({ "configMapRef": { "name": "own" } }))] });
    let resource = resource(spec);
    assert_eq!(referred(&resource), BTreeSet::from(["own".to_owned()]));
    let missing = compose(&resource, &Maps::new()).unwrap_err().to_string();
    assert!(missing.contains("`own`") && missing.contains("`default-plugins.yaml`"), "{missing}");
    let with = |text: &str| maps(&[("own", "x", json!({ "default-plugins.yaml": text }))]);
    let broken = compose(&resource, &with("kind: [")).unwrap_err().to_string();
    assert!(broken.contains("ConfigMap own"), "{broken}");
    let composed = compose(&resource, &with(config::DEFAULT_PICKER_DOCUMENT)).unwrap();
    assert!(composed.document.spec.schedulers[0].picker_config.is_some());
}

//! A document of AWS's group, rewritten to ours: the same gateway, free to use our fields.

use config::{ApiGroup, Document, Spec, Weights};
use serde_json::{Map, Value, json};

/// AWS's defaults where ours differ.
const BODY_BYTES: u64 = 268_435_456;
const ENGINE: &str = "vllm";

/// The rewritten document as YAML. Comments are lost, and what a cluster added is left out.
///
/// * `text`: a valid document of AWS's group.
///
/// # Errors
/// It is of another group, or would not mean the same afterwards.
pub(super) fn rewritten(text: &str, document: &Document) -> anyhow::Result<String> {
    anyhow::ensure!(
        document.api_group == ApiGroup::Aws,
        "it is of our group already: {}",
        document.api_group.api_version()
    );
    // `n` and `off` are names here, as everywhere in a document.
    let strict = serde_saphyr::options! { strict_booleans: true };
    let mut object: Value = serde_saphyr::from_str_with_options(text, strict)?;
    object["apiVersion"] = json!(ApiGroup::Wicketgate.api_version());
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&&**key));
    }
    let spec = &mut object["spec"];
    if let Some(bbr) = spec["bbr"].as_object_mut() {
        or_insert(bbr, "maxRequestBodyBytes", json!(BODY_BYTES));
    }
    for scheduler in spec["schedulers"].as_array_mut().into_iter().flatten() {
        let Some(scheduler) = scheduler.as_object_mut() else { continue };
        or_insert(scheduler, "engineType", json!(ENGINE));
        if scheduler.contains_key("configMapRef") {
            continue;
        }
        or_insert(scheduler, "weights", json!({}));
        if let Some(weights) = scheduler["weights"].as_object_mut() {
            for (key, weight) in weights_of_aws() {
                or_insert(weights, key, json!(weight));
            }
        }
    }
    // In quotes, also for readers of YAML 1.1.
    let rewritten = serde_saphyr::to_string(&object)?;
    let read = config::parse(&rewritten, "the rewritten document")
        .map_err(|errors| anyhow::anyhow!("{errors}"))?;
    anyhow::ensure!(
        meaning(&read.spec) == meaning(&document.spec),
        "the rewritten document does not mean the same"
    );
    Ok(rewritten)
}

/// Without weights that a picker's own document goes before.
fn meaning(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    for scheduler in spec.schedulers.iter_mut().filter(|one| one.config_map_ref.is_some()) {
        scheduler.weights = Weights::AWS;
    }
    spec
}

/// AWS's default weights where ours differ; `lru` beside the picker image `epp` is an error even as zero.
fn weights_of_aws() -> [(&'static str, u32); 4] {
    let weights = Weights::AWS;
    [
        ("queue", weights.queue),
        ("kvCache", weights.kv_cache),
        ("prefix", weights.prefix),
        ("predictedLatency", weights.predicted_latency),
    ]
}

fn or_insert(map: &mut Map<String, Value>, key: &str, value: Value) {
    let entry = map.entry(key).or_insert(Value::Null);
    if entry.is_null() {
        *entry = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(text: &str) -> anyhow::Result<String> {
        rewritten(text, &config::parse(text, "test").unwrap_or_else(|errors| panic!("{errors}")))
    }

    const SMALL: &str = "\
apiVersion: inference.sagemaker.aws.amazon.com/v1alpha1
kind: InferenceGatewayConfig
metadata: { name: a, namespace: b, uid: x, labels: { c: d } }
spec:
  tls: {}
  bbr: { enabled: true }
  schedulers:
    - { name: chat, modelName: m, modelSelector: { matchLabels: { app: m } } }
    - { name: code, modelName: n, modelSelector: {}, engineType: sglang, scheduler: epp, weights: { queue: 7 } }
    - { name: own, modelName: o, modelSelector: {}, configMapRef: { name: own } }
status: { conditions: [] }
";

    #[test]
    fn what_was_a_default_of_awss_is_written_out() {
        let text = rewrite(SMALL).unwrap();
        assert!(text.contains("modelName: 'n'") || text.contains("modelName: \"n\""), "{text}");
        let ours: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(ours["apiVersion"], ApiGroup::Wicketgate.api_version());
        assert_eq!(ours["spec"]["bbr"]["maxRequestBodyBytes"], BODY_BYTES);
        assert_eq!(ours["spec"]["schedulers"][0]["engineType"], ENGINE);
        assert_eq!(ours["spec"]["schedulers"][1]["engineType"], "sglang");
        assert_eq!(ours["spec"]["schedulers"][0]["weights"]["predictedLatency"], 0);
        assert_eq!(ours["spec"]["schedulers"][1]["weights"]["queue"], 7);
        assert_eq!(
            ours["metadata"],
            json!({ "name": "a", "namespace": "b", "labels": { "c": "d" } })
        );
        assert!(ours.get("status").is_none());
    }

    #[test]
    fn the_example_of_the_documentation_is_rewritten() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/aws-manifest.yaml");
        rewrite(&std::fs::read_to_string(path).unwrap()).unwrap();
    }

    #[test]
    fn a_document_of_ours_is_refused() {
        let text = SMALL.replace(ApiGroup::Aws.api_version(), ApiGroup::Wicketgate.api_version());
        assert!(rewrite(&text).unwrap_err().to_string().contains("our group already"));
    }
}

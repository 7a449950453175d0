//! The documents of `docs/examples`: taken by Envoy where it is theirs, else checked against what the
//! program that they are for publishes about its fields.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::schema::{Dialect, findings};

/// Kinds of Kubernetes itself, which every cluster knows.
const BUILT_IN: [(&str, &str); 3] =
    [("v1", "ConfigMap"), ("v1", "Service"), ("apps/v1", "Deployment")];

const SCHEMAS: [(&str, &str, &str); 7] = [
    ("gateway.networking.k8s.io/v1", "Gateway", include_str!("schemas/Gateway.json")),
    ("gateway.networking.k8s.io/v1", "HTTPRoute", include_str!("schemas/HTTPRoute.json")),
    ("inference.networking.k8s.io/v1", "InferencePool", include_str!("schemas/InferencePool.json")),
    (
        "gateway.envoyproxy.io/v1alpha1",
        "EnvoyExtensionPolicy",
        include_str!("schemas/EnvoyExtensionPolicy.json"),
    ),
    (
        "gateway.envoyproxy.io/v1alpha1",
        "BackendTrafficPolicy",
        include_str!("schemas/BackendTrafficPolicy.json"),
    ),
    (
        "gateway.envoyproxy.io/v1alpha1",
        "ClientTrafficPolicy",
        include_str!("schemas/ClientTrafficPolicy.json"),
    ),
    ("networking.istio.io/v1", "DestinationRule", include_str!("schemas/DestinationRule.json")),
];

const CLUSTER_EXAMPLES: [&str; 7] = [
    "envoy/picker-in-kubernetes.yaml",
    "envoy-gateway/policy.yaml",
    "envoy-gateway/inference-pool.yaml",
    "istio/inference-pool.yaml",
    "istio/picker-tls.yaml",
    "agentgateway/inference-pool.yaml",
    "kgateway/inference-pool.yaml",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples")
}

fn read(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What a cluster would say about one object.
fn refusals(object: &Value) -> Vec<String> {
    let (version, kind) =
        (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    assert!(object["metadata"]["name"].is_string() && object["metadata"]["namespace"] == "models");
    if BUILT_IN.contains(&(version, kind)) {
        return Vec::new();
    }
    let schema = SCHEMAS.iter().find(|(of, name, _)| (*of, *name) == (version, kind));
    let (_, _, schema) = schema.unwrap_or_else(|| panic!("no schema of {version} {kind}"));
    findings(&serde_json::from_str(schema).unwrap(), &object["spec"], Dialect::Kubernetes)
}

#[test]
fn a_cluster_with_the_programs_crds_takes_every_example() {
    for name in CLUSTER_EXAMPLES {
        for object in read(name) {
            assert_eq!(refusals(&object), Vec::<String>::new(), "{name}: {}", object["kind"]);
        }
    }
}

#[test]
fn every_example_is_looked_at_by_some_test() {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(folder()).unwrap() {
        let folder = folder.unwrap();
        if !folder.file_type().unwrap().is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let (folder, file) = (folder.file_name(), file.unwrap().file_name());
            found.push(format!("{}/{}", folder.display(), file.display()));
        }
    }
    let others = [
        "envoy/original-dst.yaml",
        "envoy/override-host.yaml",
        "agentgateway/standalone.yaml",
        "kubernetes/controller.yaml",
        "kubernetes/pool.yaml",
        "kubernetes/serve.yaml",
    ];
    for name in found {
        assert!(CLUSTER_EXAMPLES.contains(&&*name) || others.contains(&&*name), "{name}");
    }
}

#[test]
fn a_misspelt_field_or_a_word_that_is_none_is_found() {
    let mut objects = read("envoy-gateway/policy.yaml");
    let policy =
        objects.iter_mut().find(|object| object["kind"] == "EnvoyExtensionPolicy").unwrap();
    let processor = &mut policy["spec"]["extProc"][0];
    processor["processingMode"]["request"]["body"] = "FULL_DUPLEX_STREAMED".into();
    processor["failopen"] = true.into();
    processor["backendRefs"][0].as_object_mut().unwrap().remove("name");
    let found = refusals(policy).join("\n");
    for part in ["FULL_DUPLEX_STREAMED", "failopen: unknown", "\"name\" is missing"] {
        assert!(found.contains(part), "{part} is not in {found}");
    }
}

/// A rule of the CRD that is written as an expression, which the schema's copy lacks.
#[test]
fn envoy_gateway_is_not_asked_to_fail_open_in_full_duplex() {
    let objects = read("envoy-gateway/policy.yaml");
    let policy = objects.iter().find(|object| object["kind"] == "EnvoyExtensionPolicy").unwrap();
    let processor = &policy["spec"]["extProc"][0];
    assert_eq!(processor["processingMode"]["request"]["body"], "FullDuplexStreamed");
    assert_eq!(processor["failOpen"], false);
}

#[test]
fn agentgateways_schema_takes_its_configuration() {
    let schema: Value = serde_json::from_str(include_str!("schemas/agentgateway.json")).unwrap();
    let [mut document] = <[Value; 1]>::try_from(read("agentgateway/standalone.yaml")).unwrap();
    assert_eq!(findings(&schema, &document, Dialect::JsonSchema), Vec::<String>::new());
    let routing = &mut document["binds"][0]["listeners"][0]["routes"][0]["backends"][0]["policies"]
        ["inferenceRouting"];
    routing["destinationMode"] = "trusting".into();
    assert!(!findings(&schema, &document, Dialect::JsonSchema).is_empty());
}

#[test]
fn pools_and_policies_point_at_the_picker_that_is_deployed() {
    let deployed = read("envoy/picker-in-kubernetes.yaml");
    let service = deployed.iter().find(|object| object["kind"] == "Service").unwrap();
    let (name, port) = (&service["metadata"]["name"], &service["spec"]["ports"][0]["port"]);
    let mut asked = 0;
    for object in CLUSTER_EXAMPLES.iter().flat_map(|name| read(name)) {
        let spec = &object["spec"];
        let target = match object["kind"].as_str().unwrap() {
            "InferencePool" => {
                let target = &spec["endpointPickerRef"];
                (&target["name"], &target["port"]["number"])
            }
            "EnvoyExtensionPolicy" => {
                let target = &spec["extProc"][0]["backendRefs"][0];
                (&target["name"], &target["port"])
            }
            _ => continue,
        };
        assert_eq!(target, (name, port));
        asked += 1;
    }
    assert_eq!(asked, 5);
}

#[test]
fn the_picker_of_the_examples_starts_with_its_document() {
    let deployed = read("envoy/picker-in-kubernetes.yaml");
    let of = |kind| deployed.iter().find(|object| object["kind"] == kind).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("gateway.yaml");
    std::fs::write(&document, of("ConfigMap")["data"]["gateway.yaml"].as_str().unwrap()).unwrap();
    let run = |arguments: &[String]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_wicketgate")).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), text)
    };
    let (is_valid, said) = run(&["check".into(), "-f".into(), document.display().to_string()]);
    assert!(is_valid, "{said}");

    let container = &of("Deployment")["spec"]["template"]["spec"]["containers"][0];
    let mut arguments: Vec<String> = container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|argument| argument.as_str().unwrap().to_owned())
        .collect();
    // All of them are known, or the help would not be what is answered.
    arguments.push("--help".to_owned());
    let (is_known, said) = run(&arguments);
    assert!(is_known, "{said}");
    for flag in arguments.iter().filter_map(|argument| argument.split('=').next()) {
        assert!(!flag.starts_with("--") || said.contains(flag), "{flag}");
    }
}

#[test]
#[ignore = "needs Envoy"]
fn envoy_takes_its_configurations() {
    let program = std::env::var_os("WICKETGATE_TEST_ENVOY")
        .expect("WICKETGATE_TEST_ENVOY names Envoy; `cargo xtask test --only envoy` sets it");
    for name in ["envoy/original-dst.yaml", "envoy/override-host.yaml"] {
        let output = Command::new(&program)
            .args(["--mode", "validate", "--use-dynamic-base-id", "-c"])
            .arg(folder().join(name))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("OK"), "{name}: {said}");
    }
}

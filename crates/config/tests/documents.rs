//! Documents that are valid, and what becomes of them.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::path::Path;
use std::time::Duration;

use config::spec::{LabelSelector, SelectorOperator};
use config::{
    AccessLogTarget, ApiGroup, AppProtocol, Document, EngineType, JwksSource, Overrides, Policy,
    RouteTimeout, Weights,
};
use wicketgate_config as config;

const OURS: &str = "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\n";

fn example(name: &str) -> Document {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name);
    config::load(&path).unwrap_or_else(|errors| panic!("{errors}"))
}

fn valid(text: &str) -> Document {
    config::parse(text, "test.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn one_scheduler(fields: &str) -> Document {
    valid(&format!(
        "{OURS}spec: {{ schedulers: [{{ name: a, modelName: m, endpoints: [{{ url: 'http://a' }}], {fields} }}] }}"
    ))
}

#[test]
fn every_example_of_the_documentation_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    // Folders hold other programs' documents.
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        if let Err(errors) = config::load(&file) {
            panic!("{errors}");
        }
    }
}

#[test]
fn the_examples_outside_kubernetes_raise_no_doubt() {
    for name in ["laptop.yaml", "two-models-lora.yaml"] {
        let warnings = example(name).warnings;
        assert!(warnings.is_empty(), "{name}: {}", warnings[0]);
    }
}

#[test]
fn an_aws_manifest_is_read_field_by_field_with_aws_defaults() {
    let document = example("aws-manifest.yaml");
    assert_eq!(document.api_group, ApiGroup::Aws);
    assert_eq!(
        (document.name.as_str(), document.namespace.as_deref()),
        ("team-llm", Some("serving"))
    );
    let spec = document.spec;
    assert!(spec.bbr.enabled && spec.tls.is_some() && spec.observability.metrics_enabled);
    assert_eq!(spec.bbr.replicas, 3);
    let backend = spec.bbr.default_backend.unwrap();
    assert_eq!((backend.name.as_str(), backend.port), ("small-fallback", 8000));
    assert_eq!(spec.limits.request_body_bytes_max, 16_777_216);
    let jwt = spec.auth.unwrap().providers.remove(0);
    assert_eq!(jwt.audiences, ["llm-gateway"]);
    let uri = "https://login.example.org/keys.json".to_owned();
    assert_eq!(jwt.jwks.source, JwksSource::Remote { uri, ca_file: None });
    assert_eq!(jwt.required_claims[0].values, ["ml-prod", "ml-dev"]);

    let [chat, batch] = spec.schedulers.as_slice() else { panic!("two schedulers") };
    assert_eq!(chat.engine_type, EngineType::Vllm);
    assert_eq!(
        chat.weights,
        Weights { queue: 3, lru: 1, lora_affinity: 2, running_requests: 1, ..Weights::AWS }
    );
    assert_eq!(chat.lora_adapters, ["support-de".into(), "support-fr".into()]);
    assert_eq!(chat.route_timeout, RouteTimeout::After(Duration::from_secs(600)));
    assert_eq!(batch.weights, Weights::AWS);
    assert_eq!(batch.engine_type, EngineType::Sglang);
    assert_eq!(batch.config_map_ref.as_ref().unwrap().key, "default-plugins.yaml");
    let Some(LabelSelector { match_expressions, .. }) = &batch.model_selector else { panic!() };
    assert_eq!(match_expressions[0].operator, SelectorOperator::In);
    assert_eq!((batch.replicas, batch.target_port, batch.log_level), (2, 8000, 2));
}

#[test]
fn our_group_knows_the_engine_by_itself_and_goes_by_expected_time() {
    let document = one_scheduler("");
    let scheduler = &document.spec.schedulers[0];
    assert_eq!(scheduler.engine_type, EngineType::Auto);
    assert_eq!(scheduler.weights.scorers().collect::<Vec<_>>(), [("expected-time", 1)]);
    assert_eq!(document.name, "gateway");
    assert!(document.spec.bbr.enabled);
    assert!(document.warnings.is_empty());
}

#[test]
fn weights_that_are_not_written_keep_their_default() {
    let weights =
        |text| one_scheduler(text).spec.schedulers[0].weights.scorers().collect::<Vec<_>>();
    assert_eq!(weights("weights: { queue: 5 }"), [("queue", 5), ("expected-time", 1)]);
    let text = "policy: reference, weights: { queue: 5 }";
    assert_eq!(weights(text), [("queue", 5), ("kv-cache", 2), ("prefix", 3)]);
}

#[test]
fn the_fields_policy_is_one_setting_away() {
    let document = one_scheduler("policy: reference, shadow: { policy: wicketgate }");
    let scheduler = &document.spec.schedulers[0];
    assert_eq!((scheduler.policy, scheduler.weights), (Policy::Reference, Weights::AWS));
    let shadow = scheduler.shadow.unwrap();
    assert_eq!((shadow.policy, shadow.weights), (Policy::Wicketgate, Weights::default()));
    assert!(document.warnings.is_empty());
}

#[test]
fn a_shadow_policy_has_weights_and_a_share_of_its_own() {
    let shadow = |text: &str| one_scheduler(text).spec.schedulers[0].shadow;
    assert_eq!(shadow(""), None);
    let all = shadow("shadow: { weights: { queue: 2, predictedLatency: 0 } }").unwrap();
    let weights = Weights { queue: 2, predicted_latency: 0, ..Weights::default() };
    assert_eq!((all.weights, all.share.get()), (weights, 1.0));
    let part = shadow("weights: { queue: 9 }, shadow: { share: 0.1 }").unwrap();
    assert_eq!((part.weights, part.share.get()), (Weights::default(), 0.1));
}

#[test]
fn a_shadow_policy_that_can_only_agree_is_doubted() {
    let document = one_scheduler("shadow: { share: 0.5 }");
    assert_eq!(document.warnings.len(), 1);
    assert_eq!(document.warnings[0].path, "spec.schedulers[0].shadow");
}

#[test]
fn nothing_is_recorded_unless_a_file_is_named() {
    assert_eq!(one_scheduler("").spec.recording.file, None);
    let text = format!(
        "{OURS}spec: {{ discover: [{{ url: 'http://a' }}], recording: {{ file: a.jsonl, rotateBytes: 2MiB }} }}"
    );
    let recording = valid(&text).spec.recording;
    assert_eq!(recording.file.as_deref(), Some(Path::new("a.jsonl")));
    assert_eq!((recording.rotate_bytes, recording.files_max.get()), (2 << 20, 4));
}

#[test]
fn a_document_may_be_json() {
    let json = r#"{"apiVersion": "gateway.wicketgate.dev/v1alpha1", "kind": "InferenceGatewayConfig",
        "metadata": {"name": "j", "uid": "1", "creationTimestamp": null}, "status": {"x": [1]},
        "spec": {"discover": [{"url": "http://a:1"}], "exposeDecision": true}}"#;
    let document = valid(json);
    assert!(document.spec.expose_decision);
    assert_eq!(document.spec.discover[0].url.to_string(), "http://a:1");
}

#[test]
fn anchors_and_merge_keys_work() {
    let document = valid(&format!(
        "{OURS}spec:
  schedulers:
    - &base
      name: a
      modelName: m
      engineType: tgi
      endpoints: [{{ url: http://a }}]
    - <<: *base
      name: b
      modelName: n
      endpoints: [{{ url: http://b }}]
"
    ));
    let second = &document.spec.schedulers[1];
    assert_eq!((second.name.as_str(), second.engine_type), ("b", EngineType::Tgi));
    assert_eq!(second.endpoints[0].url.host(), "b");
}

#[test]
fn a_key_without_a_value_counts_as_absent() {
    let document = one_scheduler("weights: , saturation: null, routeTimeout: ");
    assert_eq!(document.spec.schedulers[0].weights, Weights::default());
}

#[test]
fn values_reach_the_settings() {
    let scheduler = one_scheduler(
        "appProtocol: kubernetes.io/h2c, routeTimeout: 0s, metricsPath: /m, engineType: trtllm, \
         saturation: { queueDepth: 7, kvCacheUsage: 0.5, concurrency: 9 }",
    )
    .spec
    .schedulers
    .remove(0);
    assert_eq!(scheduler.app_protocol, AppProtocol::H2c);
    assert_eq!(scheduler.route_timeout, RouteTimeout::Unlimited);
    assert_eq!(
        (scheduler.metrics_path.as_str(), scheduler.engine_type),
        ("/m", EngineType::TensorRtLlm)
    );
    let saturation = scheduler.saturation;
    assert_eq!(saturation.queue_depth.get(), 7);
    assert_eq!(saturation.kv_cache_usage.unwrap().get(), 0.5);
    assert_eq!(saturation.concurrency.unwrap().get(), 9);
}

#[test]
fn a_document_with_a_byte_order_mark_is_read() {
    valid(&format!("\u{feff}{OURS}spec: {{ discover: [{{ url: 'http://a' }}] }}"));
}

#[test]
fn the_multipart_limit_is_never_below_the_body_limit() {
    let text = format!(
        "{OURS}spec: {{ discover: [{{ url: 'http://a' }}], limits: {{ requestBodyBytesMax: 200MiB }} }}"
    );
    let limits = valid(&text).spec.limits;
    assert_eq!(limits.multipart_body_bytes_max, 200 << 20);
    assert_eq!(limits.buffered_body_bytes(None), 512 << 20);
    assert_eq!(limits.buffered_body_bytes(Some(4 << 30)), 1 << 30);
    assert_eq!(limits.buffered_body_bytes(Some(1 << 20)), 200 << 20);
}

#[test]
fn connections_leave_half_of_the_descriptors_alone() {
    let limits = config::Limits::default();
    assert_eq!(limits.connections(1 << 20), 10_000);
    assert_eq!(limits.connections(4096), 1536);
    assert_eq!(limits.connections(256), 16);
}

#[test]
fn flags_alone_make_a_document() {
    let urls = ["http://a:1", "http://b:2", "http://a:1"].map(str::to_owned);
    let document = config::from_flags(&urls, Some("1.2.3.4:5".parse().unwrap()), None).unwrap();
    assert_eq!(document.spec.discover.len(), 2);
    assert_eq!(document.spec.listener.address.to_string(), "1.2.3.4:5");
    assert_eq!(document.spec.admin.address.to_string(), "127.0.0.1:9090");

    let errors =
        config::from_flags(&["a:1".to_owned(), "https://b".to_owned()], None, None).unwrap_err();
    assert_eq!(errors.findings().len(), 2);
}

#[test]
fn a_flag_goes_before_the_environment_and_both_before_the_file() {
    let mut document = example("laptop.yaml");
    let flags = Overrides { listen: Some("1.1.1.1:1".parse().unwrap()), ..Overrides::default() };
    let environment = Overrides {
        listen: Some("2.2.2.2:2".parse().unwrap()),
        access_log: Some(AccessLogTarget::from("off")),
        ..Overrides::default()
    };
    document.apply(&flags.or(environment));
    assert_eq!(document.spec.listener.address.to_string(), "1.1.1.1:1");
    assert_eq!(document.spec.access_log.target, AccessLogTarget::Off);
    assert_eq!(document.spec.admin.address.to_string(), "127.0.0.1:9090");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_that_names_it() {
    let errors = config::load(Path::new("no/such/file.yaml")).unwrap_err();
    assert!(
        errors.to_string().starts_with("no/such/file.yaml: error: cannot read the file"),
        "{errors}"
    );
}

#[test]
fn a_file_that_is_no_text_or_far_too_long_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    std::fs::write(&file, b"a: 1\nb: \xff\n").unwrap();
    assert!(config::load(&file).unwrap_err().to_string().contains("not UTF-8: byte 8, in line 2"));
    std::fs::write(&file, vec![b'#'; (4 << 20) + 1]).unwrap();
    assert!(config::load(&file).unwrap_err().to_string().contains("longer than 4 MiB"));
}

#[test]
fn beside_resources_a_document_need_not_name_what_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    let text = "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: { name: test }\nspec: { flowControl: {} }\n";
    std::fs::write(&file, text).unwrap();
    assert!(config::load(&file).unwrap_err().to_string().contains("there is nothing to serve"));
    let document = config::load_beside_resources(&file).unwrap();
    assert!(document.spec.schedulers.is_empty() && document.spec.flow_control.is_some());
}

use config::{DEFAULT_PICKER_DOCUMENT, PickerConfig};
use sched::{Profile, Weights, saturation};

use crate::testing::{at, body, document, exchange, gateway, scrape, served};
use crate::{Exchange, Gateway};

/// One pool of three endpoints, the second of them labelled, with this document below `inline`.
fn pool_with(picker: &str) -> std::sync::Arc<Gateway> {
    gateway(&format!(
        "  schedulers:
  - name: chat
    modelName: llama
    endpoints:
    - {{ url: 'http://10.0.0.1:8000', labels: {{ llm-d.ai/role: prefill, tokens: 0-10 }} }}
    - {{ url: 'http://10.0.0.2:8000', labels: {{ gpu: h100 }} }}
    - {{ url: 'http://10.0.0.3:8000', labels: {{ llm-d.ai/role: decode, gpu: t4, tokens: 1000-9000 }} }}
    saturation: {{ queueDepth: 77 }}
    pickerConfig: {{ inline: {{ apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig, {picker} }} }}
"
    ))
}

fn profile_of(gateway: &Gateway) -> std::sync::Arc<Profile> {
    gateway.catalog().get("llama").unwrap().pool.profile.clone()
}

fn endpoint_of(exchange: &mut Exchange) -> u32 {
    exchange.place(&body("llama"), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap().endpoint.0
}

/// Where each of thirty requests goes, each endpoint once, in order.
fn endpoints(gateway: &std::sync::Arc<Gateway>) -> Vec<u32> {
    let mut seen: Vec<u32> = (0..30).map(|_| endpoint_of(&mut exchange(gateway))).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn the_default_document_is_the_policy_reference() {
    let picker = PickerConfig::parse(DEFAULT_PICKER_DOCUMENT, "default").unwrap();
    let ours = super::profile(&picker, &[]);
    let reference = Profile::from_weights(&Weights::REFERENCE);
    assert_eq!(format!("{:?}", ours.scorers), format!("{:?}", reference.scorers));
    assert_eq!(format!("{:?}", ours.filters), format!("{:?}", reference.filters));
    assert_eq!(ours.picker.name(), reference.picker.name());
}

#[test]
fn every_plugin_of_a_profile_becomes_one_of_ours() {
    let text = include_str!("../../../../config/tests/picker/good/everything.yaml");
    let profile = super::profile(&PickerConfig::parse(text, "everything").unwrap(), &[]);
    let scorers: Vec<_> = profile.scorers.iter().map(|weighted| format!("{weighted:?}")).collect();
    let expected = [
        "0.5 * context-length",
        "2 * queue",
        "1 * running-requests",
        "2.5 * kv-cache",
        "1 * lora-affinity",
        "3 * prefix",
        "1 * prefix-length",
        "1 * load-aware",
        "1 * token-load",
        "1 * active-requests",
        "1 * no-hit-lru",
        "1 * session-affinity",
        "1 * expected-time",
    ];
    assert_eq!(scorers, expected);
    let filters: Vec<_> = profile.filters.iter().map(|filter| filter.name()).collect();
    let ours = ["not-serving", "asleep", "ejected", "stale"];
    let theirs = [
        "label-selector",
        "label-selector",
        "label-selector",
        "utilization",
        "prefix-affinity",
        "utilization-detector",
        "concurrency-detector",
        "context-length",
    ];
    assert_eq!(filters, [&ours[..], &theirs[..]].concat());
    assert_eq!(profile.picker.name(), "weighted-random");
}

#[test]
fn requests_go_where_the_documents_filters_let_them() {
    let decode = pool_with("plugins: [{ type: decode-filter }, { type: random-picker }]");
    assert_eq!(endpoints(&decode), [1, 2]);
    let gpu = pool_with(
        "plugins: [{ type: label-selector-filter, parameters: { matchLabels: { gpu: h100 } } }]",
    );
    assert_eq!(endpoints(&gpu), [1]);
    let short = pool_with(
        "plugins: [{ type: context-length-aware, parameters: { label: tokens, enableFiltering: true } }]",
    );
    assert_eq!(endpoints(&short), [0], "a prompt of a few tokens fits its narrow range best");
}

#[test]
fn requests_go_where_the_documents_scorers_rate_highest() {
    let gateway = pool_with("plugins: [{ type: load-aware-scorer }]");
    for (number, waiting) in [(0, 9), (1, 3), (2, 20)] {
        scrape(&gateway, number, waiting, 0.1);
    }
    assert_eq!(endpoints(&gateway), [1]);
}

#[test]
fn the_documents_detector_says_when_an_endpoint_is_full_and_else_the_gateways_does() {
    let settings =
        |picker: &str| pool_with(picker).catalog().get("llama").unwrap().pool.settings.saturation;
    let own = saturation::Config { queue_depth: 77, ..saturation::Config::default() };
    assert_eq!(settings("plugins: [{ type: queue-scorer }]"), own);
    let detector = "featureGates: [flowControl], plugins: [{ type: queue-scorer }]";
    let expected =
        saturation::Config { queue_depth: 5, kv_usage: Some(0.8), in_flight: None, reserve: None };
    assert_eq!(settings(detector), expected);
}

#[test]
fn a_pool_whose_endpoints_are_all_full_by_the_documents_detector_refuses() {
    let gateway = pool_with(
        "featureGates: [flowControl], plugins: [{ type: active-request-scorer }, { type: concurrency-detector, parameters: { maxConcurrency: 2 } }], \
         flowControl: { saturationDetector: { pluginRef: concurrency-detector } }, \
         schedulingProfiles: [{ name: a, plugins: [{ pluginRef: active-request-scorer }] }]",
    );
    let mut held = Vec::new();
    for _ in 0..6 {
        let mut exchange = exchange(&gateway);
        endpoint_of(&mut exchange);
        held.push(exchange);
    }
    let refusal = exchange(&gateway).place(&body("llama"), None, at(0)).unwrap_err();
    assert_eq!(refusal.status, 429, "two requests on each of three endpoints");
    held.pop();
    endpoint_of(&mut exchange(&gateway));
}

#[test]
fn whoever_asks_for_prefixes_gets_the_prompt_hashed() {
    let hashed = |plugin: &str| {
        pool_with(&format!("plugins: [{{ type: {plugin} }}]"))
            .catalog()
            .get("llama")
            .unwrap()
            .pool
            .scores_prefix
    };
    for plugin in [
        "prefix-cache-scorer",
        "prefix-cache-scorer, parameters: { matchLengthWeight: 0.3 }",
        "prefix-cache-affinity-filter",
        "no-hit-lru-scorer",
        "token-load-scorer",
        "expected-time-scorer",
    ] {
        assert!(hashed(plugin), "{plugin}");
    }
    assert!(!hashed("queue-scorer"));
}

#[test]
fn a_picker_from_a_flag_decides_in_discovered_pools_too() {
    let gateway = gateway("  discover: [{ url: 'http://10.0.0.1:1' }]\n");
    let mut document = document("  discover: [{ url: 'http://10.0.0.1:1' }]\n");
    let text =
        DEFAULT_PICKER_DOCUMENT.replace("apiVersion", "featureGates: [flowControl]\napiVersion");
    document.use_picker(PickerConfig::parse(&text, "flag").unwrap());
    gateway.apply(&document);
    gateway.note_served(&"http://10.0.0.1:1".parse().unwrap(), vec![served("llama", None)]);
    assert_eq!(profile_of(&gateway).name, "picker-config");
    let settings = gateway.catalog().get("llama").unwrap().pool.settings.clone();
    assert_eq!(settings.saturation.queue_depth, 5);
}

//! The field's `EndpointPickerConfig`: what is read, what it comes to, and what is said of the rest.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use config::schema::{Field, Kind, Presence, Section};
use config::{
    AnyDocument, DEFAULT_PICKER_DOCUMENT, LabelRule, PickerConfig, PickerFilter, PickerGroup,
    PickerKind, ScorerKind, Support,
};
use wicketgate_config as config;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/picker").join(folder);
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

fn read(text: &str) -> PickerConfig {
    PickerConfig::parse(text, "plugins.yaml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn good(name: &str) -> PickerConfig {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/picker/good").join(name);
    read(&std::fs::read_to_string(file).unwrap())
}

fn with(plugin: &str, reference: &str) -> PickerConfig {
    read(&format!(
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- {plugin}\n\
         schedulingProfiles:\n- name: a\n  plugins:\n  - pluginRef: {reference}\n"
    ))
}

#[test]
fn a_document_comes_to_what_the_golden_summary_says() {
    for file in files("good") {
        let config = read(&std::fs::read_to_string(&file).unwrap());
        let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
        let text = format!("{}\n\n{}", config.summary(), warnings.join("\n\n"));
        insta::assert_snapshot!(format!("good-{}", stem(&file)), text.trim_end());
    }
}

#[test]
fn a_document_that_cannot_be_used_gets_the_golden_report() {
    for file in files("bad") {
        let text = std::fs::read_to_string(&file).unwrap();
        let report = match PickerConfig::parse(&text, "plugins.yaml") {
            Ok(config) => panic!("{} was accepted: {}", file.display(), config.summary()),
            Err(errors) => errors.to_string(),
        };
        insta::assert_snapshot!(format!("bad-{}", stem(&file)), report);
    }
}

#[test]
fn the_default_document_asks_for_two_two_three_and_so_does_none() {
    let config = read(DEFAULT_PICKER_DOCUMENT);
    assert_eq!(config, PickerConfig::default());
    assert_eq!(read(""), config);
    assert_eq!(read("# nothing but a comment\n"), config);
    assert!(config.warnings.is_empty());
    let weights: Vec<_> =
        config.scorers.iter().map(|scorer| (scorer.kind.to_string(), scorer.weight)).collect();
    let expected = [("queue", 2.0), ("kv-cache", 2.0), ("prefix", 3.0)];
    assert_eq!(weights, expected.map(|(name, weight)| (name.to_owned(), weight)));
    assert_eq!((config.picker, config.destinations), (PickerKind::MaxScore, 1));
}

#[test]
fn both_groups_mean_the_same() {
    let old = good("legacy-group.yaml");
    assert_eq!(old.group, PickerGroup::InferenceExtension);
    let new = PickerConfig { warnings: old.warnings.clone(), ..PickerConfig::default() };
    assert_eq!(PickerConfig { group: PickerGroup::LlmD, ..old }, new);
}

#[test]
fn a_weight_that_is_not_written_is_one() {
    assert_eq!(with("type: queue-scorer", "queue-scorer").scorers[0].weight, 1.0);
}

/// A parameter that is in the table and that nobody reads would leave the document unchanged.
#[test]
fn every_parameter_of_a_plugin_that_we_have_changes_what_it_does_or_warns() {
    let mut tried = 0;
    for plugin in config::plugins().filter(|plugin| plugin.support == Support::Kept) {
        let required = required(plugin.parameters, plugin.name);
        let base = with(
            &format!("{{ type: {}, parameters: {{ {required} }} }}", plugin.name),
            plugin.name,
        );
        for field in plugin.parameters.fields {
            // Names of producers, of which there is one each, and what `required` writes already.
            let is_name = field.key.ends_with("Name") || field.key.starts_with("prefixPlugin");
            if (is_name && field.key != "profileName") || required.contains(field.key) {
                continue;
            }
            let Some(value) = other_value(plugin.name, field) else { continue };
            let text = format!(
                "{{ type: {}, parameters: {{ {required} {}: {value} }} }}",
                plugin.name, field.key
            );
            assert_ne!(with(&text, plugin.name), base, "{text}");
            tried += 1;
        }
    }
    assert!(tried >= 20, "{tried}");
}

fn required(section: &Section, plugin: &str) -> String {
    match plugin {
        "session-affinity-scorer" => "strategy: session_id,".to_owned(),
        "by-label" => "label: a, validValues: [b],".to_owned(),
        "utilization-filter" => "conditions: [{ metric: waiting-queue, maxValue: 1 }],".to_owned(),
        // What the length counts for decides whether its scale does.
        "prefix-cache-scorer" => "matchLengthWeight: 0.5,".to_owned(),
        _ => {
            assert!(section.fields.iter().all(|field| field.presence != Presence::Required));
            String::new()
        }
    }
}

fn other_value(plugin: &str, field: &Field) -> Option<&'static str> {
    Some(match (plugin, field.key) {
        (_, "explorationProbability" | "encodedEndpointHeaderConfig") => return None,
        // Counted in modes that are not the default.
        (_, "maxTokenConcurrency") => "7, concurrencyMode: tokens",
        (_, "sessionIdConfig") => "{ evictionTtlSeconds: 1 }",
        (_, "concurrencyMode") => "hybrid",
        (_, "ttftSource") => "latencyPredictor",
        (_, "matchLabels") => "{ a: b }",
        (_, "matchExpressions") => "[{ key: a, operator: Exists }]",
        (_, "metricsStalenessThreshold") => "1s",
        _ => match field.kind {
            Kind::Flag => "true",
            Kind::Share => "0.25",
            Kind::Integer { .. } | Kind::Number { max: 1.1.., .. } => "3",
            Kind::Number { .. } => "0.5",
            _ => "other",
        },
    })
}

#[test]
fn every_help_is_a_sentence_and_every_plugin_is_named_once() {
    let mut names = std::collections::HashSet::new();
    for plugin in config::plugins() {
        assert!(names.insert(plugin.name), "{} twice", plugin.name);
        match plugin.support {
            Support::Missing { instead, without } => {
                assert!(!instead.is_empty() && !without.is_empty(), "{}", plugin.name);
            }
            _ => assert!(plugin.help.ends_with('.'), "{}: {}", plugin.name, plugin.help),
        }
        for key in plugin.idle {
            assert!(plugin.parameters.fields.iter().any(|field| field.key == *key), "{key}");
        }
        for field in plugin.parameters.fields {
            assert!(field.help.ends_with('.') && !field.help.contains('|'), "{}", field.help);
        }
    }
    assert!(names.len() > 90, "{}", names.len());
}

#[test]
fn a_plugin_that_is_not_supported_is_an_error_that_names_the_nearest() {
    for plugin in config::plugins() {
        let Support::Missing { instead, without } = plugin.support else { continue };
        let text = format!(
            "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: {}\n",
            plugin.name
        );
        let errors = PickerConfig::parse(&text, "plugins.yaml").unwrap_err();
        let [finding] = errors.findings() else { panic!("{errors}") };
        assert_eq!((finding.line, finding.column), (4, 9), "{errors}");
        assert!(finding.message.contains(plugin.name), "{errors}");
        let hint = finding.hint.as_deref().unwrap_or_default();
        assert!(hint.contains(instead) && hint.contains(without), "{errors}");
    }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn rule(plugin: &str, reference: &str) -> LabelRule {
    match with(plugin, reference).filters.remove(0) {
        PickerFilter::Labels(rule) => rule,
        other => panic!("{other}"),
    }
}

#[test]
fn the_decode_filter_keeps_whoever_can_decode_and_whoever_says_nothing() {
    let rule = rule("type: decode-filter", "decode-filter");
    for (role, keeps) in [
        ("decode", true),
        ("prefill-decode", true),
        ("encode-prefill-decode", true),
        ("both", true),
        ("prefill", false),
        ("encode-prefill", false),
        ("", false),
    ] {
        assert_eq!(rule.keeps(&labels(&[("llm-d.ai/role", role)])), keeps, "{role}");
    }
    assert!(rule.keeps(&labels(&[("role", "prefill")])));
}

#[test]
fn a_label_selector_selects_as_kubernetes_does() {
    let select = |parameters: &str| {
        let plugin = format!("{{ type: label-selector-filter, parameters: {{ {parameters} }} }}");
        let rule = rule(&plugin, "label-selector-filter");
        [&[("gpu", "h100")][..], &[("gpu", "t4"), ("zone", "a")], &[]]
            .map(|pairs| rule.keeps(&labels(pairs)))
    };
    let expression = |operator: &str| {
        select(&format!("matchExpressions: [{{ key: gpu, operator: {operator} }}]"))
    };
    assert_eq!(select(""), [true, true, true]);
    assert_eq!(select("matchLabels: { gpu: t4, zone: a }"), [false, true, false]);
    assert_eq!(expression("In, values: [h100]"), [true, false, false]);
    assert_eq!(expression("NotIn, values: [h100]"), [false, true, true]);
    assert_eq!(expression("Exists"), [true, true, false]);
    assert_eq!(expression("DoesNotExist"), [false, false, true]);
}

#[test]
fn the_detector_decides_when_the_pool_is_full_only_with_flow_control() {
    let saturation = |gates: &str, detector: &str| {
        read(&format!(
            "{{ apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig, featureGates: [{gates}], \
             plugins: [{{ type: queue-scorer }}{detector}] }}"
        ))
        .saturation
    };
    assert_eq!(saturation("", ", { type: utilization-detector }"), None);
    assert_eq!(saturation("flowControl=false", ""), None);
    let default = saturation("flowControl", "").unwrap();
    assert_eq!(default.queue_depth.unwrap().get(), 5);
    assert_eq!(default.kv_usage.unwrap().get(), 0.8);
    let own = "flowControl";
    let deep = ", { type: utilization-detector, parameters: { queueDepthThreshold: 9 } }";
    assert_eq!(saturation(own, deep).unwrap().queue_depth.unwrap().get(), 9);
    assert_eq!(good("warnings.yaml").saturation.unwrap().concurrency.unwrap().get(), 132);
}

const GATEWAY: &str = "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\n";

fn gateway(picker: &str) -> String {
    format!(
        "{GATEWAY}spec:\n  schedulers:\n  - name: a\n    modelName: m\n    endpoints: [{{ url: http://a }}]\n    {picker}\n"
    )
}

#[test]
fn a_gateways_document_takes_a_picker_from_a_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    std::fs::write(&file, gateway("pickerConfig: { file: plugins.yaml }")).unwrap();
    let errors = config::load(&file).unwrap_err();
    assert!(errors.to_string().contains("plugins.yaml: error: cannot read the file"), "{errors}");

    let plugins = folder.path().join("plugins.yaml");
    std::fs::write(&plugins, DEFAULT_PICKER_DOCUMENT).unwrap();
    let document = config::load(&file).unwrap();
    assert_eq!(document.spec.schedulers[0].picker_config, Some(PickerConfig::default()));
    assert!(document.warnings.is_empty());

    std::fs::write(&plugins, DEFAULT_PICKER_DOCUMENT.replace("queue", "qeue")).unwrap();
    let errors = config::load(&file).unwrap_err();
    let first = &errors.findings()[0];
    assert!(first.source.ends_with("plugins.yaml") && first.line == 4, "{errors}");

    let text = include_str!("picker/good/warnings.yaml");
    std::fs::write(&plugins, text).unwrap();
    let document = config::load(&file).unwrap();
    assert_eq!(document.warnings, PickerConfig::load(&plugins).unwrap().warnings);
    let picker = document.spec.schedulers[0].picker_config.as_ref().unwrap();
    assert!(picker.warnings.is_empty(), "told once, and no part of the settings");
}

#[test]
fn a_gateways_document_takes_a_picker_within_it() {
    let inline = "pickerConfig:\n      inline: { apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig, plugins: [{ type: random-picker }, { type: queue-scorer }] }";
    let document = config::parse(&gateway(inline), "gateway.yaml").unwrap();
    let picker = document.spec.schedulers[0].picker_config.as_ref().unwrap();
    assert_eq!(picker.picker, PickerKind::Random);
    assert_eq!(picker.scorers[0].kind, ScorerKind::Queue);

    let wrong = inline.replace("queue-scorer", "latency-scorer");
    let errors = config::parse(&gateway(&wrong), "gateway.yaml").unwrap_err();
    let [finding] = errors.findings() else { panic!("{errors}") };
    assert_eq!(finding.path, "spec.schedulers[0].pickerConfig.inline.plugins[1].type");
    assert_eq!(finding.line, 9);
}

#[test]
fn what_a_picker_excludes_or_lacks_gets_the_golden_report() {
    let texts = [
        "pickerConfig: {}",
        "pickerConfig: { file: plugins.yaml }",
        "pickerConfig: { file: plugins.yaml, inline: {} }",
        "pickerConfig: { inline: [] }",
        "policy: reference\n    weights: { queue: 1 }\n    pickerConfig: { inline: { apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig } }",
        "pickerConfig: { fiel: plugins.yaml }",
    ];
    let report = |picker| match config::parse(&gateway(picker), "gateway.yaml") {
        Ok(document) => panic!("accepted: {:?}", document.spec),
        Err(errors) => errors.to_string(),
    };
    let reports: Vec<_> = texts.into_iter().map(report).collect();
    insta::assert_snapshot!("excluded", reports.join("\n\n"));
}

#[test]
fn a_picker_from_a_flag_decides_in_every_pool() {
    let text = format!(
        "{GATEWAY}spec:\n  discover: [{{ url: http://d }}]\n  schedulers:\n  - {{ name: a, modelName: m, endpoints: [{{ url: http://a }}], policy: reference }}\n"
    );
    let mut document = config::parse(&text, "gateway.yaml").unwrap();
    document.use_picker(good("warnings.yaml"));
    assert!(!document.warnings.is_empty());
    let picker = document.spec.discover_picker.clone().unwrap();
    assert!(picker.warnings.is_empty());
    assert_eq!(document.spec.schedulers[0].picker_config, Some(picker));
}

#[test]
fn a_file_of_either_kind_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let kind = |text: &str| {
        let file = folder.path().join("document.yaml");
        std::fs::write(&file, text).unwrap();
        match config::load_any(&file) {
            Ok(AnyDocument::Gateway(_)) => "gateway".to_owned(),
            Ok(AnyDocument::Picker(_)) => "picker".to_owned(),
            Ok(AnyDocument::Global(_)) => "global".to_owned(),
            Err(errors) => errors.to_string(),
        }
    };
    assert_eq!(kind(DEFAULT_PICKER_DOCUMENT), "picker");
    let gateway = format!("{GATEWAY}spec: {{ discover: [{{ url: http://a }}] }}\n");
    assert_eq!(kind(&gateway), "gateway");
    assert!(kind("").contains("the document is empty"));
    let wrong = kind(&DEFAULT_PICKER_DOCUMENT.replace("weight: 2", "wait: 2"));
    assert!(wrong.contains("plugins[0].wait"), "{wrong}");
}

#[test]
fn a_picker_where_a_gateway_is_expected_is_told_its_place() {
    let errors = config::parse(DEFAULT_PICKER_DOCUMENT, "plugins.yaml").unwrap_err();
    let hint = errors.findings()[0].hint.clone().unwrap();
    assert!(hint.contains("schedulers[].pickerConfig.file"), "{hint}");
}

#[test]
fn the_page_of_plugins_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/picker-config.md");
    assert!(
        std::fs::read_to_string(page).unwrap_or_default() == config::picker_markdown(),
        "run: cargo run -p wicketgate-config --example picker-reference > docs/picker-config.md"
    );
}

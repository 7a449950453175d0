//! What is said about documents that are wrong: one golden report for each file in `tests/bad`.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::path::Path;

use wicketgate_config as config;

fn report_of(text: &str) -> String {
    match config::parse(text, "gateway.yaml") {
        Ok(document) => panic!("accepted: {:?}", document.spec),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn reports_are_the_golden_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 12);
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        insta::assert_snapshot!(name, report_of(&std::fs::read_to_string(&file).unwrap()));
    }
}

#[test]
fn warnings_are_the_golden_ones() {
    let text = "apiVersion: gateway.wicketgate.dev/v1alpha1
kind: InferenceGatewayConfig
spec:
  bbr: { enabled: true, replicas: 3 }
  tls: {}
  observability: { metrics: { enabled: false } }
  auth:
    jwt:
      provider:
        name: idp
        issuer: https://login.example.org
        remoteJWKS: { uri: https://login.example.org/keys }
        audiences: [gateway]
  schedulers:
    - name: a
      modelName: a
      engineType: tgi
      endpoints: [{ url: http://a:8000 }]
      weights: { kvCache: 1, loraAffinity: 1, predictedLatency: 1 }
      env: [{ name: A, value: b }]
      replicas: 2 # the default, hence no warning
    - name: b
      modelName: b
      endpoints: [{ url: http://a:8000/ }, { url: http://b:8000 }]
      weights: { predictedLatency: 0 }
      env: []
    - name: c
      modelName: c
      modelSelector: { matchLabels: { app: c } }
      env: []
    - { name: d, modelName: d, endpoints: [] }
  discover: [{ url: http://b:8000 }]
";
    let document = config::parse(text, "gateway.yaml").unwrap();
    let warnings: Vec<_> = document.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("warnings", warnings.join("\n\n"));
}

#[test]
fn warnings_about_an_aws_manifest_are_the_golden_ones() {
    let text = include_str!("../../../docs/examples/aws-manifest.yaml").replace("  tls: {}\n", "");
    let document = config::parse(&text, "gateway.yaml").unwrap();
    let warnings: Vec<_> = document.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("warnings-aws", warnings.join("\n\n"));
}

#[test]
fn an_error_knows_its_place() {
    let text = "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
                schedulers:\n    - name: a\n      modelName: m\n      endpoints: [{url: http://a}]\n      \
                scheduler: epp\n      weights: { lru: 1 }\n";
    let errors = config::parse(text, "gateway.yaml").unwrap_err();
    let [finding] = errors.findings() else { panic!("{errors}") };
    assert_eq!(finding.path, "spec.schedulers[0].weights.lru");
    assert_eq!((finding.line, finding.column), (9, 23));
    assert!(finding.hint.is_some());
}

#[test]
fn a_document_that_is_wrong_all_over_gets_fifty_errors_and_a_count() {
    let mut text =
        String::from("apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\n");
    text.push_str("spec:\n  discover: [{ url: http://a }]\n");
    for key in 0..20_000 {
        text.push_str(&format!("  key{key}: 1\n"));
    }
    let errors = config::parse(&text, "gateway.yaml").unwrap_err();
    assert_eq!(errors.findings().len(), 51);
    assert!(errors.to_string().ends_with("gateway.yaml: error: 19950 more errors are not shown"));
}

#[test]
fn a_huge_or_deep_document_is_refused() {
    let huge = "a".repeat((4 << 20) + 1);
    assert_eq!(
        report_of(&huge),
        "gateway.yaml: error: the document is longer than 4 MiB, which no gateway needs"
    );
    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(report_of(&deep).contains("nested deeper than 32 levels"), "{}", report_of(&deep));
    let block: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(report_of(&block).contains("nested deeper than 32 levels"), "{}", report_of(&block));
    let wide = format!("a: [{}]", "1,".repeat(500_000));
    assert!(
        report_of(&wide).contains("too large: more than a gateway can need"),
        "{}",
        report_of(&wide)
    );
}

#[test]
fn a_hundred_and_one_schedulers_are_too_many_for_awss_group_only() {
    let document = |group: &str, where_to: &dyn Fn(usize) -> String| {
        let scheduler = |n| format!("    - {{ name: s{n}, modelName: m{n}, {} }}\n", where_to(n));
        let schedulers: String = (0..101).map(scheduler).collect();
        format!(
            "apiVersion: {group}/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: many }}\n\
             spec:\n  schedulers:\n{schedulers}"
        )
    };
    let aws = document("inference.sagemaker.aws.amazon.com", &|n| {
        format!("modelSelector: {{ matchLabels: {{ app: a{n} }} }}")
    });
    let report = report_of(&aws);
    assert!(report.contains("has 101 items, at most 100 are allowed"), "{report}");
    let ours = document("gateway.wicketgate.dev", &|n| {
        format!("endpoints: [{{ url: 'http://a:{}' }}]", n + 1)
    });
    let accepted = config::parse(&ours, "gateway.yaml").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(accepted.spec.schedulers.len(), 101);
}

#[test]
fn no_control_character_of_a_document_reaches_the_terminal() {
    let text = include_str!("bad/control-characters.yaml");
    let report = report_of(text);
    assert!(report.chars().all(|c| c == '\n' || !c.is_control()), "{report:?}");
}

//! The section `modelRewrites`.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::time::Duration;

use config::schema::{Field, walk};
use config::{Document, Mirror, ModelRewrite, Rollback, Sticky};
use types::Ratio;
use wicketgate_config as config;

fn text(rewrites: &str) -> String {
    format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  schedulers:\n  \
         - name: chat\n    modelName: llama\n    loraAdapters: [llama-ft]\n    endpoints: [{{ url: 'http://a' }}]\n  \
         - name: next\n    modelName: llama-4\n    endpoints: [{{ url: 'http://b' }}]\n  modelRewrites:\n{rewrites}"
    )
}

fn document(rewrites: &str) -> Document {
    config::parse(&text(rewrites), "test").unwrap_or_else(|errors| panic!("{errors}"))
}

fn rewrite(rewrites: &str) -> ModelRewrite {
    document(rewrites).spec.model_rewrites.remove(0)
}

fn refused(rewrites: &str) -> String {
    match config::parse(&text(rewrites), "test") {
        Ok(document) => panic!("accepted: {:?}", document.spec.model_rewrites),
        Err(errors) => errors.to_string(),
    }
}

fn doubted(rewrites: &str) -> String {
    let warnings = document(rewrites).warnings;
    warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// One rewrite `r` whose only rule is this.
fn rule(rule: &str) -> String {
    format!("  - name: r\n    rules:\n    - {}\n", rule.replace('\n', "\n      "))
}

const SPLIT: &str =
    "targets: [{ modelRewrite: llama, weight: 90 }, { modelRewrite: llama-4, weight: 10 }]";

#[test]
fn the_spec_of_an_inference_model_rewrite_is_read_as_it_is() {
    let rewrite = rewrite(
        "  - name: canary
    poolRef: { group: inference.networking.k8s.io, kind: InferencePool, name: chat }
    rules:
    - matches: [{ model: { type: Exact, value: chat-model } }, { model: { value: other } }]
      targets:
      - { weight: 90, modelRewrite: llama }
      - { weight: 10, modelRewrite: llama-ft }
",
    );
    assert_eq!((&*rewrite.name, rewrite.pool.unwrap().as_str()), ("canary", "chat"));
    let rule = &rewrite.rules[0];
    let names: Vec<_> = rule.matches.iter().map(types::ModelName::as_str).collect();
    assert_eq!(names, ["chat-model", "other"]);
    let weights: Vec<_> =
        rule.targets.iter().map(|target| (target.model.as_str(), target.weight)).collect();
    assert_eq!(weights, [("llama", 90), ("llama-ft", 10)]);
    assert_eq!((rule.sticky, &rule.mirror, &rule.rollback), (Sticky::None, &None, &None));
}

#[test]
fn every_field_of_ours_is_read() {
    let found = rewrite(&rule(
        "targets: [{ modelRewrite: llama, weight: 1, stable: true }, { modelRewrite: llama-4, weight: 9 }]
sticky: user
mirror: { modelRewrite: llama-ft, share: 0.25, concurrencyMax: 7 }
rollback: { errorRate: 0.1, ttftRatio: 3, ttftSlack: 1s, window: 1m, minRequests: 20 }",
    ));
    let rule = &found.rules[0];
    assert_eq!((rule.sticky, rule.targets[0].stable), (Sticky::User, true));
    let mirror = rule.mirror.as_ref().unwrap();
    assert_eq!((mirror.share, mirror.concurrency_max.get()), (Ratio::new(0.25).unwrap(), 7));
    let rollback = rule.rollback.as_ref().unwrap();
    assert_eq!((rollback.error_rate, rollback.ttft_ratio), (Ratio::new(0.1).unwrap(), 3.0));
    assert_eq!(rollback.ttft_slack, Duration::from_secs(1));
    assert_eq!((rollback.window, rollback.requests_min.get()), (Duration::from_secs(60), 20));
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let mut mirror = String::new();
    let mut rollback = String::new();
    walk(&mut |path: &str, field: &Field| {
        let Some(default) = field.default else { return };
        let entry = format!(", {}: {default}", field.key);
        if path.starts_with("spec.modelRewrites[].rules[].mirror.") {
            mirror.push_str(&entry);
        } else if path.starts_with("spec.modelRewrites[].rules[].rollback.") {
            rollback.push_str(&entry);
        }
    });
    assert!(mirror.matches(':').count() == 2 && rollback.matches(':').count() == 5);
    let written = rewrite(&rule(&format!(
        "{SPLIT}\nsticky: none\nmirror: {{ modelRewrite: llama-4{mirror} }}\nrollback: {{ {} }}",
        &rollback[2..]
    )));
    let rule = &written.rules[0];
    assert_eq!(rule.mirror, Some(Mirror::new("llama-4".into())));
    assert_eq!(rule.rollback, Some(Rollback::default()));
}

#[test]
fn targets_without_weights_share_alike_and_some_without_are_refused() {
    let found = rewrite(&rule("targets: [{ modelRewrite: llama }, { modelRewrite: llama-4 }]"));
    assert!(found.rules[0].targets.iter().all(|target| target.weight == 1));
    let mixed =
        refused(&rule("targets: [{ modelRewrite: llama, weight: 9 }, { modelRewrite: llama-4 }]"));
    assert!(mixed.contains("this one has none: it would never be chosen"), "{mixed}");
    assert!(mixed.contains("spec.modelRewrites[0].rules[0].targets[1]"), "{mixed}");
    let zero = refused(&rule("targets: [{ modelRewrite: llama, weight: 0 }]"));
    assert!(zero.contains("all weights are 0"), "{zero}");
}

#[test]
fn what_contradicts_itself_is_refused_with_its_place() {
    let twice = format!("{}{}", rule(SPLIT), rule(SPLIT));
    for (rewrites, wanted) in [
        (twice, "Duplicate value: \"r\""),
        (rule("targets: []"), "targets"),
        (rule("targets: [{ modelRewrite: ' x' }]"), "cannot be a model's name"),
        (rule("targets: [{ modelRewrite: a }, { modelRewrite: a }]"), "`a` is a target twice"),
        (
            rule("targets: [{ modelRewrite: a, stable: true }, { modelRewrite: b, stable: true }]"),
            "there is a stable target already",
        ),
        (rule(&format!("{SPLIT}\nsticky: always")), "sticky"),
        (rule(&format!("{SPLIT}\nrollback: {{ errorRate: 2 }}")), "errorRate"),
        (
            format!("  - name: r\n    poolRef: {{ name: chad }}\n    rules: [{{ {SPLIT} }}]\n"),
            "did you mean `chat`?",
        ),
        (rule("matches: [{}]\ntargets: [{ modelRewrite: a }]"), "model"),
    ] {
        let report = refused(&rewrites);
        assert!(report.contains(wanted), "`{wanted}` is not in:\n{report}");
    }
}

#[test]
fn a_target_that_nobody_serves_is_doubted_unless_endpoints_are_asked() {
    let rewrites =
        rule("targets: [{ modelRewrite: llama, weight: 1 }, { modelRewrite: llama-5, weight: 1 }]");
    let doubts = doubted(&rewrites);
    assert!(doubts.contains("no scheduler has the model or adapter `llama-5`"), "{doubts}");
    let discovering = format!("{}  discover: [{{ url: 'http://c' }}]\n", text(&rewrites));
    assert!(config::parse(&discovering, "test").unwrap().warnings.is_empty());
    assert_eq!(doubted(&rule(SPLIT)), "");
}

#[test]
fn what_is_hardly_meant_is_doubted() {
    let shadowed = format!("{}{}", rule(SPLIT), rule(SPLIT).replace("name: r", "name: s"));
    let exact = |name: &str| {
        rule(&format!("matches: [{{ model: {{ value: m }} }}]\n{SPLIT}"))
            .replace("name: r", &format!("name: {name}"))
    };
    let even = "targets: [{ modelRewrite: llama }, { modelRewrite: llama-4 }]\nrollback: {}";
    for (rewrites, wanted) in [
        (shadowed, "every model has a rule already, in line"),
        (format!("{}{}", exact("r"), exact("s")), "this model has a rule already"),
        (rule(&format!("{SPLIT}\nmirror: {{ modelRewrite: llama-ft }}")), "answer clients too"),
        (rule(even), "no target is the heaviest"),
        (rule("targets: [{ modelRewrite: llama }]\nrollback: {}"), "a single target"),
    ] {
        let report = doubted(&rewrites);
        assert!(report.contains(wanted), "`{wanted}` is not in:\n{report}");
    }
}

#[test]
fn awss_group_knows_no_rewrites() {
    let aws = "apiVersion: inference.sagemaker.aws.amazon.com/v1alpha1\nkind: InferenceGatewayConfig\n\
               metadata: { name: g }\nspec:\n  bbr: { enabled: true }\n  schedulers: [{ name: a, modelName: m, modelSelector: {} }]\n  \
               modelRewrites: []\n";
    assert!(config::parse(aws, "test").unwrap_err().to_string().contains("modelRewrites"));
}

//! Rate limits in a document: what they become, and the contradictions that are found.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use wicketgate_config::{self as config, Severity};

fn document(rules: &str) -> String {
    format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  schedulers:\n  \
         - {{ name: a, modelName: llama, loraAdapters: [sql], endpoints: [{{ url: http://a }}] }}\n  rateLimits:\n{rules}\n"
    )
}

/// Path, severity and message of each finding.
fn findings(rules: &str) -> Vec<(String, bool, String)> {
    let parsed = config::parse(&document(rules), "test.yaml");
    let all = match parsed {
        Ok(document) => document.warnings,
        Err(errors) => errors.into_iter().collect(),
    };
    let about = all.into_iter().filter(|finding| finding.path.starts_with("spec.rateLimits"));
    about.map(|one| (one.path, one.severity == Severity::Error, one.message)).collect()
}

#[track_caller]
fn assert_found(rules: &str, path: &str, is_error: bool, message: &str) {
    let found = findings(rules);
    let fits = |(at, error, text): &(String, bool, String)| {
        at == path && *error == is_error && text.contains(message)
    };
    assert!(found.iter().any(fits), "no `{message}` at {path}: {found:#?}");
}

#[test]
fn a_rule_is_read_as_it_is_written() {
    let text = document(
        "  - name: fair
    per: [tenant, model]
    match: { routes: [/v1/chat/completions], models: [llama, sql], priorities: [Standard, \"7\"] }
    requests: { perSecond: 5, burst: 10 }
    tokens: { perMinute: 1000, perDay: 50000, outputWeight: 2.5 }
    concurrent: 3
    shadow: true
    overrides: [{ models: [sql], factor: 0.5 }]",
    );
    let spec = config::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors}")).spec;
    insta::assert_debug_snapshot!(spec.rate_limits[0]);
}

#[test]
fn a_rule_that_contradicts_itself_is_an_error_with_its_place() {
    let cases = [
        ("  - { name: a }", "", "limits nothing"),
        ("  - { name: a, requests: {} }", ".requests", "no amount"),
        ("  - { name: a, requests: { perDay: 9, burst: 2 } }", ".requests.burst", "means nothing"),
        (
            "  - { name: a, requests: { perDay: 9, perSecond: 5, burst: 10 } }",
            ".requests.burst",
            "more than the whole day",
        ),
        (
            "  - { name: a, requests: { perHour: 9, perSecond: 5, burst: 2 } }",
            ".requests.burst",
            "whose is it",
        ),
        (
            "  - { name: a, match: { priorities: [urgent] }, concurrent: 1 }",
            ".match.priorities[0]",
            "no priority",
        ),
        (
            "  - { name: a, concurrent: 1, overrides: [{ tenants: [x], factor: 2 }] }",
            ".overrides[0].tenants",
            "no bucket for each tenant",
        ),
        (
            "  - { name: a, per: [model], match: { models: [llama] }, concurrent: 1, overrides: [{ models: [sql], factor: 2 }] }",
            ".overrides[0].models",
            "never applies to `sql`",
        ),
        (
            "  - { name: a, per: [tenant], concurrent: 1, overrides: [{ factor: 2 }] }",
            ".overrides[0]",
            "names nobody",
        ),
        (
            "  - { name: a, per: [tenant], requests: { perMinute: 60, burst: 5 }, overrides: [{ tenants: [x], factor: 0.1 }] }",
            ".overrides[0].factor",
            "less than one",
        ),
    ];
    for (rule, path, message) in cases {
        assert_found(rule, &format!("spec.rateLimits[0]{path}"), true, message);
    }
    assert_found(
        "  - { name: a, concurrent: 1 }\n  - { name: a, concurrent: 2 }",
        "spec.rateLimits[1].name",
        true,
        "Duplicate",
    );
}

#[test]
fn a_limit_of_a_key_above_its_tenants_is_told() {
    let rules = |key: &str| {
        format!(
            "  - {{ name: tenant, per: [tenant], requests: {{ perMinute: 60 }} }}\n  - {{ name: key, per: [key], requests: {{ {key} }} }}"
        )
    };
    assert_found(&rules("perMinute: 100"), "spec.rateLimits[1].requests", false, "never reached");
    assert_found(&rules("perMinute: 60"), "spec.rateLimits[1].requests", false, "never reached");
    for sound in ["perMinute: 30", "perMinute: 100, burst: 5", "perHour: 100"] {
        let found = findings(&rules(sound));
        assert!(
            !found.iter().any(|(.., text)| text.contains("never reached")),
            "{sound}: {found:#?}"
        );
    }
}

#[test]
fn a_rule_that_no_request_meets_is_told() {
    assert_found(
        "  - { name: a, match: { models: [lama] }, concurrent: 1 }",
        "spec.rateLimits[0].match.models[0]",
        false,
        "no scheduler serves",
    );
    assert_found(
        "  - { name: a, match: { tenants: [x] }, concurrent: 1 }",
        "spec.rateLimits[0].match.tenants[0]",
        false,
        "never applies",
    );
    assert_found(
        "  - { name: a, per: [key], concurrent: 1 }",
        "spec.rateLimits[0].per",
        false,
        "without `auth`",
    );
    assert_found(
        "  - { name: a, match: { routes: [/v1/chat] }, concurrent: 1 }",
        "spec.rateLimits[0].match.routes[0]",
        true,
        "Unsupported value",
    );
    assert_found(
        "  - { name: a, requests: { perMinute: 1, perDay: 1440 } }",
        "spec.rateLimits[0].requests.perDay",
        false,
        "never reached",
    );
    assert!(
        findings("  - { name: a, match: { models: [sql], tenants: [anonymous] }, concurrent: 1 }")
            .is_empty()
    );
}

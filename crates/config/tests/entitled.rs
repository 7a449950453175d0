//! What one block of a document says of tenants, keys, models and priorities, held against the others.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use wicketgate_config::{self as config, Severity};

const FLOW: &str = "  flowControl: {}\n  objectives: [{ name: fast, priority: Critical }, { name: slow, priority: Sheddable }]\n";

/// Path, severity and the whole text of each finding that is not about the missing `auth`.
fn findings(spec: &str) -> Vec<(String, Severity, String)> {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         schedulers: [{{ name: chat, modelName: llama, endpoints: [{{ url: 'http://a' }}] }}]\n{spec}"
    );
    let all = match config::parse(&text, "test.yaml") {
        Ok(document) => document.warnings,
        Err(errors) => errors.into_iter().collect(),
    };
    all.into_iter().map(|one| (one.path.clone(), one.severity, one.to_string())).collect()
}

#[track_caller]
fn assert_found(spec: &str, severity: Severity, path: &str, said: &str) {
    let found = findings(spec);
    let fits = |(at, of, text): &(String, Severity, String)| {
        at == path && *of == severity && text.contains(said) && text.contains("test.yaml:")
    };
    assert!(found.iter().any(fits), "no `{said}` at {path}: {found:#?}");
}

#[track_caller]
fn assert_sound(spec: &str) {
    let found = findings(spec);
    assert!(found.is_empty(), "{spec}: {found:#?}");
}

fn auth(rest: &str) -> String {
    format!("  auth: {{ apiKeys: {{ file: keys }}, {rest} }}\n")
}

fn limit(rest: &str) -> String {
    format!("  rateLimits: [{{ name: r, per: [tenant, key], concurrent: 1, {rest} }}]\n")
}

#[test]
fn a_limit_for_a_tenant_that_no_caller_is_never_applies() {
    let callers = auth("callers: [{ name: a, tenant: research }, { name: support }]");
    for (rest, path) in [
        ("match: { tenants: [reserach] }", "spec.rateLimits[0].match.tenants[0]"),
        (
            "overrides: [{ tenants: [support, reserach], factor: 2 }]",
            "spec.rateLimits[0].overrides[0].tenants[1]",
        ),
    ] {
        let spec = format!("{callers}{}", limit(rest));
        assert_found(&spec, Severity::Warning, path, "no caller of `auth` is tenant `reserach`");
        assert_found(&spec, Severity::Warning, path, "did you mean `research`?");
    }
    assert_sound(&format!("{callers}{}", limit("match: { tenants: [research, support] }")));
}

#[test]
fn tenants_that_credentials_bring_are_not_doubted() {
    let of = |auth: &str| format!("{auth}{}", limit("match: { tenants: [anybody] }"));
    let jwt = |more: &str| {
        format!(
            "  auth: {{ jwt: {{ provider: {{ name: idp, issuer: 'https://idp', audiences: [a], jwks: {{ file: f }} {more} }} }} }}\n"
        )
    };
    assert_sound(&of(&auth("callers: [{ name: all, match: { any: true } }]")));
    assert_sound(&of("  auth: { apiKeys: { file: keys } }\n"));
    assert_sound(&of(&jwt(", tenantClaim: org")));
    assert_found(
        &of(&jwt("")),
        Severity::Warning,
        "spec.rateLimits[0].match.tenants[0]",
        "tenants: idp",
    );
}

#[test]
fn strangers_are_a_tenant_only_where_they_are_let_in() {
    let of = |anonymous: &str| {
        let auth = auth(&format!("callers: [{{ name: a }}], anonymous: {anonymous}"));
        format!("{auth}{}", limit("match: { tenants: [anonymous] }"))
    };
    assert_sound(&of("allow"));
    let path = "spec.rateLimits[0].match.tenants[0]";
    assert_found(&of("deny"), Severity::Warning, path, "tenant `anonymous`");
}

#[test]
fn a_limit_for_a_key_that_no_credential_can_be_never_applies() {
    let jwt = "  auth: { jwt: { provider: { name: idp, issuer: 'https://idp', audiences: [a], jwks: { file: f } } } }\n";
    let of = |key: &str| format!("{jwt}{}", limit(&format!("match: {{ keys: ['{key}'] }}")));
    assert_sound(&of("idp:ana"));
    let path = "spec.rateLimits[0].match.keys[0]";
    assert_found(&of("ana"), Severity::Warning, path, "no credential has the name `ana`");
}

#[test]
fn a_priority_that_no_request_has_is_told_wherever_it_stands() {
    let limit = "  rateLimits: [{ name: r, concurrent: 1, match: { priorities: ['7'] } }]\n";
    assert_found(
        &format!("{FLOW}{limit}"),
        Severity::Warning,
        "spec.rateLimits[0].match.priorities[0]",
        "no request ever has priority 7",
    );
    let flow = |band: &str, objective: &str| {
        format!(
            "  flowControl: {{ revoke: true, bands: [{{ priority: {band} }}] }}\n  objectives: [{{ name: a, priority: {objective} }}]\n"
        )
    };
    let path = "spec.flowControl.bands[0].priority";
    assert_found(&flow("7", "Critical"), Severity::Warning, path, "no request ever has priority 7");
    let path = "spec.flowControl.revoke";
    assert_found(&flow("0", "7"), Severity::Warning, path, "no request has priority Critical");
    assert_sound(&flow("100", "Critical"));
    assert_sound(&flow("0", "Critical"));
}

#[test]
fn an_objective_that_every_ceiling_lowers_is_told() {
    let of = |ceilings: &str| format!("{FLOW}{}", auth(&format!("callers: [{ceilings}]")));
    assert_found(
        &of("{ name: a, priorityMax: Standard }, { name: b, priorityMax: 7 }"),
        Severity::Warning,
        "spec.objectives[0].priority",
        "the highest `priorityMax` of any caller is 7",
    );
    assert_sound(&of("{ name: a, priorityMax: Standard }, { name: b }"));
}

#[test]
fn an_objective_of_a_caller_that_is_not_there_is_an_error_and_one_above_its_ceiling_a_doubt() {
    let of = |caller: &str| {
        format!("{FLOW}{}", auth(&format!("callers: [{{ name: a, {caller} }}, {{ name: b }}]")))
    };
    let path = "spec.auth.callers[0].objective";
    assert_found(&of("objective: fats"), Severity::Error, path, "did you mean `fast`?");
    assert_found(
        &of("objective: fast, priorityMax: Standard"),
        Severity::Warning,
        path,
        "`fast` is Critical, and the caller's `priorityMax` makes Standard of it always",
    );
    assert_sound(&of("objective: slow, priorityMax: Standard"));
}

#[test]
fn a_caller_for_strangers_who_are_refused_is_told() {
    let of = |anonymous: &str| {
        auth(&format!(
            "anonymous: {anonymous}, callers: [{{ name: a, match: {{ anonymous: true }} }}]"
        ))
    };
    let path = "spec.auth.callers[0].match.anonymous";
    assert_found(&of("deny"), Severity::Warning, path, "never matches");
    assert_sound(&of("allow"));
}

#[test]
fn names_that_rewrites_stand_for_are_names_of_models() {
    let rewrites = "  modelRewrites: [{ name: r, rules: [{ matches: [{ model: { value: lama } }], targets: [{ modelRewrite: llama }] }] }]\n";
    let limit = "  rateLimits: [{ name: r, concurrent: 1, match: { models: [lama] } }]\n";
    let auth = auth("callers: [{ name: a, models: [lama] }]");
    assert_sound(&format!("{rewrites}{limit}{auth}"));
    let path = "spec.rateLimits[0].match.models[0]";
    assert_found(limit, Severity::Warning, path, "no rewrite is for it");
    assert_found(&auth, Severity::Warning, "spec.auth.callers[0].models[0]", "declares `lama`");
}

#[test]
fn objectives_that_limits_look_at_have_an_effect_without_flow_control() {
    let objectives = "  objectives: [{ name: slow, priority: Sheddable }]\n";
    let limit = "  rateLimits: [{ name: r, concurrent: 1, match: { priorities: [Sheddable] } }]\n";
    assert_sound(&format!("{objectives}{limit}"));
    assert_found(objectives, Severity::Warning, "spec.objectives", "no effect");
}

#[test]
fn a_bound_that_a_wider_part_undercuts_is_never_reached() {
    for (flow, path) in [
        ("{ requestsMax: 10, bands: [{ priority: 0, requestsMax: 20 }] }", "bands[0].requestsMax"),
        ("{ bytesMax: 1MB, defaultBand: { bytesMax: 1GB } }", "defaultBand.bytesMax"),
        (
            "{ bands: [{ priority: 0, requestsMax: 9, flow: { requestsMax: 10 } }] }",
            "bands[0].flow.requestsMax",
        ),
        (
            "{ defaultBand: { tokensMax: 9 }, bands: [{ priority: 0, flow: { tokensMax: 10 } }] }",
            "bands[0].flow.tokensMax",
        ),
    ] {
        let spec = format!("  flowControl: {flow}\n");
        let path = format!("spec.flowControl.{path}");
        assert_found(&spec, Severity::Warning, &path, "never reached");
        assert_found(&spec, Severity::Warning, &path, "(line 5)");
    }
    assert_sound("  flowControl: { requestsMax: 20, bands: [{ priority: 0, requestsMax: 20 }] }\n");
}

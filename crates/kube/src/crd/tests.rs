use config::schema::{self, Kind, Origin};

use super::*;

/// A document of each rule's group that breaks it and no other rule.
const BROKEN: &[(ApiGroup, &str, &str)] = &[
    (
        ApiGroup::Wicketgate,
        "{ bbr: { enabled: false }, schedulers: [{ name: a, modelName: a, endpoints: [{ url: 'http://a:1' }] }], discover: [{ url: 'http://b:1' }] }",
        "bbr must be enabled when more than one scheduler is defined",
    ),
    (
        ApiGroup::Aws,
        "{ tls: {}, bbr: { enabled: false }, schedulers: [{ name: a, modelName: a, modelSelector: {} }, { name: b, modelName: b, modelSelector: {} }] }",
        "bbr must be enabled when more than one scheduler is defined",
    ),
    (
        ApiGroup::Wicketgate,
        "{ schedulers: [{ name: a, modelName: a, modelSelector: {} }, { name: b, modelName: a, modelSelector: {} }] }",
        "modelName must be unique across schedulers",
    ),
    (
        ApiGroup::Wicketgate,
        "{}",
        "there is nothing to serve: neither `schedulers` nor `discover` is there",
    ),
    (
        ApiGroup::Wicketgate,
        "{ schedulers: [{ name: a, modelName: a, modelSelector: {}, weights: { queue: 1 }, configMapRef: { name: x } }] }",
        "weights and configMapRef are mutually exclusive",
    ),
    (
        ApiGroup::Wicketgate,
        "{ schedulers: [{ name: a, modelName: a, modelSelector: {}, scheduler: epp, weights: { lru: 1 } }] }",
        "weights.lru is only valid when scheduler is llm-d",
    ),
    (
        ApiGroup::Wicketgate,
        "{ schedulers: [{ name: a, modelName: a, modelSelector: {} }], auth: { jwt: { provider: { name: a, issuer: 'https://a', remoteJWKS: { uri: 'https://a' } } } } }",
        "at least one of audiences or requiredClaims must be specified",
    ),
];

/// Our files' check says the same words.
#[test]
fn the_messages_of_the_rules_are_those_of_check() {
    for (group, spec, message) in BROKEN {
        let text = format!(
            "apiVersion: {}\nkind: InferenceGatewayConfig\nmetadata: {{ name: test }}\nspec: {spec}\n",
            group.api_version()
        );
        let errors = config::parse(&text, "test").expect_err(spec);
        assert!(errors.findings().iter().any(|finding| finding.message == *message), "{errors}");
        assert!(rules::RULES.iter().any(|rule| rule.message == *message), "no rule: {message}");
    }
}

#[test]
fn every_rule_finds_its_place() {
    for group in [ApiGroup::Wicketgate, ApiGroup::Aws] {
        let text = definition(group).to_string();
        for rule in rules::RULES.iter().filter(|rule| rule.groups.contains(&group)) {
            let message = json!(rule.message).to_string();
            assert!(text.contains(&message), "{message}");
        }
        // A path that does not exist would have made objects without a type.
        let whole = definition(group);
        let spec = &whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        every_schema_has_a_type(spec, "spec");
    }
}

fn every_schema_has_a_type(schema: &Value, path: &str) {
    let is_typed = schema["type"].is_string()
        || schema["x-kubernetes-int-or-string"] == true
        || schema["x-kubernetes-preserve-unknown-fields"] == true;
    assert!(is_typed, "{path}: {schema}");
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        every_schema_has_a_type(inner, &format!("{path}.{key}"));
    }
    if !schema["items"].is_null() {
        every_schema_has_a_type(&schema["items"], &format!("{path}[]"));
    }
}

#[test]
fn awss_group_has_awss_fields_only() {
    let aws = definition(ApiGroup::Aws);
    let spec = &aws["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    schema::walk(&mut |path, field| {
        let Some(rest) = path.strip_prefix("spec.") else { return };
        let place = rest.split('.').try_fold(spec, |schema, key| {
            let inner = schema["properties"].get(key.trim_end_matches("[]"))?;
            Some(if key.ends_with("[]") { &inner["items"] } else { inner })
        });
        match field.origin {
            Origin::Ours => assert!(place.is_none(), "{path}"),
            // Below a field of ours there are fields of AWS's that are used a second time.
            Origin::Aws if rest.starts_with("schedulers[].shadow") => {}
            Origin::Aws if rest.starts_with("auth.jwt.providers[]") => {}
            Origin::Aws => assert!(place.is_some(), "{path}"),
        }
        if let (Some(schema), Kind::Choice { aws_words, .. }) = (place, &field.kind) {
            assert_eq!(schema["enum"], json!(aws_words), "{path}");
        }
    });
}

#[test]
fn every_description_tells_the_default_of_its_group() {
    let description = |group| {
        let whole = definition(group);
        let spec = &whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let weights = &spec["properties"]["schedulers"]["items"]["properties"]["weights"];
        weights["properties"]["prefix"]["description"].as_str().unwrap().to_owned()
    };
    assert!(description(ApiGroup::Aws).ends_with("Default `3`."));
    assert!(description(ApiGroup::Wicketgate).ends_with("Default `0`."));
}

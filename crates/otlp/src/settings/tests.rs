use super::*;

fn settings(
    document: Option<&Tracing>,
    variables: &[(&str, &str)],
) -> Result<Option<Settings>, SettingsError> {
    Settings::from(document, |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn endpoint(document: Option<&Tracing>, variables: &[(&str, &str)]) -> String {
    settings(document, variables).unwrap().unwrap().endpoint.to_string()
}

#[test]
fn nothing_is_exported_unless_somebody_asks_for_it() {
    assert!(settings(None, &[]).unwrap().is_none());
    assert!(settings(None, &[("OTEL_SERVICE_NAME", "x")]).unwrap().is_none());
    assert!(settings(Some(&Tracing::default()), &[]).unwrap().is_some());
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert!(settings(Some(&Tracing::default()), &[off]).unwrap().is_none(), "{off:?}");
    }
}

#[test]
fn the_endpoint_is_completed_as_the_specification_says() {
    let grpc = Tracing { protocol: OtlpProtocol::Grpc, ..Tracing::default() };
    let written =
        Tracing { endpoint: Some("https://c.example/otlp/".into()), ..Tracing::default() };
    let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/mine");
    assert_eq!(endpoint(Some(&Tracing::default()), &[]), "http://localhost:4318/v1/traces");
    assert_eq!(endpoint(Some(&grpc), &[]), "http://localhost:4317/");
    assert_eq!(endpoint(Some(&written), &[]), "https://c.example/otlp/v1/traces");
    assert_eq!(endpoint(Some(&written), &[all]), "http://c:4318/v1/traces");
    assert_eq!(endpoint(None, &[all, traces]), "http://c:4318/mine");
}

#[test]
fn variables_go_before_the_document_and_those_for_traces_before_the_general_ones() {
    let document = Tracing::default();
    let found = settings(
        Some(&document),
        &[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20key, x-team=a"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "9000"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "3000"),
            ("OTEL_SERVICE_NAME", "front"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=prod"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ],
    );
    let found = found.unwrap().unwrap();
    assert_eq!(found.protocol, Protocol::Grpc);
    assert_eq!(found.timeout, Duration::from_secs(3));
    let headers: Vec<_> =
        found.headers.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
    assert_eq!(headers, [("authorization", "Bearer key"), ("x-team", "a")]);
    assert!(found.headers[0].1.is_sensitive());
    assert_eq!((found.sampling.ratio, found.sampling.follows_parent), (0.25, false));
    let keys: Vec<_> = found.resource.iter().map(|pair| pair.key.as_str()).collect();
    assert_eq!(keys[..2], ["service.name", "deployment.environment.name"]);
    assert_eq!(found.resource[0], KeyValue::text("service.name", "front"));
}

#[test]
fn a_variable_that_cannot_be_meant_is_an_error_with_its_name() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "nothing"),
    ] {
        let error = settings(Some(&Tracing::default()), &[(name, value)]).unwrap_err();
        assert_eq!(error.name, name);
    }
    let secret = [("OTEL_EXPORTER_OTLP_HEADERS", "bad name=secret")];
    let error = settings(Some(&Tracing::default()), &secret).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

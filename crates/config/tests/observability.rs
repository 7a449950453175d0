//! `observability`: traces, times, alarms and prices.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::time::Duration;

use config::{OtlpProtocol, PrefixAlarm, ServerTiming, Tracing, Usage};
use wicketgate_config as config;

fn parse(observability: &str) -> Result<config::Spec, String> {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         schedulers: [{{ name: chat, modelName: m, endpoints: [{{ url: 'http://a' }}] }}]\n  \
         observability: {observability}\n"
    );
    config::parse(&text, "test.yaml").map(|document| document.spec).map_err(|e| e.to_string())
}

fn valid(observability: &str) -> config::Observability {
    parse(observability).unwrap_or_else(|errors| panic!("{errors}")).observability
}

#[test]
fn an_empty_section_traces_by_default_settings_and_an_absent_one_does_not() {
    assert_eq!(valid("{ metricNames: both }").tracing, None);
    assert_eq!(valid("{ tracing: {} }").tracing, Some(Tracing::default()));
}

#[test]
fn every_setting_is_read() {
    let read = valid(
        "{ tracing: { endpoint: 'https://c.example', protocol: grpc, sampleRatio: 0.5, followParent: false, \
         sampleErrors: false, sampleSlowerThan: 2s, serviceName: front, caFile: ca.pem, timeout: 3s }, \
         serverTiming: always, prefixAlarm: { enabled: false, within: 5m, lossTokensPerHourMin: 7 }, \
         usage: { tenantsMax: 5, tenantSeriesMax: 3 }, currency: EUR, \
         prices: [{ scheduler: chat, gpuHour: 2.5, gpusPerEndpoint: 8 }] }",
    );
    let tracing = read.tracing.unwrap_or_default();
    assert_eq!(tracing.endpoint.as_deref(), Some("https://c.example"));
    assert_eq!(tracing.protocol, OtlpProtocol::Grpc);
    assert!(!tracing.follow_parent && !tracing.sample_errors);
    assert_eq!(tracing.sample_slower_than, Some(Duration::from_secs(2)));
    assert_eq!((tracing.service_name.as_str(), tracing.timeout), ("front", Duration::from_secs(3)));
    assert_eq!(read.server_timing, ServerTiming::Always);
    let within = Duration::from_secs(300);
    let alarm = PrefixAlarm { enabled: false, within, loss_tokens_per_hour_min: 7 };
    assert_eq!(read.prefix_alarm, alarm);
    assert_eq!(read.usage, Usage { tenants_max: 5, tenant_series_max: 3 });
    assert_eq!((read.currency.as_str(), read.prices[0].gpu_hour), ("EUR", 2.5));
    assert_eq!(read.prices[0].gpus_per_endpoint.get(), 8);
}

#[test]
fn what_cannot_be_meant_is_said_with_its_place() {
    for (text, said) in [
        ("{ tracing: { endpoint: 'collector:4318' } }", "spec.observability.tracing.endpoint"),
        ("{ tracing: { endpoint: 'http://a@b' } }", "spec.observability.tracing.endpoint"),
        ("{ tracing: { endpoint: 'http://c/v1', protocol: grpc } }", "has no path"),
        ("{ tracing: { sampleRatio: 2 } }", "sampleRatio"),
        ("{ prices: [{ scheduler: caht, gpuHour: 1 }] }", "there is no scheduler `caht`"),
        (
            "{ prices: [{ scheduler: chat, gpuHour: 1 }, { scheduler: chat, gpuHour: 2 }] }",
            "already",
        ),
        ("{ prices: [{ scheduler: chat, gpuHour: -1 }] }", "gpuHour"),
    ] {
        let errors = parse(text).map(|_| String::new()).unwrap_or_else(|errors| errors);
        assert!(errors.contains(said), "{text}: {errors}");
    }
}

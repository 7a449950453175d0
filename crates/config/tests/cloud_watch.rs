//! `observability`: names of metrics, and what goes to CloudWatch.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::time::Duration;

use config::{CloudWatch, CloudWatchMode, EmfTarget, MetricNames};
use wicketgate_config as config;

fn parse(section: &str) -> Result<config::Spec, String> {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         discover: [{{ url: 'http://a' }}]\n  observability: {section}\n"
    );
    config::parse(&text, "test").map(|document| document.spec).map_err(|errors| errors.to_string())
}

fn names(value: &str) -> MetricNames {
    let spec = parse(&format!("{{ metricNames: {value} }}"));
    spec.unwrap_or_else(|errors| panic!("{errors}")).observability.metric_names
}

fn cloud_watch(value: &str) -> CloudWatch {
    let spec = parse(&format!("{{ cloudWatch: {value} }}"));
    let spec = spec.unwrap_or_else(|errors| panic!("{errors}"));
    spec.observability.cloud_watch.unwrap_or_else(|| panic!("{value} is absent"))
}

fn refused(section: &str) -> String {
    match parse(section) {
        Ok(spec) => panic!("accepted: {:?}", spec.observability),
        Err(errors) => errors,
    }
}

#[test]
fn names_are_a_word_or_a_list_of_words() {
    let set = |wicketgate, field, genai| MetricNames { wicketgate, field, genai };
    assert_eq!(names("wicketgate"), set(true, false, false));
    assert_eq!(names("field"), set(false, true, false));
    assert_eq!(names("both"), set(true, true, false));
    assert_eq!(names("[genai]"), set(false, false, true));
    assert_eq!(names("[wicketgate, field, genai]"), set(true, true, true));
}

#[test]
fn names_that_are_unknown_or_stand_twice_are_refused() {
    assert!(refused("{ metricNames: [wicketgat] }").contains("did you mean `wicketgate`?"));
    assert!(refused("{ metricNames: [both] }").contains("Unsupported value"));
    assert!(refused("{ metricNames: [field, field] }").contains("stands twice"));
    assert!(refused("{ metricNames: [] }").contains("at least 1"));
}

#[test]
fn cloud_watch_is_read_with_its_defaults() {
    let emf = cloud_watch("{ mode: emf }");
    assert_eq!(emf.mode, CloudWatchMode::Emf(EmfTarget::Stdout));
    assert_eq!((emf.namespace.as_str(), emf.interval), ("Wicketgate", Duration::from_secs(60)));
    let target = |text: &str| cloud_watch(&format!("{{ mode: emf, target: '{text}' }}")).mode;
    assert_eq!(target("stderr"), CloudWatchMode::Emf(EmfTarget::Stderr));
    let agent = EmfTarget::Tcp("127.0.0.1:25888".to_owned());
    assert_eq!(target("tcp://127.0.0.1:25888"), CloudWatchMode::Emf(agent));
    assert_eq!(target("/log/emf"), CloudWatchMode::Emf(EmfTarget::File("/log/emf".into())));
    let api = cloud_watch(
        "{ mode: api, namespace: A/B, dimensions: { Cluster: prod }, interval: 2m, region: eu-west-1, \
         endpoint: 'http://127.0.0.1:5000' }",
    );
    let region = Some("eu-west-1".to_owned());
    let endpoint = Some("http://127.0.0.1:5000".to_owned());
    assert_eq!(api.mode, CloudWatchMode::Api { region, endpoint });
    assert_eq!(api.dimensions["Cluster"], "prod");
    assert_eq!((api.namespace.as_str(), api.interval), ("A/B", Duration::from_secs(120)));
}

#[test]
fn what_cloud_watch_would_refuse_is_refused_here() {
    for (section, said) in [
        ("{}", "`mode` is missing"),
        ("{ mode: emf, region: a }", "for `mode: api` only"),
        ("{ mode: api, target: stdout }", "for `mode: emf` only"),
        ("{ mode: api, endpoint: 'ftp://a' }", "no address of a service"),
        ("{ mode: emf, target: 'tcp://a' }", "host and port"),
        ("{ mode: emf, namespace: AWS/EC2 }", "namespace"),
        ("{ mode: emf, namespace: 'a b' }", "namespace"),
        ("{ mode: emf, dimensions: { ':a': b } }", "the name `:a`"),
        ("{ mode: emf, dimensions: { a: '' } }", "this value"),
        ("{ mode: emf, interval: 10ms }", "between 1s and 1h"),
    ] {
        let errors = refused(&format!("{{ cloudWatch: {section} }}"));
        assert!(errors.contains(said), "{section}: {errors}");
    }
    let many: Vec<String> = (0..31).map(|index| format!("d{index}: v")).collect();
    let section =
        format!("{{ cloudWatch: {{ mode: emf, dimensions: {{ {} }} }} }}", many.join(", "));
    assert!(refused(&section).contains("31 dimensions"));
}

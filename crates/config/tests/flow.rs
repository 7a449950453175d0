//! `flowControl` and `objectives`.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::time::Duration;

use types::{Priority, Ratio};
use wicketgate_config as config;

use config::{Fairness, FlowControl, Ordering, WhenSaturated};

fn read(spec: &str) -> Result<config::Document, String> {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         schedulers: [{{ name: chat, modelName: m, endpoints: [{{ url: 'http://a' }}] }}]\n{spec}"
    );
    config::parse(&text, "test.yaml").map_err(|errors| errors.to_string())
}

fn flow(spec: &str) -> FlowControl {
    read(spec).unwrap_or_else(|errors| panic!("{errors}")).spec.flow_control.unwrap()
}

#[test]
fn an_empty_block_turns_flow_control_on_with_its_defaults() {
    assert_eq!(flow("  flowControl: {}\n"), FlowControl::default());
    assert_eq!(read("").unwrap().spec.flow_control, None);
}

#[test]
fn with_flow_control_less_waits_in_engines() {
    let depth = |spec| read(spec).unwrap().spec.schedulers[0].saturation.queue_depth.get();
    assert_eq!(depth(""), 32);
    assert_eq!(depth("  flowControl: {}\n"), FlowControl::QUEUE_DEPTH);
}

#[test]
fn a_band_takes_from_the_default_band_what_it_leaves_out() {
    let flow = flow(
        "  flowControl:
    defaultBand: { ttl: 5s, ordering: deadline, flow: { requestsMax: 7 } }
    bands:
    - { priority: Critical, fairness: global, ceiling: 1 }
    - { priority: -10, whenSaturated: queue, reservedShare: 0.1, ceiling: 0.8 }
",
    );
    let (priority, critical) = &flow.bands[0];
    assert_eq!(*priority, Priority::CRITICAL);
    assert_eq!(
        (critical.ttl, critical.ordering, critical.fairness),
        (Duration::from_secs(5), Ordering::Deadline, Fairness::Global)
    );
    assert_eq!(critical.flow_bounds.requests_max.unwrap().get(), 7);
    let (priority, sheddable) = &flow.bands[1];
    assert_eq!(*priority, Priority::SHEDDABLE);
    assert_eq!(sheddable.when_saturated, Some(WhenSaturated::Queue));
    assert_eq!(sheddable.reserved_share, Ratio::new(0.1).unwrap());
}

#[test]
fn what_cannot_hold_together_is_refused_with_its_place() {
    for (spec, said) in [
        (
            "  flowControl: { bands: [{ priority: 100 }, { priority: critical }] }\n",
            "two bands of priority Critical",
        ),
        (
            "  flowControl: { bands: [{ priority: 1, reservedShare: 0.6 }, { priority: 2, reservedShare: 0.6 }] }\n",
            "more than 1 together",
        ),
        ("  flowControl: { bands: [{ priority: 1, ceiling: 0 }] }\n", "ever be dispatched"),
        ("  flowControl: { headroom: { share: 0 } }\n", "its share of the memory is 0"),
        ("  flowControl: { headroom: { stretch: 1 } }\n", "stretch"),
        ("  flowControl: { bands: [{ priority: urgent }] }\n", "expected a priority"),
        ("  flowControl: { bands: [{ ttl: 1s }] }\n", "priority"),
        ("  objectives: [{ name: a }, { name: a }]\n  flowControl: {}\n", "Duplicate value"),
        (
            "  objectives: [{ name: a, scheduler: chta }]\n  flowControl: {}\n",
            "did you mean `chat`?",
        ),
    ] {
        let error = read(spec).expect_err(spec);
        assert!(error.contains(said), "{error}");
        assert!(error.contains("test.yaml:"), "{error}");
    }
}

#[test]
fn objectives_without_flow_control_and_ceilings_upside_down_are_doubted() {
    for (spec, said) in [
        ("  objectives: [{ name: a }]\n", "no effect without `flowControl`"),
        (
            "  flowControl: { bands: [{ priority: 100, ceiling: 0.5 }, { priority: 0 }] }\n",
            "further than Critical",
        ),
    ] {
        let document = read(spec).unwrap();
        let warnings: Vec<String> = document.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings.iter().any(|warning| warning.contains(said)), "{warnings:?}");
    }
}

#[test]
fn the_defaults_of_the_table_are_those_in_force() {
    let mut written = String::from("  flowControl:\n    defaultBand:\n");
    let [mut of_band, mut others, mut headroom] = [const { String::new() }; 3];
    config::schema::walk(&mut |path: &str, field: &config::schema::Field| {
        let Some(default) = field.default else { return };
        if let Some(key) = path.strip_prefix("spec.flowControl.defaultBand.") {
            of_band.push_str(&format!("      {key}: {default}\n"));
        } else if let Some(key) = path.strip_prefix("spec.flowControl.noEndpoint.") {
            others.push_str(&format!("      {key}: {default}\n"));
        } else if let Some(key) = path.strip_prefix("spec.flowControl.headroom.") {
            headroom.push_str(&format!("      {key}: {default}\n"));
        }
    });
    written.push_str(&format!("{of_band}    noEndpoint:\n{others}    headroom:\n{headroom}"));
    assert!(written.lines().count() > 11, "{written}");
    assert_eq!(flow(&written), FlowControl::default(), "{written}");
}

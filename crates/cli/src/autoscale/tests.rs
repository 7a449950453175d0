use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn document(more: &str) -> config::Document {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: {{ name: lab, namespace: serving }}\n\
         spec:\n  schedulers: [{{ name: chat, modelName: llama, modelSelector: {{ matchLabels: {{ app: llama }} }} }}]\n{more}"
    );
    config::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors}"))
}

fn wish_for(more: &str, flags: &[&str]) -> anyhow::Result<objects::Wish> {
    let words = [&["autoscale", "-f", "x.yaml", "--scheduler", "chat"], flags].concat();
    wish(&Line::try_parse_from(words).unwrap().args, &document(more))
}

#[test]
fn the_query_names_metrics_that_there_are() {
    let query = objects::load("chat", 32);
    let known: Vec<&str> = telemetry::names::all().map(|metric| metric.name).collect();
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let named: Vec<&str> = words.filter(|word| word.starts_with("wicketgate_")).collect();
    assert_eq!(named.len(), 3, "{query}");
    for name in named {
        assert!(known.contains(&name), "{name}");
    }
}

#[test]
fn a_scaled_object_scales_the_deployment_by_the_pools_load() {
    let wish = wish_for("  flowControl: {}\n", &["--target", "llama", "--min", "0", "--max", "4"])
        .unwrap();
    let object = objects::scaled_object(&wish, "http://prometheus:9090");
    let spec = &object["spec"];
    assert_eq!((&spec["minReplicaCount"], &spec["maxReplicaCount"]), (&0.into(), &4.into()));
    assert_eq!(spec["scaleTargetRef"]["name"], "llama");
    assert_eq!(object["metadata"]["namespace"], "serving");
    assert_eq!(spec["triggers"][0]["metadata"]["threshold"], "0.7");
}

#[test]
fn an_autoscaler_of_kubernetes_aims_at_thousandths() {
    let wish = wish_for("", &["--target", "StatefulSet/llama", "--load", "0.85"]).unwrap();
    let object = objects::horizontal(&wish);
    assert_eq!(object["spec"]["scaleTargetRef"]["kind"], "StatefulSet");
    assert_eq!(object["spec"]["metrics"][0]["external"]["target"]["averageValue"], "850m");
    assert!(objects::preface(&wish, true).contains("externalRules"));
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |more: &str, flags: &[&str]| wish_for(more, flags).unwrap_err().to_string();
    assert!(refused("", &["--min", "0"]).contains("flowControl"));
    assert!(refused("  flowControl: {}\n", &["--min", "0", "--scaler", "hpa"]).contains("keda"));
    assert!(refused("", &["--load", "1.5"]).contains("--load"));
    assert!(refused("", &["--min", "5", "--max", "4"]).contains("--max 4"));
    let other = Line::try_parse_from(["autoscale", "-f", "x", "--scheduler", "none"]).unwrap();
    assert!(wish(&other.args, &document("")).unwrap_err().to_string().contains("chat"));
}

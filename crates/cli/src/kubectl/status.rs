//! `kubectl wicketgate status`.

use std::collections::BTreeMap;

use anyhow::Context;
use comfy_table::{Table, presets};
use serde::Serialize;
use wicketgate_kube::Cluster;
use wicketgate_kube::gateways::{self, Condition, GatewayPod, GatewayResource};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Of all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A gateway: what was asked for, and what runs.
#[derive(Clone, Debug, Default, Serialize)]
struct Gateway {
    namespace: String,
    name: String,
    /// `None`: a release of the chart without a resource.
    resource: Option<GatewayResource>,
    pods: Vec<GatewayPod>,
}

#[expect(clippy::print_stdout, reason = "a command's output")]
pub(super) async fn run(args: &Args, cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
    let place = (!args.all_namespaces).then_some(namespace);
    let resources = gateways::resources(&cluster.client, place)
        .await
        .context("cannot list InferenceGatewayConfigs")?;
    let pods = gateways::pods(&cluster.client, place).await.context("cannot list pods")?;
    let gateways = gather(resources, pods);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&gateways)?);
    } else if gateways.is_empty() {
        let place = place.map_or("the cluster".to_owned(), |name| format!("namespace {name}"));
        println!("{place} has no gateway");
    } else {
        println!("{}", render(&gateways));
    }
    Ok(())
}

fn gather(resources: Vec<GatewayResource>, pods: Vec<GatewayPod>) -> Vec<Gateway> {
    let mut gateways: BTreeMap<(String, String), Gateway> = BTreeMap::new();
    for resource in resources {
        let key = (resource.namespace.clone(), resource.name.clone());
        let gateway = gateways.entry(key).or_default();
        gateway.resource = Some(resource);
    }
    for pod in pods {
        let key = (pod.namespace.clone(), pod.gateway.clone());
        gateways.entry(key).or_default().pods.push(pod);
    }
    let named = gateways.into_iter().map(|((namespace, name), gateway)| Gateway {
        namespace,
        name,
        ..gateway
    });
    named.collect()
}

fn render(gateways: &[Gateway]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["namespace", "gateway", "ready", "endpoints", "pods", ""]);
    let mut troubles = Vec::new();
    for gateway in gateways {
        let ready = gateway.pods.iter().filter(|pod| pod.is_ready).count();
        let endpoints = gateway.resource.as_ref().and_then(|resource| resource.ready_endpoints);
        table.add_row([
            gateway.namespace.clone(),
            gateway.name.clone(),
            verdict(gateway),
            endpoints.map_or_else(|| "–".to_owned(), |count| count.to_string()),
            format!("{ready}/{}", gateway.pods.len()),
            note(gateway).to_owned(),
        ]);
        troubles.extend(failing(gateway).map(|condition| {
            let Condition { kind, status, reason, message } = condition;
            let (namespace, name) = (&gateway.namespace, &gateway.name);
            format!("\n{namespace}/{name}: {kind} is {status} ({reason}): {message}")
        }));
    }
    format!("{table}{}", troubles.concat())
}

/// What the controller says, else what the pods do.
fn verdict(gateway: &Gateway) -> String {
    match &gateway.resource {
        Some(resource) => {
            let ready = resource.conditions.iter().find(|condition| condition.kind == "Ready");
            ready.map_or_else(|| "Unknown".to_owned(), |condition| condition.status.clone())
        }
        None if gateway.pods.iter().any(|pod| pod.is_ready) => "True".to_owned(),
        None => "False".to_owned(),
    }
}

fn note(gateway: &Gateway) -> &'static str {
    match &gateway.resource {
        None => "a release, no resource",
        Some(resource) if resource.conditions.is_empty() => "no controller has seen it",
        Some(resource) if resource.is_stale => "the status is of an earlier version",
        Some(_) => "",
    }
}

/// Conditions that are not as one wishes. `AdmissionBlocked` and `Degraded` are bad when they are true.
fn failing(gateway: &Gateway) -> impl Iterator<Item = &Condition> {
    let conditions = gateway.resource.iter().flat_map(|resource| &resource.conditions);
    conditions.filter(|condition| {
        let is_bad_when_true = ["AdmissionBlocked", "Degraded"].contains(&condition.kind.as_str());
        let wanted = if is_bad_when_true { "False" } else { "True" };
        condition.status != wanted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, conditions: &[(&str, &str)]) -> GatewayResource {
        let condition = |(kind, status): &(&str, &str)| Condition {
            kind: (*kind).to_owned(),
            status: (*status).to_owned(),
            reason: "NoEndpoints".to_owned(),
            message: "no pod matches".to_owned(),
        };
        GatewayResource {
            api_version: "gateway.wicketgate.dev/v1alpha1".to_owned(),
            namespace: "inference".to_owned(),
            name: name.to_owned(),
            conditions: conditions.iter().map(condition).collect(),
            ready_endpoints: Some(3),
            is_stale: false,
        }
    }

    fn pod(name: &str, gateway: &str, is_ready: bool) -> GatewayPod {
        GatewayPod {
            namespace: "inference".to_owned(),
            name: name.to_owned(),
            gateway: gateway.to_owned(),
            is_ready,
            is_ending: false,
            admin_port: 9090,
        }
    }

    #[test]
    fn a_gateways_resource_and_its_pods_become_one_line() {
        let pods = vec![pod("chat-1", "chat", true), pod("chat-2", "chat", false)];
        let text = render(&gather(vec![resource("chat", &[("Ready", "True")])], pods));
        let line = text.lines().find(|line| line.contains("chat")).expect("its line");
        assert!(line.contains("True") && line.contains("1/2") && line.contains('3'), "{text}");
        assert!(!text.contains("no pod matches"), "{text}");
    }

    #[test]
    fn a_condition_that_is_not_as_wished_is_told_with_its_reason() {
        let conditions = [("Ready", "False"), ("AdmissionBlocked", "False"), ("Accepted", "True")];
        let text = render(&gather(vec![resource("chat", &conditions)], Vec::new()));
        assert!(text.contains("Ready is False (NoEndpoints): no pod matches"), "{text}");
        assert!(!text.contains("AdmissionBlocked is"), "{text}");
        let blocked =
            render(&gather(vec![resource("chat", &[("AdmissionBlocked", "True")])], Vec::new()));
        assert!(blocked.contains("AdmissionBlocked is True"), "{blocked}");
    }

    #[test]
    fn a_release_without_a_resource_is_listed_and_a_resource_without_a_controller_too() {
        let pods = vec![pod("wicketgate-1", "wicketgate", true)];
        let text = render(&gather(vec![resource("chat", &[])], pods));
        assert!(text.contains("a release, no resource"), "{text}");
        assert!(text.contains("no controller has seen it"), "{text}");
    }
}

//! Pods become endpoints: `schedulers[].modelSelector` says which.
//!
//! One watch of the namespace serves all pools. What was seen last stays in force while the API server
//! is away; nothing but news from it takes an endpoint from a pool.

use std::pin::pin;
use std::sync::Arc;

use config::Spec;
use futures_util::{FutureExt, StreamExt};
use gateway::Gateway;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;
use kube::{Api, Client};

use crate::fleet::{Fleet, Target};
use crate::pod::PodView;
use crate::watching::watch;

/// Events that are taken in before anybody is told, if they are there already: a rollout of hundreds of
/// pods is one change.
const EVENTS_AT_ONCE_MAX: usize = 1000;

/// Keeps the gateway's endpoints those that the pods of the namespace make, until dropped.
pub async fn discover(client: Client, namespace: &str, gateway: Arc<Gateway>) {
    let events = watch::<Pod>(Api::namespaced(client, namespace), gateway.metrics.clone());
    let mut events = pin!(events);
    let mut pods = Pods::default();
    let mut changed = gateway.members_changed();
    let mut spec = Arc::clone(&gateway.spec());
    pods.fleet.set_targets(targets(&spec));
    loop {
        let is_news = tokio::select! {
            event = events.next() => match event {
                Some(event) => {
                    let mut is_news = pods.take_in(event);
                    for _ in 1..EVENTS_AT_ONCE_MAX {
                        let Some(Some(event)) = events.next().now_or_never() else { break };
                        is_news |= pods.take_in(event);
                    }
                    is_news
                }
                None => return,
            },
            // Also told of our own changes; only another document is of interest.
            outcome = changed.changed() => {
                if outcome.is_err() {
                    return;
                }
                let now = Arc::clone(&gateway.spec());
                let is_another = !Arc::ptr_eq(&now, &spec);
                spec = now;
                is_another && pods.fleet.set_targets(targets(&spec))
            }
        };
        if is_news && pods.is_complete {
            gateway.set_found(pods.fleet.found());
        }
    }
}

/// What is known of the namespace.
#[derive(Default)]
struct Pods {
    fleet: Fleet,
    /// A list that is under way; it counts when it is whole.
    listed: Vec<PodView>,
    /// A whole list was seen once.
    is_complete: bool,
}

impl Pods {
    /// Whether some pool changed.
    fn take_in(&mut self, event: Event<Pod>) -> bool {
        match event {
            Event::Apply(pod) => PodView::of(pod).is_some_and(|pod| self.fleet.apply(pod)),
            Event::Delete(pod) => pod.metadata.name.is_some_and(|name| self.fleet.remove(&name)),
            Event::Init => {
                self.listed.clear();
                false
            }
            Event::InitApply(pod) => {
                self.listed.extend(PodView::of(pod));
                false
            }
            Event::InitDone => {
                let is_news = self.fleet.replace(std::mem::take(&mut self.listed));
                let is_first = !std::mem::replace(&mut self.is_complete, true);
                is_news || is_first
            }
        }
    }
}

/// The pools of a document that are made of pods.
fn targets(spec: &Spec) -> Vec<Target> {
    let of_pods = spec.schedulers.iter().filter_map(|scheduler| {
        let selector = scheduler.model_selector.clone()?;
        let ports = vec![scheduler.target_port];
        Some(Target { pool: scheduler.name.clone(), selector, ports })
    });
    of_pods.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, ready: bool) -> Pod {
        let status = if ready { "True" } else { "False" };
        serde_json::from_value(json!({
            "metadata": { "name": name, "uid": name, "labels": { "app": "llama" } },
            "status": { "podIP": "10.1.0.1", "conditions": [{ "type": "Ready", "status": status }] },
        }))
        .unwrap()
    }

    fn pods() -> Pods {
        let text = "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nmetadata: { name: test }\n\
                    spec: { schedulers: [{ name: chat, modelName: llama, modelSelector: { matchLabels: { app: llama } } }] }\n";
        let document = config::parse(text, "test").unwrap();
        let mut pods = Pods::default();
        pods.fleet.set_targets(targets(&document.spec));
        pods
    }

    fn count(pods: &Pods) -> usize {
        pods.fleet.found().values().map(|found| found.len()).sum()
    }

    fn listed(pods: &mut Pods, names: &[&str]) -> bool {
        pods.take_in(Event::Init);
        for name in names {
            assert!(!pods.take_in(Event::InitApply(pod(name, true))));
        }
        pods.take_in(Event::InitDone)
    }

    #[test]
    fn a_list_counts_when_it_is_whole() {
        let mut pods = pods();
        pods.take_in(Event::Init);
        pods.take_in(Event::InitApply(pod("a", true)));
        assert_eq!(count(&pods), 0);
        assert!(pods.take_in(Event::InitDone));
        assert_eq!(count(&pods), 1);
    }

    #[test]
    fn what_a_later_list_no_longer_has_is_gone() {
        let mut pods = pods();
        listed(&mut pods, &["a", "b"]);
        assert!(!listed(&mut pods, &["a", "b"]), "the same again");
        assert!(listed(&mut pods, &["b"]));
        assert_eq!(count(&pods), 1);
    }

    #[test]
    fn a_list_that_breaks_off_changes_nothing() {
        let mut pods = pods();
        listed(&mut pods, &["a", "b"]);
        pods.take_in(Event::Init);
        pods.take_in(Event::InitApply(pod("c", true)));
        assert_eq!(count(&pods), 2);
        listed(&mut pods, &["a"]);
        assert_eq!(count(&pods), 1, "nothing of the broken list is left");
    }

    #[test]
    fn an_empty_namespace_is_news_too() {
        let mut pods = pods();
        assert!(listed(&mut pods, &[]));
        assert!(pods.is_complete);
    }

    #[test]
    fn single_events_come_and_go() {
        let mut pods = pods();
        listed(&mut pods, &[]);
        assert!(pods.take_in(Event::Apply(pod("a", true))));
        assert!(pods.take_in(Event::Apply(pod("a", false))));
        assert!(pods.take_in(Event::Apply(pod("a", true))));
        assert!(pods.take_in(Event::Delete(pod("a", true))));
        assert_eq!(count(&pods), 0);
    }
}

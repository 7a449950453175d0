//! Pods become endpoints: `schedulers[].modelSelector` says which.
//!
//! One watch of a namespace serves all its pools. What was seen last stays in force while the API server
//! is away; nothing but news from it takes an endpoint from a pool.

use std::collections::HashMap;
use std::iter;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use config::Spec;
use futures_util::{FutureExt, Stream, StreamExt};
use gateway::{Found, Gateway};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use telemetry::clock;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use types::PoolName;

use crate::fleet::{Fleet, Target};
use crate::pod::PodView;
use crate::watching::watch as watch_pods;

/// Events that are taken in before anybody is told, if they are there already: a rollout of hundreds of
/// pods is one change.
const EVENTS_AT_ONCE_MAX: usize = 1000;

/// Messages of namespaces that wait to be taken in: who cannot tell goes on to gather news, and tells them together.
const MESSAGES_MAX: usize = 1;

/// After the catalog was made anew, it rests as many times as long as that took, up to so long: where endpoints are
/// thousands and all of them change, making it anew for each would be all that a core does.
const REST_FOR_WORK: u32 = 4;
const REST_MAX: Duration = Duration::from_millis(50);

type FoundPools = HashMap<PoolName, Arc<[Found]>>;

/// Keeps the gateway's endpoints those that pods make, until dropped.
///
/// * `home`: the namespace of pods whose scheduler names none.
pub async fn discover(client: Client, home: &str, gateway: Arc<Gateway>) {
    let (tell, mut told) = mpsc::channel(MESSAGES_MAX);
    let mut looks =
        Looks { client, gateway, tell, namespaces: HashMap::new(), tasks: JoinSet::new() };
    let mut changed = looks.gateway.members_changed();
    let mut spec = Arc::clone(&looks.gateway.spec());
    looks.look(targets(&spec, home));
    loop {
        tokio::select! {
            // Never over: we hold a sender.
            Some(message) = told.recv() => {
                let begun = clock::now();
                let more = iter::from_fn(|| told.try_recv().ok());
                looks.take_in(iter::once(message).chain(more));
                let took = clock::now().since(begun);
                sleep((took * REST_FOR_WORK).min(REST_MAX)).await;
            }
            // Also told of our own changes; only another document is of interest.
            outcome = changed.changed() => {
                if outcome.is_err() {
                    return;
                }
                let now = Arc::clone(&looks.gateway.spec());
                if !Arc::ptr_eq(&now, &spec) {
                    spec = now;
                    looks.look(targets(&spec, home));
                }
            }
        }
    }
}

/// The namespaces that are looked into, each by a task of its own.
struct Looks {
    client: Client,
    gateway: Arc<Gateway>,
    tell: mpsc::Sender<(String, FoundPools)>,
    namespaces: HashMap<String, Look>,
    tasks: JoinSet<()>,
}

struct Look {
    targets: watch::Sender<Vec<Target>>,
    task: AbortHandle,
    found: FoundPools,
}

impl Looks {
    /// Looks for these pools from now on, by namespace.
    fn look(&mut self, mut targets: HashMap<String, Vec<Target>>) {
        self.namespaces.retain(|namespace, look| {
            let stays = targets.contains_key(namespace);
            if !stays {
                look.task.abort();
            }
            stays
        });
        for (namespace, look) in &self.namespaces {
            let targets = targets.remove(namespace).unwrap_or_default();
            look.targets.send_if_modified(|known| {
                let is_news = *known != targets;
                *known = targets;
                is_news
            });
        }
        for (namespace, targets) in targets {
            let (sender, receiver) = watch::channel(targets);
            let pods = Api::namespaced(self.client.clone(), &namespace);
            let pods = follow(
                watch_pods(pods, self.gateway.metrics.clone()),
                receiver,
                namespace.clone(),
                self.tell.clone(),
            );
            let task = self.tasks.spawn(pods);
            self.namespaces
                .insert(namespace, Look { targets: sender, task, found: FoundPools::new() });
        }
    }

    fn take_in(&mut self, news: impl Iterator<Item = (String, FoundPools)>) {
        for (namespace, found) in news {
            if let Some(look) = self.namespaces.get_mut(&namespace) {
                look.found = found;
            }
        }
        let all = self.namespaces.values().flat_map(|look| &look.found);
        self.gateway.set_found(all.map(|(pool, found)| (pool.clone(), found.clone())).collect());
    }
}

/// Tells what the pods of one namespace make of its pools, until nobody listens.
async fn follow(
    events: impl Stream<Item = Event<Pod>>,
    mut targets: watch::Receiver<Vec<Target>>,
    namespace: String,
    tell: mpsc::Sender<(String, FoundPools)>,
) {
    let mut events = pin!(events);
    let mut pods = Pods::default();
    pods.fleet.set_targets(targets.borrow_and_update().clone());
    let mut is_news = false;
    loop {
        tokio::select! {
            permit = tell.reserve(), if is_news && pods.is_complete => {
                let Ok(permit) = permit else { return };
                permit.send((namespace.clone(), pods.fleet.found()));
                is_news = false;
            }
            event = events.next() => {
                let Some(event) = event else { return };
                is_news |= pods.take_in(event);
                for _ in 1..EVENTS_AT_ONCE_MAX {
                    let Some(Some(event)) = events.next().now_or_never() else { break };
                    is_news |= pods.take_in(event);
                }
            }
            outcome = targets.changed() => {
                if outcome.is_err() {
                    return;
                }
                let now = targets.borrow_and_update().clone();
                is_news |= pods.fleet.set_targets(now);
            }
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

/// The pools of a document that are made of pods, by namespace.
fn targets(spec: &Spec, home: &str) -> HashMap<String, Vec<Target>> {
    let mut targets: HashMap<String, Vec<Target>> = HashMap::new();
    for scheduler in &spec.schedulers {
        let Some(selector) = scheduler.model_selector.clone() else { continue };
        let ports =
            iter::once(scheduler.target_port).chain(scheduler.further_ports.iter().copied());
        let target = Target { pool: scheduler.name.clone(), selector, ports: ports.collect() };
        let namespace = scheduler.namespace.as_deref().unwrap_or(home);
        targets.entry(namespace.to_owned()).or_default().push(target);
    }
    targets
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
        let mut targets = targets(&document.spec, "home");
        pods.fleet.set_targets(targets.remove("home").unwrap());
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

    #[tokio::test(start_paused = true)]
    async fn what_comes_while_nobody_listens_is_told_together() {
        let target = pods().fleet.targets();
        let one = |n: usize, ready| Event::Apply(pod(&format!("pod-{n}"), ready));
        let news = (0..100).flat_map(move |n| [one(n, true), one(n, false), one(n, true)]);
        // One after the other, as they come over a connection.
        let events =
            futures_util::stream::iter([Event::Init, Event::InitDone].into_iter().chain(news))
                .then(|event| async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    event
                })
                .chain(futures_util::stream::pending());
        let (_targets, receiver) = watch::channel(target);
        let (tell, mut told) = mpsc::channel(MESSAGES_MAX);
        let following = tokio::spawn(follow(events, receiver, "home".to_owned(), tell));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let count = |found: &FoundPools| found.values().map(|found| found.len()).sum::<usize>();
        let (_, first) = told.recv().await.unwrap();
        let (_, second) = told.recv().await.unwrap();
        assert_eq!((count(&first), count(&second)), (0, 100));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(told.try_recv().is_err(), "there was nothing more to tell");
        following.abort();
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

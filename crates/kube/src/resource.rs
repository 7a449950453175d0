//! The document of a gateway from a resource, followed as it changes.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;

use config::{ApiGroup, Document, KIND};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use telemetry::Metrics;
use tokio::sync::watch;

use crate::crd;
use crate::document::{self, DocumentError, Maps};
use crate::watching::watch_those;

/// Which resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceName {
    pub group: ApiGroup,
    pub namespace: String,
    pub name: String,
}

/// The newest document, or why the newest resource is none. `None`: nothing was seen yet.
pub type Latest = watch::Receiver<Option<Arc<Result<Document, DocumentError>>>>;

/// The kind of a group's resources, for an API server.
pub(crate) fn kind(group: ApiGroup) -> ApiResource {
    let (name, version) = group.api_version().split_once('/').unwrap_or_default();
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(name, version, KIND), crd::PLURAL)
}

/// Follows a resource and the ConfigMaps that it is made of: what it is now, and the task that keeps it so.
///
/// A resource that is deleted leaves its last document in force: whoever deletes it also deletes the
/// gateway, or wants it to finish what it has.
pub fn follow(
    client: Client,
    resource: ResourceName,
    metrics: Metrics,
) -> (Latest, impl Future<Output = ()>) {
    let (told, latest) = watch::channel(None);
    (latest, keep(client, resource, metrics, told))
}

type Told = watch::Sender<Option<Arc<Result<Document, DocumentError>>>>;
type Events<K> = Pin<Box<dyn Stream<Item = Event<K>> + Send>>;

async fn keep(client: Client, resource: ResourceName, metrics: Metrics, told: Told) {
    let api = Api::namespaced_with(client.clone(), &resource.namespace, &kind(resource.group));
    let only = watcher::Config::default().fields(&format!("metadata.name={}", resource.name));
    let mut resources = pin!(watch_those(api, only, KIND.to_owned(), metrics.clone()));
    let map_events = || -> Events<ConfigMap> {
        let api = Api::namespaced(client.clone(), &resource.namespace);
        let all = watcher::Config::default();
        Box::pin(watch_those(api, all, "ConfigMap".to_owned(), metrics.clone()))
    };
    let mut maps = map_events();
    let mut known = Known::default();
    loop {
        tokio::select! {
            event = next(&mut resources) => known.take_resource(event, &resource),
            event = next(&mut maps) => known.take_map(event),
        }
        // Of the maps that nobody referred to nothing was kept.
        if known.refers_to_others() {
            maps = map_events();
        }
        known.tell(&told);
    }
}

/// The next event; a stream that has ended has none.
async fn next<K>(events: &mut (impl Stream<Item = Event<K>> + Unpin)) -> Event<K> {
    match events.next().await {
        Some(event) => event,
        None => pending().await,
    }
}

/// What was seen.
#[derive(Default)]
struct Known {
    resource: Option<DynamicObject>,
    /// Those that name adapters, and those that the resource refers to.
    maps: Maps,
    /// A list that is under way; it counts when it is whole.
    listed: Maps,
    has_all_maps: bool,
    wanted: BTreeSet<String>,
    is_news: bool,
    notes: Vec<String>,
}

impl Known {
    fn take_resource(&mut self, event: Event<DynamicObject>, of: &ResourceName) {
        match event {
            Event::Apply(resource) | Event::InitApply(resource) => {
                let spec = |object: &DynamicObject| object.data.get("spec").cloned();
                // Each write of the status is an event too.
                self.is_news |= self.resource.as_ref().map(spec) != Some(spec(&resource));
                self.resource = Some(resource);
            }
            Event::Delete(_) => tracing::warn!(
                resource = %format_args!("{}/{}", of.namespace, of.name),
                "the resource is gone; its last document stays in force"
            ),
            Event::InitDone if self.resource.is_none() => tracing::warn!(
                resource = %format_args!("{}/{}", of.namespace, of.name),
                "there is no such resource yet; waiting for it"
            ),
            Event::Init | Event::InitDone => {}
        }
    }

    fn take_map(&mut self, event: Event<ConfigMap>) {
        let name = |map: &ConfigMap| map.metadata.name.clone().unwrap_or_default();
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(map) => {
                if self.is_wanted(&map) {
                    self.listed.insert(name(&map), map);
                }
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.is_news |= !self.has_all_maps || data(&listed) != data(&self.maps);
                self.maps = listed;
                self.has_all_maps = true;
            }
            Event::Apply(map) if self.is_wanted(&map) => {
                self.maps.insert(name(&map), map);
                self.is_news = true;
            }
            Event::Apply(map) | Event::Delete(map) => {
                self.is_news |= self.maps.remove(&name(&map)).is_some();
            }
        }
    }

    fn is_wanted(&self, map: &ConfigMap) -> bool {
        let name = map.metadata.name.as_ref();
        document::is_adapters(map) || name.is_some_and(|name| self.wanted.contains(name))
    }

    /// Whether the resource refers to maps that it did not refer to before. From now on they are kept.
    fn refers_to_others(&mut self) -> bool {
        let referred = self.resource.as_ref().map(document::referred).unwrap_or_default();
        if referred.is_subset(&self.wanted) {
            return false;
        }
        self.wanted.extend(referred);
        self.has_all_maps = false;
        true
    }

    /// Tells the document if something changed and all is known that it is made of.
    fn tell(&mut self, told: &Told) {
        let Some(resource) = self.resource.as_ref().filter(|_| self.is_news && self.has_all_maps)
        else {
            return;
        };
        self.is_news = false;
        let composed = document::compose(resource, &self.maps);
        let notes = composed.as_ref().map(|composed| composed.notes.clone()).unwrap_or_default();
        for note in notes.iter().filter(|note| !self.notes.contains(note)) {
            tracing::warn!("{note}");
        }
        self.notes = notes;
        told.send_replace(Some(Arc::new(composed.map(|composed| composed.document))));
    }
}

/// What of the maps counts.
fn data(maps: &Maps) -> Vec<(&String, &ConfigMap)> {
    maps.iter().collect()
}

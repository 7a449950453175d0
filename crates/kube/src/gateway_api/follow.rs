//! Keeps the world: watches each kind wherever something of it can concern this gateway.

use std::sync::Arc;

use futures_util::stream::select_all;
use futures_util::{FutureExt, StreamExt};
use gateway::Gateway;
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use telemetry::clock;
use tokio::sync::watch;

use super::kind::Kind;
use super::object::Key;
use super::resolve::resolve;
use super::served::Served;
use super::world::World;
use super::writer::{Due, due, write};
use crate::watching::{News, watch_kind};

/// Events that are taken in before anything is worked out, if they are there already.
const EVENTS_AT_ONCE_MAX: usize = 1000;

/// Keeps what resources say in force, and tells them so in their status; until dropped.
///
/// What was seen last stays in force while the API server is away.
pub async fn follow(client: Client, served: Served, gateway: Arc<Gateway>) {
    let (tell, told) = watch::channel(Vec::new());
    tokio::join!(keep(client.clone(), served, gateway, tell), write(client, told));
}

/// Keeps the additions in force; tells which statuses differ from what they should be.
async fn keep(
    client: Client,
    served: Served,
    gateway: Arc<Gateway>,
    tell: watch::Sender<Vec<Due>>,
) {
    let mut sources: Vec<Source> = served.sources().into_iter().map(Source::new).collect();
    let streams = sources.iter().enumerate().map(|(at, source)| {
        let resource = source.kind.resource();
        let api: Api<DynamicObject> = match source.namespace.as_str() {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        let name = format!("{}.{}", resource.kind, resource.group);
        watch_kind(api, watcher::Config::default(), name, gateway.metrics.clone())
            .map(move |news| (at, news))
            .boxed()
    });
    let mut streams = select_all(streams);
    let mut world = World::default();
    while let Some((at, news)) = streams.next().await {
        let mut is_news = sources[at].take_in(news, &mut world);
        for _ in 1..EVENTS_AT_ONCE_MAX {
            let Some(Some((at, news))) = streams.next().now_or_never() else { break };
            is_news |= sources[at].take_in(news, &mut world);
        }
        // Half a world would take away what the other half has.
        if is_news && sources.iter().all(|source| source.is_known) {
            let resolved = resolve(&world, &served);
            if gateway.set_additions(resolved.additions) {
                tracing::info!(pools = world.pools.len(), "what resources say is in force");
            }
            tell.send_replace(due(&resolved.statuses, &world, clock::wall()));
        }
    }
}

/// One kind in one namespace, or in all (empty).
struct Source {
    kind: Kind,
    namespace: String,
    /// A list that is under way; it counts when it is whole.
    listed: Vec<DynamicObject>,
    /// A whole list was seen once, or that there is none.
    is_known: bool,
}

impl Source {
    fn new((kind, namespace): (Kind, String)) -> Self {
        Self { kind, namespace, listed: Vec::new(), is_known: false }
    }

    /// Whether the world changed, or became whole.
    fn take_in(&mut self, news: News<DynamicObject>, world: &mut World) -> bool {
        let event = match news {
            News::Event(event) => event,
            News::NoSuchKind => return self.know(Vec::new(), world),
            // What was seen stays; what never was is not waited for.
            News::Forbidden => return !std::mem::replace(&mut self.is_known, true),
        };
        match event {
            Event::Apply(object) => world.put(self.kind, object),
            Event::Delete(object) => {
                Key::of(&object).is_some_and(|key| world.remove(self.kind, &key))
            }
            Event::Init => {
                self.listed.clear();
                false
            }
            Event::InitApply(object) => {
                self.listed.push(object);
                false
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.know(listed, world)
            }
        }
    }

    fn know(&mut self, all: Vec<DynamicObject>, world: &mut World) -> bool {
        let is_news = world.replace(self.kind, &self.namespace, all);
        let is_first = !std::mem::replace(&mut self.is_known, true);
        is_news || is_first
    }
}

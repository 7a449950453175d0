//! Makes gateways of resources: watches, decides, writes.
//!
//! What is decided is pure ([`state`], [`desired`], [`status`], [`queue`], [`election`]); here is what carries it
//! out. Only the leader watches and writes. Nothing has a finalizer: whoever removes the controller leaves running
//! gateways, and whoever deletes a resource has the cluster's garbage collection remove what it was made into.

mod desired;
mod election;
mod key;
mod lease;
mod queue;
mod rollout;
mod settings;
mod state;
mod status;
mod writer;

use std::pin::pin;

use config::ApiGroup;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, Resource};
use rand::RngExt;
use telemetry::{Metrics, clock};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep};

pub use election::Timing;
pub use settings::{ControllerSettings, Images};

use key::{Key, Kind, MANAGED_BY};
use lease::Candidate;
use queue::{Extent, Queue};
use state::{Applied, News, Source, State, StatusPlan};
use status::Failure;
use writer::Writer;

use crate::client::Cluster;
use crate::resource;
use crate::watching::watch_those;

/// Gateways that are written at once.
const AT_ONCE_MAX: usize = 16;
/// News that wait to be taken in; watches wait when there are more.
const NEWS_MAX: usize = 1024;

/// Another leads, or nobody does.
#[derive(Debug, thiserror::Error)]
#[error(
    "the lease could not be renewed in time, so another may lead now; start again to stand for election"
)]
pub struct LostLease;

/// Waits to lead, then makes gateways of resources until `stop` ends.
///
/// # Errors
/// The lease was lost. What was under way was dropped; the next leader finds the rest undone.
pub async fn control(
    cluster: Cluster,
    settings: ControllerSettings,
    metrics: Metrics,
    stop: impl Future<Output = ()>,
) -> Result<(), LostLease> {
    let mut candidate = Candidate::new(cluster.client.clone(), &settings);
    let mut stop = pin!(stop);
    tokio::select! {
        () = candidate.lead() => {}
        () = &mut stop => return Ok(()),
    }
    tokio::select! {
        () = reconcile(cluster.client, &settings, &metrics) => Ok(()),
        () = candidate.keep() => return Err(LostLease),
        () = stop => Ok(()),
    }?;
    candidate.give_back().await;
    Ok(())
}

/// What became of work on one gateway.
#[allow(clippy::large_enum_variant, reason = "a handful live at a time")]
enum Outcome {
    Objects(Key, Vec<Applied>, Option<Failure>),
    Status(Key, Result<Option<DynamicObject>, String>, Standing, Duration),
}

/// Whether the objects are as they should be; if not, they are tried again after the status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Good,
    Failed,
}

struct Work {
    state: State,
    queue: Queue<Key>,
    writer: Writer,
    running: JoinSet<Outcome>,
}

/// Watches and writes, for ever.
async fn reconcile(client: Client, settings: &ControllerSettings, metrics: &Metrics) {
    let (told, mut news) = mpsc::channel(NEWS_MAX);
    // Ends with this function.
    let mut watches = JoinSet::new();
    let sources = watch_all(&client, settings, metrics, &told, &mut watches);
    let mut work = Work {
        state: State::new(settings.images.clone(), sources),
        queue: Queue::default(),
        writer: Writer::new(client, &settings.identity),
        running: JoinSet::new(),
    };
    let begun = clock::now();
    let mut was_complete = false;
    loop {
        let pause = work.queue.next().map(|at| at.since(clock::now()));
        let pause = pause.filter(|_| was_complete && work.running.len() < AT_ONCE_MAX);
        tokio::select! {
            Some(one) = news.recv() => {
                work.take(one);
                // What is there already is one change.
                while let Ok(one) = news.try_recv() {
                    work.take(one);
                }
            }
            Some(done) = work.running.join_next() => {
                if let Ok(outcome) = done {
                    work.done(outcome);
                }
            }
            () = sleep(pause.unwrap_or(Duration::MAX)) => {}
        }
        if work.state.is_complete() {
            if !std::mem::replace(&mut was_complete, true) {
                let (gateways, pods) = work.state.sizes();
                let took = clock::now().since(begun);
                tracing::info!(gateways, pods, ?took, "all is known");
            }
            work.begin();
        }
    }
}

impl Work {
    fn take(&mut self, news: News) {
        let now = clock::now();
        for (key, extent) in self.state.take(news) {
            self.queue.add(key, extent, now);
        }
    }

    /// Begins what is due.
    fn begin(&mut self) {
        while self.running.len() < AT_ONCE_MAX
            && let Some((key, extent)) = self.queue.take(clock::now())
        {
            let writes = match extent {
                Extent::Status => Vec::new(),
                Extent::Whole => self.state.plan_objects(&key),
            };
            if writes.is_empty() {
                self.begin_status(key, Standing::Good);
                continue;
            }
            let writer = self.writer.clone();
            self.running.spawn(async move {
                let (applied, failure) = writer.write(&key, writes).await;
                Outcome::Objects(key, applied, failure)
            });
        }
    }

    fn begin_status(&mut self, key: Key, standing: Standing) {
        let Some(plan) = self.state.plan_status(&key, &now_text()) else {
            self.finish(&key, standing, None);
            return;
        };
        let writer = self.writer.clone();
        self.running.spawn(async move {
            let begun = clock::now();
            let written = writer.write_status(&key, &plan).await;
            let took = clock::now().since(begun);
            if matches!(written, Ok(Some(_))) {
                log(&key, &plan);
                writer.tell(&key, &plan).await;
            }
            Outcome::Status(key, written, standing, took)
        });
    }

    fn done(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Objects(key, applied, failure) => {
                let standing = match &failure {
                    Some(failure) => {
                        tracing::warn!(gateway = %key, "{}", failure.message);
                        Standing::Failed
                    }
                    None => Standing::Good,
                };
                self.state.note_applied(&key, applied, failure);
                self.begin_status(key, standing);
            }
            Outcome::Status(key, Ok(written), standing, took) => {
                if let Some(written) = written {
                    self.state.note_status(&key, &written);
                }
                self.finish(&key, standing, Some(took));
            }
            Outcome::Status(key, Err(error), ..) => {
                tracing::warn!(gateway = %key, error, "the status could not be written");
                self.finish(&key, Standing::Failed, None);
            }
        }
    }

    fn finish(&mut self, key: &Key, standing: Standing, took: Option<Duration>) {
        match standing {
            Standing::Good => self.queue.succeeded(key, took, clock::now()),
            Standing::Failed => {
                self.queue.failed(key, clock::now(), rand::rng().random());
            }
        }
    }
}

fn log(key: &Key, plan: &StatusPlan) {
    for notice in &plan.notices {
        if notice.is_warning {
            tracing::warn!(gateway = %key, reason = notice.reason, "{}", notice.message);
        } else {
            tracing::info!(gateway = %key, reason = notice.reason, "{}", notice.message);
        }
    }
}

fn now_text() -> String {
    let mut text = Vec::new();
    clock::push_rfc3339(clock::wall(), &mut text);
    // Kubernetes' times are whole seconds.
    let text = String::from_utf8_lossy(&text);
    format!("{}Z", text.split('.').next().unwrap_or_default())
}

/// Begins all watches. What they show.
fn watch_all(
    client: &Client,
    settings: &ControllerSettings,
    metrics: &Metrics,
    told: &mpsc::Sender<News>,
    watches: &mut JoinSet<()>,
) -> Vec<Source> {
    let all = watcher::Config::default();
    let mut sources = Vec::new();
    let dynamic = |kind: &ApiResource| -> Api<DynamicObject> {
        match &settings.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, kind),
            None => Api::all_with(client.clone(), kind),
        }
    };
    let groups = [Some(ApiGroup::Wicketgate), settings.is_for_aws.then_some(ApiGroup::Aws)];
    for group in groups.into_iter().flatten() {
        let api = dynamic(&resource::kind(group));
        let events = watch_those(api, all.clone(), config::KIND.to_owned(), metrics.clone());
        watches.spawn(pass_on(events, told.clone(), move |event| News::Gateway(group, event)));
        sources.push(Source::Gateways(group));
    }
    let ours = all.clone().labels(&format!("{}={}", MANAGED_BY.0, MANAGED_BY.1));
    for kind in Kind::ALL {
        let api = dynamic(&kind.resource());
        let events = watch_those(api, ours.clone(), kind.name().to_owned(), metrics.clone());
        watches.spawn(pass_on(events, told.clone(), move |event| News::Owned(kind, event)));
        sources.push(Source::Owned(kind));
    }
    let pods: Api<Pod> = match &settings.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let events = watch_those(pods, all, Pod::kind(&()).into_owned(), metrics.clone());
    watches.spawn(pass_on(events, told.clone(), News::Pod));
    sources.push(Source::Pods);
    sources
}

/// Hands a watch's events on until nobody wants them.
async fn pass_on<K>(
    events: impl Stream<Item = watcher::Event<K>> + Send,
    told: mpsc::Sender<News>,
    news: impl Fn(watcher::Event<K>) -> News + Send,
) {
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        if told.send(news(event)).await.is_err() {
            return;
        }
    }
}

//! Watches that begin anew by themselves.
//!
//! A watch ends all the time: the server closes it, restarts, or no longer has the version that we saw
//! last (410 Gone). `kube` resumes or lists anew; here is how soon, and what is said of it.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_api};
use kube::{Api, Resource};
use rand::RngExt;
use serde::de::DeserializeOwned;
use telemetry::Metrics;

/// A watch is renewed this often, so that a connection that died silently is noticed soon after.
const WATCH_SECONDS: u32 = 60;
/// Pauses between attempts, from the first to the longest.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a watch says.
pub(crate) enum News<K> {
    Event(Event<K>),
    /// The API server does not know the kind: its definition is not installed.
    NoSuchKind,
    /// We may not list it.
    Forbidden,
}

/// All objects that the API has, then every change, for ever.
pub(crate) fn watch<K>(api: Api<K>, metrics: Metrics) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    watch_those(api, watcher::Config::default(), kind, metrics)
}

/// The same of objects that a selector chooses, also of kinds that are known at run time only.
///
/// * `kind`: what the log calls them.
pub(crate) fn watch_those<K>(
    api: Api<K>,
    selected: watcher::Config,
    kind: String,
    metrics: Metrics,
) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut is_missing = false;
    watch_kind(api, selected, kind.clone(), metrics).filter_map(move |news| {
        let event = match news {
            News::Event(event) => Some(event),
            News::NoSuchKind => {
                if !std::mem::replace(&mut is_missing, true) {
                    tracing::warn!(kind, "the cluster has no such kind: install its definition");
                }
                None
            }
            News::Forbidden => None,
        };
        std::future::ready(event)
    })
}

/// The same for a kind that need not be there, or that we need not be allowed to see.
pub(crate) fn watch_kind<K>(
    api: Api<K>,
    selected: watcher::Config,
    kind: String,
    metrics: Metrics,
) -> impl Stream<Item = News<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = selected.timeout(WATCH_SECONDS);
    let mut is_failing = false;
    watch_api(api, config).backoff(Pauses::default()).filter_map(move |event| {
        let news = match event {
            Ok(event) => {
                if std::mem::take(&mut is_failing) {
                    tracing::info!(kind, "the Kubernetes API answers again");
                }
                Some(News::Event(event))
            }
            Err(error) if status_of(&error) == Some(404) => {
                tracing::debug!(kind, "the cluster has no such kind");
                Some(News::NoSuchKind)
            }
            Err(error) => {
                metrics.gateway().kubernetes_watch_failures.inc();
                if !std::mem::replace(&mut is_failing, true) {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        error,
                        kind,
                        "the Kubernetes API cannot be watched; what was seen last stays in force"
                    );
                }
                (status_of(&error) == Some(403)).then_some(News::Forbidden)
            }
        };
        std::future::ready(news)
    })
}

/// What the API server answered instead of objects.
fn status_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

/// Each pause twice the last, up to the longest; a quarter of it is chance, so that many gateways do not
/// come back in step.
struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: PAUSE_MIN }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(PAUSE_MAX);
        Some(pause.mul_f64(rand::rng().random_range(0.75..=1.0)))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_begin_again_after_a_success() {
        let mut pauses = Pauses::default();
        let taken: Vec<Duration> = pauses.by_ref().take(12).collect();
        assert!(taken[0] <= PAUSE_MIN && taken[0] >= PAUSE_MIN.mul_f64(0.75));
        assert!(taken.iter().all(|pause| *pause <= PAUSE_MAX));
        assert!(*taken.last().unwrap() >= PAUSE_MAX.mul_f64(0.75));
        pauses.reset();
        assert!(pauses.next().unwrap() <= PAUSE_MIN);
    }
}

//! Keeps keys in force: signing keys are fetched again, changed files are read again.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use identity::keys::Stamp;
use identity::{DueFetch, FetchedKeys};
use telemetry::clock;
use telemetry::metrics::labels::{JwksFetch, Reload};

use super::{Keys, moment};
use crate::Gateway;

/// How often files are looked at, and fetches that are due.
const INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a key set.
const BYTES_MAX: usize = 512 * 1024;
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why signing keys were not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysFetchError {
    #[error("cannot connect: {0}")]
    Connect(String),
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("no answer in time")]
    Timeout,
    #[error("the answer is {0}, wanted was 200; redirects are not followed")]
    Status(u16),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer is broken")]
    Broken,
}

/// Gets signing keys over HTTPS.
pub trait FetchKeys: 'static {
    /// Answers within `timeout` with at most `bytes_max` bytes of body. Follows no redirect.
    ///
    /// * `ca_file`: who may have signed the server's certificate; `None`: the system's authorities.
    fn get(
        &self,
        uri: &str,
        ca_file: Option<&Path>,
        bytes_max: usize,
        timeout: Duration,
    ) -> impl Future<Output = Result<FetchedKeys, KeysFetchError>>;
}

/// Runs until dropped. Must run inside a `LocalSet`.
pub async fn keep_keys<F: FetchKeys>(gateway: Arc<Gateway>, fetch: F) {
    let fetch = Rc::new(fetch);
    let mut rejected = None;
    let failing = Rc::new(std::cell::RefCell::new(HashSet::new()));
    let mut fetches = tokio::task::JoinSet::new();
    let mut look = tokio::time::interval(INTERVAL);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // Files are looked at by time alone: requests that ask for keys may be many.
            _ = look.tick() => reread(&gateway, &mut rejected),
            () = gateway.door.wanted.notified() => {}
            Some(_) = fetches.join_next() => {}
        }
        // Each answer goes to whoever asked: a reload must not give it to another's issuers.
        let keys = gateway.door.keys.load_full();
        let Some(authenticator) = &keys.authenticator else { continue };
        for due in authenticator.due_fetches(moment(clock::now())) {
            let (gateway, keys) = (gateway.clone(), keys.clone());
            fetches.spawn_local(fetch_one(gateway, keys, fetch.clone(), due, failing.clone()));
        }
    }
}

/// Reads files again that have changed since the keys in force were read.
///
/// * `rejected`: how the files stood when they could not be used, so that they are complained about once.
fn reread(gateway: &Arc<Gateway>, rejected: &mut Option<Stamp>) {
    let spec = gateway.spec().clone();
    let stamp = identity::stamp(&spec);
    if gateway.door.keys.load().stamp == stamp || rejected.as_ref() == Some(&stamp) {
        return;
    }
    let reloads = &gateway.metrics.gateway().auth.reloads;
    match Keys::load(&spec, Some(gateway)) {
        Ok(keys) => {
            *rejected = None;
            gateway.use_keys(keys);
            reloads.of(Reload::Applied).inc();
            tracing::info!("changed keys are in force");
        }
        Err(error) => {
            *rejected = Some(stamp);
            reloads.of(Reload::Rejected).inc();
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, "changed keys cannot be used; the former stay in force");
        }
    }
}

async fn fetch_one<F: FetchKeys>(
    gateway: Arc<Gateway>,
    keys: Arc<Keys>,
    fetch: Rc<F>,
    due: DueFetch,
    failing: Rc<std::cell::RefCell<HashSet<String>>>,
) {
    let fetched = fetch.get(&due.uri, due.ca_file.as_deref(), BYTES_MAX, TIMEOUT).await;
    let Some(authenticator) = &keys.authenticator else { return };
    let now = moment(clock::now());
    let (outcome, error) = match fetched {
        Ok(fetched) => match authenticator.fetched(due.provider, Some(fetched), now) {
            Ok(()) => (JwksFetch::Ok, None),
            Err(error) => (JwksFetch::Unusable, Some(error.to_string())),
        },
        Err(error) => {
            // Without keys there is nothing in them to complain about.
            let _ = authenticator.fetched(due.provider, None, now);
            (outcome_of(&error), Some(error.to_string()))
        }
    };
    gateway.metrics.gateway().auth.jwks_fetches.of(outcome).inc();
    match error {
        None => {
            if failing.borrow_mut().remove(&due.uri) {
                tracing::info!(uri = due.uri, "signing keys can be fetched again");
            }
        }
        Some(error) if failing.borrow_mut().insert(due.uri.clone()) => {
            tracing::warn!(
                uri = due.uri,
                error,
                "signing keys cannot be fetched; those that are held stay valid for jwks.staleFor"
            );
        }
        Some(_) => {}
    }
}

fn outcome_of(error: &KeysFetchError) -> JwksFetch {
    match error {
        KeysFetchError::Connect(_) => JwksFetch::Connect,
        KeysFetchError::Tls(_) => JwksFetch::Tls,
        KeysFetchError::Timeout => JwksFetch::Timeout,
        KeysFetchError::Status(_) => JwksFetch::Status,
        KeysFetchError::TooLarge(_) => JwksFetch::TooLarge,
        KeysFetchError::Broken => JwksFetch::Broken,
    }
}

impl Gateway {
    /// Brings the gauges of signing keys up to date.
    pub(crate) fn refresh_key_gauges(&self) {
        let keys = self.door.keys.load();
        let Some(authenticator) = &keys.authenticator else { return };
        let providers = authenticator.providers(moment(clock::now()));
        let oldest = providers.iter().filter_map(|provider| provider.age).max();
        let metrics = &self.metrics.gateway().auth;
        metrics.jwks_age.set(oldest.map(|age| age.as_secs_f64()));
        let failing = providers.iter().filter(|provider| provider.failures > 0).count();
        metrics.jwks_failing.set(i64::try_from(failing).unwrap_or(i64::MAX));
    }
}

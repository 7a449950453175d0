//! One issuer: its keys, how old they are, and when they are fetched again.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use config::{JwksSource, JwtProvider};
use jsonwebtoken::Algorithm;
use types::Timestamp;

use super::jwks::{JwksError, KeySet};

/// Algorithms that are accepted where the document names none. None of them is symmetric.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Least time between two fetches that unknown keys set off: whoever sends made-up key ids cannot
/// make us fetch more often.
const WANTED_INTERVAL_MIN: Duration = Duration::from_secs(10);
/// Bounds of what `Cache-Control` may say.
const CACHE_MIN: Duration = Duration::from_secs(10);
const CACHE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Wait after the first failed fetch; doubled by each further one.
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// An issuer and what is known of its keys.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) spec: JwtProvider,
    pub(crate) algorithms: Vec<Algorithm>,
    held: ArcSwapOption<Held>,
    schedule: Mutex<Schedule>,
}

#[derive(Debug)]
struct Held {
    set: KeySet,
    /// As they came, to see whether they change.
    bytes: Vec<u8>,
    /// When they were fetched last; `None`: from a file, which does not age.
    fetched: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
struct Schedule {
    /// `None`: at once.
    next: Option<Timestamp>,
    /// When the last fetch began.
    begun: Option<Timestamp>,
    under_way: bool,
    failures: u32,
}

/// Keys that are to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueFetch {
    /// Which provider, for [`crate::Authenticator::fetched`].
    pub provider: usize,
    pub uri: String,
    /// Who may have signed the server's certificate; `None`: the system's authorities.
    pub ca_file: Option<PathBuf>,
}

/// What a fetch brought.
#[derive(Clone, Debug)]
pub struct FetchedKeys {
    pub body: Vec<u8>,
    /// `max-age` of the answer's `Cache-Control`; zero where it forbids caching.
    pub max_age: Option<Duration>,
}

/// How a provider stands, for metrics and people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderState {
    pub name: String,
    /// Since the last good fetch; `None`: there was none, or the keys are in a file.
    pub age: Option<Duration>,
    pub has_keys: bool,
    /// Fetches that failed in a row.
    pub failures: u32,
}

impl Provider {
    pub(crate) fn new(spec: JwtProvider) -> Self {
        let named = spec.algorithms.iter().filter_map(|name| Algorithm::from_str(name).ok());
        let algorithms: Vec<_> = named.filter(|named| ALGORITHMS.contains(named)).collect();
        let algorithms = if algorithms.is_empty() { ALGORITHMS.to_vec() } else { algorithms };
        Self { spec, algorithms, held: ArcSwapOption::empty(), schedule: Mutex::default() }
    }

    /// Takes over what another one with the same source knew.
    pub(crate) fn adopt(&self, other: &Self) {
        if other.spec.jwks.source == self.spec.jwks.source {
            self.held.store(other.held.load_full());
            let mut schedule = self.schedule();
            *schedule = other.schedule().clone();
            // A fetch under way reports to the former one.
            schedule.under_way = false;
        }
    }

    /// Puts keys from a file in force.
    pub(crate) fn set_file(&self, bytes: Vec<u8>) -> Result<(), JwksError> {
        let set = KeySet::parse(&bytes)?;
        self.held.store(Some(Arc::new(Held { set, bytes, fetched: None })));
        Ok(())
    }

    /// The keys in force, if they are not too old.
    pub(super) fn keys(&self, now: Timestamp) -> Option<KeysInForce> {
        let held = self.held.load_full()?;
        let limit = self.spec.jwks.stale_for.max(self.spec.jwks.cache);
        let is_good = held.fetched.is_none_or(|fetched| now.since(fetched) <= limit);
        is_good.then_some(KeysInForce(held))
    }

    /// A token needs a key that is not here. Whether keys are on their way.
    pub(super) fn want_keys(&self, now: Timestamp) -> bool {
        if matches!(self.spec.jwks.source, JwksSource::File(_)) {
            return false;
        }
        let mut schedule = self.schedule();
        if schedule.under_way || schedule.next.is_none() {
            return true;
        }
        let rested = schedule.begun.is_none_or(|begun| now.since(begun) >= WANTED_INTERVAL_MIN);
        if rested {
            schedule.next = None;
        }
        rested
    }

    /// Begins a fetch, if one is due.
    pub(crate) fn begin_fetch(&self, provider: usize, now: Timestamp) -> Option<DueFetch> {
        let JwksSource::Remote { uri, ca_file } = &self.spec.jwks.source else { return None };
        let mut schedule = self.schedule();
        if schedule.under_way || schedule.next.is_some_and(|next| next > now) {
            return None;
        }
        schedule.under_way = true;
        schedule.begun = Some(now);
        Some(DueFetch { provider, uri: uri.clone(), ca_file: ca_file.clone() })
    }

    /// What came of the fetch. Whether the keys are others than before.
    pub(crate) fn end_fetch(
        &self,
        fetched: Option<FetchedKeys>,
        now: Timestamp,
    ) -> Result<bool, JwksError> {
        let parsed =
            fetched.map(|fetched| Ok((KeySet::parse(&fetched.body)?, fetched))).transpose();
        let mut schedule = self.schedule();
        schedule.under_way = false;
        match parsed {
            Ok(Some((set, fetched))) => {
                schedule.failures = 0;
                let cache = fetched.max_age.unwrap_or(self.spec.jwks.cache);
                schedule.next = Some(now + cache.clamp(CACHE_MIN, CACHE_MAX));
                let is_new =
                    self.held.load().as_ref().is_none_or(|held| held.bytes != fetched.body);
                let held = Held { set, bytes: fetched.body, fetched: Some(now) };
                self.held.store(Some(Arc::new(held)));
                Ok(is_new)
            }
            failed => {
                let wait = BACKOFF_MIN * 2_u32.saturating_pow(schedule.failures.min(16));
                schedule.failures = schedule.failures.saturating_add(1);
                schedule.next = Some(now + wait.min(BACKOFF_MAX));
                failed.map(|_| false)
            }
        }
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.held.load().is_some()
    }

    pub(crate) fn state(&self, now: Timestamp) -> ProviderState {
        let held = self.held.load();
        let age = held.as_ref().and_then(|held| held.fetched).map(|fetched| now.since(fetched));
        ProviderState {
            name: self.spec.name.clone(),
            age,
            has_keys: held.is_some(),
            failures: self.schedule().failures,
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys that may be used now.
pub(super) struct KeysInForce(Arc<Held>);

impl std::ops::Deref for KeysInForce {
    type Target = KeySet;

    fn deref(&self) -> &KeySet {
        &self.0.set
    }
}

//! A heartbeat as decisions read it.

use std::sync::Arc;
use std::time::Duration;

use types::{ModelName, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::heartbeat::{Heartbeat, ModelLoad};
use crate::ledger::Slot;
use crate::shaping::{Money, Price};

/// How fast rates of sending are forgotten.
const FORGOTTEN: f32 = 6.0;
/// Others' requests for each of ours, at most.
const PEERS_MAX: f32 = 1000.0;

/// Prices and carbon are followed so slowly: whoever follows each swing sends all requests from one to the other.
const PRICES: f64 = 60.0;

/// What a member said last.
#[derive(Debug)]
pub struct Report {
    pub heartbeat: Heartbeat,
    pub heard: Timestamp,
    /// How much older than that it is, as far as can be known.
    pub lag: Duration,
    /// What it says of price and carbon, as fading means.
    pub price: Option<Price>,
    pub carbon: Option<f32>,
    /// Sorted by hash.
    names: Box<[Name]>,
    /// Where the names of each bucket begin; a name's bucket is the highest bits of its hash.
    buckets: Box<[u16]>,
    /// One for each model of the heartbeat.
    books: Box<[Books]>,
}

#[derive(Clone, Copy, Debug)]
struct Name {
    hash: u64,
    model: u16,
    /// Position among the model's adapters; `None`: the model itself.
    adapter: Option<u16>,
}

/// What this router had done when the report came.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) slot: Arc<Slot>,
    pub(crate) sent: u64,
    /// This router's requests a second, fading.
    pub(crate) rate: f32,
    /// Requests that reach the model for each one that this router sends.
    pub(crate) peers: f32,
}

/// A model that answers to a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served<'a> {
    pub(crate) report: &'a Report,
    pub(crate) load: &'a ModelLoad,
    pub(crate) books: &'a Books,
    pub(crate) needs_loading: bool,
}

impl Report {
    pub(crate) fn new(
        heartbeat: Heartbeat,
        former: Option<&Self>,
        lag: Duration,
        heard: Timestamp,
    ) -> Self {
        let mut names = Vec::new();
        for (model, load) in heartbeat.models.iter().enumerate() {
            let model = model as u16;
            names.push(Name { hash: hash(load.name.as_str()), model, adapter: None });
            for (adapter, named) in load.adapters.iter().enumerate() {
                let hash = hash(named.name.as_str());
                names.push(Name { hash, model, adapter: Some(adapter as u16) });
            }
        }
        names.sort_unstable_by_key(|name| (name.hash, name.adapter.is_some()));
        let books = heartbeat.models.iter();
        let books = books.map(|load| Books::new(load, former, heard)).collect();
        let left =
            former.map_or(0.0, |former| (-heard.since(former.heard).as_secs_f64() / PRICES).exp());
        let mean = |before: f64, now: f64| now + (before - now) * left;
        let price = heartbeat.price.map(|now| {
            let before = former.and_then(|former| former.price).unwrap_or(now);
            let part =
                |before: Money, now: Money| Money(mean(before.0 as f64, now.0 as f64) as u64);
            Price { input: part(before.input, now.input), output: part(before.output, now.output) }
        });
        let carbon = heartbeat.carbon.map(|now| {
            let before = former.and_then(|former| former.carbon).unwrap_or(now);
            mean(f64::from(before), f64::from(now)) as f32
        });
        let buckets = buckets(&names);
        Self { heartbeat, heard, lag, price, carbon, names: names.into(), buckets, books }
    }

    /// Names that clients can ask for: models and their adapters.
    pub fn names(&self) -> impl Iterator<Item = &ModelName> {
        let models = self.heartbeat.models.iter();
        models.flat_map(|load| {
            std::iter::once(&load.name).chain(load.adapters.iter().map(|adapter| &adapter.name))
        })
    }

    /// * `hash`: of the name, see [`hash`].
    pub(crate) fn find(&self, name: &str, hash: u64) -> Option<Served<'_>> {
        let bucket = bucket(hash, self.buckets.len() - 1);
        let [start, end] =
            [bucket, bucket + 1].map(|at| self.buckets.get(at).copied().unwrap_or(0));
        let near = self.names.get(usize::from(start)..usize::from(end))?.iter();
        near.filter(|known| known.hash == hash).find_map(|known| {
            let at = usize::from(known.model);
            let (load, books) = (self.heartbeat.models.get(at)?, self.books.get(at)?);
            let adapter = known.adapter.and_then(|at| load.adapters.get(usize::from(at)));
            let own = adapter.map_or(&load.name, |adapter| &adapter.name);
            let needs_loading = adapter.is_some_and(|adapter| !adapter.is_resident);
            (own.as_str() == name).then_some(Served { report: self, load, books, needs_loading })
        })
    }

    /// The models with this router's books.
    pub(crate) fn models(&self) -> impl Iterator<Item = (&ModelLoad, &Books)> {
        self.heartbeat.models.iter().zip(&self.books)
    }
}

impl Served<'_> {
    pub(crate) fn is_ready(self) -> bool {
        self.load.endpoints_ready > 0
    }
}

impl Books {
    fn new(load: &ModelLoad, former: Option<&Report>, heard: Timestamp) -> Self {
        let known = former.and_then(|report| {
            let mut models = report.models();
            models.find(|(known, _)| known.name == load.name).map(|(_, books)| (report, books))
        });
        let Some((report, books)) = known else {
            return Self { slot: Arc::default(), sent: 0, rate: 0.0, peers: 1.0 };
        };
        let sent = books.slot.sent();
        let passed = heard.since(report.heard).as_secs_f32().max(1e-3);
        let left = (-passed / FORGOTTEN).exp();
        let rate = books.rate * left + (sent - books.sent) as f32 / passed * (1.0 - left);
        // As long as this router sends next to nothing, nothing can be told, and nothing depends on it.
        let peers = if rate > 0.1 { load.arrivals_per_second / rate } else { books.peers };
        Self { slot: books.slot.clone(), sent, rate, peers: peers.clamp(1.0, PEERS_MAX) }
    }
}

/// A decision looks into one bucket of each member, which is one line of memory; a search through all names would be
/// ten. As many buckets as names, rounded up to a power of two.
fn buckets(names: &[Name]) -> Box<[u16]> {
    let count = names.len().next_power_of_two();
    let starts = (0..=count).map(|at| {
        let start = names.partition_point(|name| bucket(name.hash, count) < at);
        u16::try_from(start).unwrap_or(u16::MAX)
    });
    starts.collect()
}

/// * `count`: a power of two.
fn bucket(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

/// Of a model's name.
pub(crate) fn hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

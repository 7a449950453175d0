//! A bounded map in parts, so that no request waits for all others.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::moment::Moment;

const SHARDS: usize = 64;
/// Entries of one shard; a million in all.
const SHARD_ENTRIES_MAX: usize = (1 << 20) / SHARDS;
/// Entries that a shard may have before it is first looked through.
const SWEEP_FIRST: usize = 64;

/// What need not be held in full while nobody uses it.
pub(crate) trait Entry {
    /// What is left of it then.
    type Memory: Clone + std::fmt::Debug;

    fn at_rest(&self, moment: Moment) -> Rest<Self::Memory>;

    /// Puts it back into one that was made anew.
    fn recall(&self, memory: Self::Memory);

    /// Whether anything would still be lost without it.
    fn still_counts(memory: &mut Self::Memory, moment: Moment) -> bool;
}

/// Whether an entry can go.
#[derive(Debug)]
pub(crate) enum Rest<M> {
    No,
    /// Nothing would be lost if it were made anew.
    Gone,
    Keeps(M),
}

#[derive(Debug)]
pub(crate) struct Shards<K, V: Entry> {
    shards: Box<[Mutex<Shard<K, V>>]>,
    hasher: RandomState,
    shard_entries_max: usize,
    /// Stands for all names beyond the most that are kept.
    others: OnceLock<Arc<V>>,
}

#[derive(Debug)]
struct Shard<K, V: Entry> {
    entries: HashMap<K, Arc<V>>,
    /// Of those that nobody uses. No name is in both.
    memories: HashMap<K, V::Memory>,
    /// Entries at which it is looked through for idle ones.
    sweep_at: usize,
}

impl<K: Hash + Eq + Clone, V: Entry> Shards<K, V> {
    pub(crate) fn new() -> Self {
        Self::with_most(SHARD_ENTRIES_MAX)
    }

    fn with_most(shard_entries_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
            hasher: RandomState::new(),
            shard_entries_max,
            others: OnceLock::new(),
        }
    }

    fn shard(&self, name: &K) -> MutexGuard<'_, Shard<K, V>> {
        let at = self.hasher.hash_one(name) as usize % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Shard<K, V>>> {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The entry of this name, made if it is not there.
    pub(crate) fn get(&self, name: K, moment: Moment, make: impl FnOnce(K) -> V) -> Arc<V> {
        let mut shard = self.shard(&name);
        if let Some(entry) = shard.entries.get(&name) {
            return entry.clone();
        }
        if shard.entries.len() >= shard.sweep_at {
            shard.sweep(moment);
        }
        let memory = shard.memories.remove(&name);
        if memory.is_none() && shard.len() >= self.shard_entries_max {
            return self.others.get_or_init(|| Arc::new(make(name))).clone();
        }
        let entry = Arc::new(make(name.clone()));
        if let Some(memory) = memory {
            entry.recall(memory);
        }
        shard.entries.insert(name, entry.clone());
        entry
    }

    /// The same, if it is in use.
    pub(crate) fn find(&self, name: &K) -> Option<Arc<V>> {
        self.shard(name).entries.get(name).cloned()
    }

    /// The entry as it stands: one that is made for a look is kept by nobody.
    pub(crate) fn look(&self, name: K, make: impl FnOnce(K) -> V) -> Arc<V> {
        let shard = self.shard(&name);
        if let Some(entry) = shard.entries.get(&name) {
            return entry.clone();
        }
        let memory = shard.memories.get(&name).cloned();
        drop(shard);
        let entry = make(name);
        if let Some(memory) = memory {
            entry.recall(memory);
        }
        Arc::new(entry)
    }

    /// Forgets what is idle.
    pub(crate) fn sweep(&self, moment: Moment) {
        self.all().for_each(|mut shard| shard.sweep(moment));
    }

    /// Names that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.all().map(|shard| shard.len()).sum()
    }

    /// Calls `look` with each entry in use, a shard at a time.
    pub(crate) fn each(&self, mut look: impl FnMut(&V)) {
        for shard in self.all() {
            shard.entries.values().for_each(|entry| look(entry));
        }
        if let Some(others) = self.others.get() {
            look(others);
        }
    }

    /// The same with what is left of the others.
    pub(crate) fn each_memory(&self, mut look: impl FnMut(&K, &V::Memory)) {
        for shard in self.all() {
            shard.memories.iter().for_each(|(name, memory)| look(name, memory));
        }
    }
}

impl<K: Hash + Eq + Clone, V: Entry> Shard<K, V> {
    fn new() -> Self {
        Self { entries: HashMap::new(), memories: HashMap::new(), sweep_at: SWEEP_FIRST }
    }

    fn len(&self) -> usize {
        self.entries.len() + self.memories.len()
    }

    fn sweep(&mut self, moment: Moment) {
        self.memories.retain(|_, memory| V::still_counts(memory, moment));
        let Self { entries, memories, .. } = self;
        entries.retain(|name, entry| {
            // Whoever holds one may still change it.
            if Arc::strong_count(entry) > 1 {
                return true;
            }
            match entry.at_rest(moment) {
                Rest::No => true,
                Rest::Gone => false,
                Rest::Keeps(memory) => {
                    memories.insert(name.clone(), memory);
                    false
                }
            }
        });
        self.sweep_at = (self.entries.len() * 2).max(SWEEP_FIRST);
        shrink(&mut self.entries);
        shrink(&mut self.memories);
    }
}

/// Gives room back that so few need no more.
fn shrink<K: Hash + Eq, V>(map: &mut HashMap<K, V>) {
    let wanted = (map.len() * 2).max(SWEEP_FIRST);
    if map.capacity() > wanted * 2 {
        map.shrink_to(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Busy;

    impl Entry for Busy {
        type Memory = ();

        fn at_rest(&self, _: Moment) -> Rest<()> {
            Rest::No
        }

        fn recall(&self, (): ()) {}

        fn still_counts((): &mut (), _: Moment) -> bool {
            false
        }
    }

    #[test]
    fn beyond_the_most_all_other_names_share_one_entry() {
        let shards = Shards::with_most(4);
        let entries: Vec<_> =
            (0..5000).map(|name| shards.get(name, Moment::default(), |_| Busy)).collect();
        assert_eq!(shards.len(), 4 * SHARDS);
        let others = shards.get(7000, Moment::default(), |_| Busy);
        let shared = entries.iter().filter(|entry| Arc::ptr_eq(entry, &others)).count();
        assert_eq!(shared, 5000 - 4 * SHARDS);
    }
}

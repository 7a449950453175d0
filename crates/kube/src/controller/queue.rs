//! What is due, and when: each key once, failures later and later.
//!
//! Pure: time and chance are arguments.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use types::Timestamp;

/// Pause after the first failure; twice as long after each further one.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// After a write, news of the status alone wait at least so long and are then written together, and as many times as
/// long as the write took: the status of a gateway with hundreds of pools is long, and its pods may change many times a second.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(30);
const REST_FOR_WORK: u32 = 5;

/// How much of a key's work is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Only the status can have changed.
    Status,
    Whole,
}

#[derive(Debug)]
pub(crate) struct Queue<K> {
    entries: HashMap<K, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// `None`: nothing is due.
    due: Option<(Timestamp, Extent)>,
    is_running: bool,
    failures: u32,
    /// News of the status alone are not due before.
    rest_until: Timestamp,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self { entries: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// Makes a key due now. One that failed waits for its pause all the same, unless its whole is asked for.
    pub(crate) fn add(&mut self, key: K, extent: Extent, now: Timestamp) {
        let entry = self.entries.entry(key).or_insert(Entry {
            due: None,
            is_running: false,
            failures: 0,
            rest_until: now,
        });
        entry.due = Some(match entry.due {
            None if extent == Extent::Status => (entry.rest_until.max(now), extent),
            None => (now, extent),
            Some((at, before)) if extent == Extent::Status => (at, before.max(extent)),
            Some((at, _)) => (at.min(now), Extent::Whole),
        });
    }

    /// A key that is due and not being worked on.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<(K, Extent)> {
        let due = |entry: &Entry| entry.due.filter(|(at, _)| *at <= now && !entry.is_running);
        let entries = self.entries.iter().filter_map(|(key, entry)| Some((due(entry)?, key)));
        let ((_, extent), key) = entries.min_by_key(|((at, _), key)| (*at, *key))?;
        let key = key.clone();
        let entry = self.entries.get_mut(&key)?;
        entry.due = None;
        entry.is_running = true;
        Some((key, extent))
    }

    /// * `took`: how long it took to write; `None`: there was nothing to write.
    pub(crate) fn succeeded(&mut self, key: &K, took: Option<Duration>, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.is_running = false;
            entry.failures = 0;
            if let Some(took) = took {
                entry.rest_until = now + (took * REST_FOR_WORK).clamp(REST_MIN, REST_MAX);
                if let Some((at, Extent::Status)) = &mut entry.due {
                    *at = entry.rest_until;
                }
            } else if entry.due.is_none() && entry.rest_until <= now {
                self.entries.remove(key);
            }
        }
    }

    /// * `chance`: 0 to 1; a quarter of the pause hangs on it, so that many keys do not come back in step.
    ///
    /// Returns the pause.
    pub(crate) fn failed(&mut self, key: &K, now: Timestamp, chance: f64) -> Duration {
        let Some(entry) = self.entries.get_mut(key) else { return Duration::ZERO };
        entry.is_running = false;
        let pause = PAUSE_MIN.saturating_mul(1 << entry.failures.min(16)).min(PAUSE_MAX);
        let pause = pause.mul_f64(0.75 + 0.25 * chance.clamp(0.0, 1.0));
        entry.failures += 1;
        // What came meanwhile may be the very change that it needs.
        let at = match entry.due {
            Some((at, Extent::Whole)) => at,
            _ => now + pause,
        };
        entry.due = Some((at, Extent::Whole));
        pause
    }

    /// When the next key is due that nobody works on.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let idle = self.entries.values().filter(|entry| !entry.is_running);
        idle.filter_map(|entry| entry.due).map(|(at, _)| at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_key_that_is_added_often_is_taken_once_with_all_that_is_due() {
        let mut queue = Queue::default();
        queue.add("a", Extent::Status, at(0));
        queue.add("a", Extent::Whole, at(0));
        queue.add("a", Extent::Status, at(0));
        assert_eq!(queue.take(at(0)), Some(("a", Extent::Whole)));
        assert_eq!(queue.take(at(0)), None);
    }

    #[test]
    fn what_comes_while_it_is_worked_on_is_done_afterwards() {
        let mut queue = Queue::default();
        queue.add("a", Extent::Status, at(0));
        queue.take(at(0));
        queue.add("a", Extent::Status, at(1));
        assert_eq!(queue.take(at(1)), None, "never twice at once");
        queue.succeeded(&"a", None, at(1));
        assert_eq!(queue.take(at(1)), Some(("a", Extent::Status)));
        queue.succeeded(&"a", None, at(1));
        assert_eq!((queue.take(at(9)), queue.next()), (None, None));
    }

    #[test]
    fn after_a_write_news_of_the_status_wait_and_those_of_the_whole_do_not() {
        let mut queue = Queue::default();
        queue.add("a", Extent::Status, at(0));
        queue.take(at(0));
        queue.add("a", Extent::Status, at(1));
        queue.succeeded(&"a", Some(SHORT), at(2));
        queue.add("a", Extent::Status, at(3));
        assert_eq!(queue.take(at(1001)), None);
        assert_eq!(queue.take(at(1002)), Some(("a", Extent::Status)));
        queue.succeeded(&"a", Some(SHORT), at(1002));
        queue.add("a", Extent::Whole, at(1003));
        assert_eq!(queue.take(at(1003)), Some(("a", Extent::Whole)));
    }

    #[test]
    fn a_long_write_is_rested_from_longer() {
        let mut queue = Queue::default();
        queue.add("a", Extent::Status, at(0));
        queue.take(at(0));
        queue.succeeded(&"a", Some(Duration::from_secs(2)), at(2000));
        queue.add("a", Extent::Status, at(2001));
        assert_eq!(queue.next(), Some(at(12_000)));
    }

    #[test]
    fn failures_come_back_later_and_later_up_to_a_bound() {
        let mut queue = Queue::default();
        queue.add("a", Extent::Status, at(0));
        let (mut now, mut pauses) = (at(0), Vec::new());
        for _ in 0..12 {
            assert!(queue.take(now).is_some());
            pauses.push(queue.failed(&"a", now, 1.0));
            now = queue.next().unwrap();
        }
        assert_eq!(pauses[0], PAUSE_MIN);
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(pauses[11], PAUSE_MAX);
        queue.take(now);
        queue.succeeded(&"a", None, now);
        queue.add("a", Extent::Status, now);
        queue.take(now);
        assert_eq!(queue.failed(&"a", now, 1.0), PAUSE_MIN, "a success begins anew");
    }

    #[test]
    fn news_of_the_whole_end_a_pause_and_a_pods_news_do_not() {
        let mut queue = Queue::default();
        queue.add("a", Extent::Whole, at(0));
        queue.take(at(0));
        queue.failed(&"a", at(0), 0.0);
        queue.add("a", Extent::Status, at(1));
        assert_eq!(queue.take(at(1)), None);
        queue.add("a", Extent::Whole, at(2));
        assert_eq!(queue.take(at(2)), Some(("a", Extent::Whole)));
    }

    #[test]
    fn who_waits_longest_goes_first() {
        let mut queue = Queue::default();
        queue.add("b", Extent::Status, at(1));
        queue.add("c", Extent::Status, at(0));
        queue.add("a", Extent::Status, at(1));
        let order: Vec<_> = std::iter::from_fn(|| queue.take(at(5)).map(|(key, _)| key)).collect();
        assert_eq!(order, ["c", "a", "b"]);
    }
}

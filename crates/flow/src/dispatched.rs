//! What was dispatched and has not answered yet: who may be revoked for a higher priority.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use types::Priority;

/// Requests that one decision revokes at most. Source: llm-d's in-flight eviction.
pub const REVOKED_AT_ONCE_MAX: usize = 2;

/// Dispatched requests without a first byte, by priority and newness.
///
/// * `T`: what the gateway needs to revoke one, say a handle to cancel by.
///
/// Insert at dispatch, [`remove`](Self::remove) at the first byte or any end. What
/// [`victims`](Self::victims) gives is removed at once, so nothing is revoked twice. Every operation
/// takes O(log n).
#[derive(Debug)]
pub struct Dispatched<T> {
    /// Lowest priority first, in it the newest first.
    requests: BTreeMap<(Priority, Reverse<u64>), T>,
    inserted: u64,
}

/// A request in [`Dispatched`]; never given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchId {
    priority: Priority,
    number: u64,
}

impl<T> Default for Dispatched<T> {
    fn default() -> Self {
        Self { requests: BTreeMap::new(), inserted: 0 }
    }
}

impl<T> Dispatched<T> {
    pub fn insert(&mut self, priority: Priority, request: T) -> DispatchId {
        self.inserted += 1;
        let id = DispatchId { priority, number: self.inserted };
        self.requests.insert((priority, Reverse(id.number)), request);
        id
    }

    /// `None`: it was removed or revoked before.
    pub fn remove(&mut self, id: DispatchId) -> Option<T> {
        self.requests.remove(&(id.priority, Reverse(id.number)))
    }

    /// Takes out whom to revoke for work of `asking`: lowest priority first, in it the newest, never
    /// one that is not strictly lower, at most `count` and at most [`REVOKED_AT_ONCE_MAX`].
    pub fn victims(&mut self, asking: Priority, count: usize, out: &mut Vec<T>) {
        for _ in 0..count.min(REVOKED_AT_ONCE_MAX) {
            match self.requests.first_entry() {
                Some(first) if first.key().0 < asking => out.push(first.remove()),
                _ => return,
            }
        }
    }

    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victims(
        of: &mut Dispatched<&'static str>,
        asking: Priority,
        count: usize,
    ) -> Vec<&'static str> {
        let mut out = Vec::new();
        of.victims(asking, count, &mut out);
        out
    }

    #[test]
    fn the_lowest_priority_is_revoked_first_and_in_it_the_newest() {
        let mut dispatched = Dispatched::default();
        dispatched.insert(Priority::STANDARD, "standard");
        dispatched.insert(Priority::SHEDDABLE, "old");
        dispatched.insert(Priority::SHEDDABLE, "new");
        assert_eq!(victims(&mut dispatched, Priority::CRITICAL, 1), ["new"]);
        assert_eq!(victims(&mut dispatched, Priority::CRITICAL, 9), ["old", "standard"]);
        assert!(dispatched.is_empty());
    }

    #[test]
    fn none_is_revoked_for_its_equal_and_never_more_than_two_at_a_time() {
        let mut dispatched = Dispatched::default();
        for _ in 0..5 {
            dispatched.insert(Priority::STANDARD, "standard");
        }
        assert!(victims(&mut dispatched, Priority::STANDARD, 2).is_empty());
        assert_eq!(victims(&mut dispatched, Priority::CRITICAL, 5).len(), REVOKED_AT_ONCE_MAX);
        assert_eq!(dispatched.len(), 3);
    }

    #[test]
    fn what_answered_or_was_revoked_is_not_there_any_more() {
        let mut dispatched = Dispatched::default();
        let answered = dispatched.insert(Priority::SHEDDABLE, "answered");
        let revoked = dispatched.insert(Priority::SHEDDABLE, "revoked");
        assert_eq!(dispatched.remove(answered), Some("answered"));
        assert_eq!(dispatched.remove(answered), None);
        assert_eq!(victims(&mut dispatched, Priority::CRITICAL, 2), ["revoked"]);
        assert_eq!(dispatched.remove(revoked), None);
    }
}

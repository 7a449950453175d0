//! What is held against what may be.

use crate::config::Limits;
use crate::outcome::Bound;

/// Requests with their bytes and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) tokens: u64,
}

impl Held {
    pub(crate) fn one(bytes: u64, tokens: u64) -> Self {
        Self { requests: 1, bytes, tokens }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.tokens = self.tokens.saturating_add(other.tokens);
    }

    pub(crate) fn take(&mut self, other: Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.tokens = self.tokens.saturating_sub(other.tokens);
    }

    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    pub(crate) fn minus(mut self, other: Self) -> Self {
        self.take(other);
        self
    }
}

impl Limits {
    /// The first bound that is exceeded.
    pub(crate) fn exceeded_by(&self, held: Held) -> Option<Bound> {
        let over = |max: Option<u64>, value: u64| max.is_some_and(|max| value > max);
        if over(self.requests_max, held.requests) {
            Some(Bound::Requests)
        } else if over(self.bytes_max, held.bytes) {
            Some(Bound::Bytes)
        } else if over(self.tokens_max, held.tokens) {
            Some(Bound::Tokens)
        } else {
            None
        }
    }
}

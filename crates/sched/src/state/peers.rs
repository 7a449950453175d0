//! What other gateways of the same deployment have on an endpoint, as they tell it.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use types::Timestamp;

/// Requests that gateways have on an endpoint, and what these still need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    pub requests: u32,
    /// Of these, those without a first token.
    pub prefilling: u32,
    /// Uncached prompt tokens of these.
    pub prefill_tokens: u64,
    /// What is left of them to compute, as their own gateway estimates it.
    pub tokens_ahead: u64,
}

impl Credit {
    /// Both together; stops at the largest number.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            prefilling: self.prefilling.saturating_add(other.prefilling),
            prefill_tokens: self.prefill_tokens.saturating_add(other.prefill_tokens),
            tokens_ahead: self.tokens_ahead.saturating_add(other.tokens_ahead),
        }
    }

    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The sum of what the peers told last. One writer; reads may be torn, as a scrape's may.
#[derive(Debug, Default)]
pub(super) struct Peers {
    requests: AtomicU32,
    prefilling: AtomicU32,
    prefill_tokens: AtomicU64,
    tokens_ahead: AtomicU64,
    /// Requests of theirs that the last scrape counted.
    at_scrape: AtomicU32,
}

impl Peers {
    pub(super) fn credit(&self) -> Credit {
        Credit {
            requests: self.requests.load(Ordering::Relaxed),
            prefilling: self.prefilling.load(Ordering::Relaxed),
            prefill_tokens: self.prefill_tokens.load(Ordering::Relaxed),
            tokens_ahead: self.tokens_ahead.load(Ordering::Relaxed),
        }
    }

    pub(super) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn at_scrape(&self) -> u32 {
        self.at_scrape.load(Ordering::Relaxed)
    }

    pub(super) fn record_scrape(&self) {
        self.at_scrape.store(self.requests(), Ordering::Relaxed);
    }

    /// * `over`: the change came about within this time.
    /// * `scraped_at`: the last good scrape.
    ///
    /// What changed before the scrape is on its page already, so it also changes what the page is
    /// compared with; else it would count as theirs and as somebody else's until the next.
    pub(super) fn set(
        &self,
        credit: Credit,
        over: Duration,
        scraped_at: Option<Timestamp>,
        now: Timestamp,
    ) {
        let before = f64::from(self.requests());
        self.requests.store(credit.requests, Ordering::Relaxed);
        self.prefilling.store(credit.prefilling, Ordering::Relaxed);
        self.prefill_tokens.store(credit.prefill_tokens, Ordering::Relaxed);
        self.tokens_ahead.store(credit.tokens_ahead, Ordering::Relaxed);
        let Some(scraped_at) = scraped_at else { return };
        let since = now.since(scraped_at);
        if since < over {
            let share = 1.0 - since.as_secs_f64() / over.as_secs_f64();
            let change = share * (f64::from(credit.requests) - before);
            let at_scrape = (f64::from(self.at_scrape()) + change).round();
            self.at_scrape.store(at_scrape as u32, Ordering::Relaxed);
        }
    }
}

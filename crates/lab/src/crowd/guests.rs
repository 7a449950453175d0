//! Who knocks at the door, and how each fared there.

use std::time::Duration;

use flow::{Config, FlowKey};
use sched::saturation;
use types::Timestamp;

/// All requests of a run as flow control sees them, in the order of the requests.
#[derive(Clone, Debug)]
pub(crate) struct Guests {
    pub(crate) config: Config,
    /// When an endpoint is full.
    pub(crate) saturation: saturation::Config,
    pub(crate) guests: Vec<Guest>,
    /// Nobody comes back later than this.
    pub(crate) returns_until: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) flow: FlowKey,
    /// What is expected of the answer, tokens: nobody knows how long it will be.
    pub(crate) answer_tokens: u32,
    /// For the first token, from each try on.
    pub(crate) deadline: Option<Duration>,
    pub(crate) patience: Patience,
}

/// What a client does that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    GivesUp,
    /// Comes back when it was told to, as often as it must.
    Obeys,
    /// Comes back after a tenth of that.
    Hurries,
}

/// How one request fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    pub tries: u32,
    pub refused_first: Option<Timestamp>,
    /// Times that it was sent away after it had waited in the queue.
    pub expired: u32,
    pub let_in: Option<Timestamp>,
    /// Times that it came as it had been told.
    pub returns: u32,
    /// Whether it was let in then: at most one.
    pub kept: u32,
    /// It was told to come now.
    pub(crate) is_due: bool,
}

/// How all fared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub by_request: Vec<Wait>,
    /// Requests that waited in an engine at the ends of steps, in the time that counts.
    pub engine_queues: Vec<u32>,
}

impl Waits {
    /// Engine's own queue that this share of step ends did not exceed.
    pub fn engine_queue(&self, share: f64) -> u32 {
        let mut sorted = self.engine_queues.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }

    pub(crate) fn new(requests: usize) -> Self {
        Self { by_request: vec![Wait::default(); requests], engine_queues: Vec::new() }
    }
}

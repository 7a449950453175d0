//! What the tests share.
#![allow(dead_code)]

use std::time::Duration;

use types::{Priority, Timestamp};
use wicketgate_flow::{Config, FlowKey, Limits, Queue, Refused, Ticket, Work};

pub(crate) fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn work(flow: &str, priority: Priority, tokens: u32, received: Timestamp) -> Work {
    Work {
        flow: FlowKey { id: flow.into(), priority },
        tokens,
        bytes: 100,
        received,
        ttft: None,
        deadline: None,
        service: Duration::ZERO,
        fingerprint: None,
    }
}

pub(crate) fn standard(flow: &str, tokens: u32, received: Timestamp) -> Work {
    work(flow, Priority::STANDARD, tokens, received)
}

pub(crate) fn requests(max: u64) -> Limits {
    Limits { requests_max: Some(max), ..Limits::default() }
}

pub(crate) fn queue(change: impl FnOnce(&mut Config)) -> Queue<u64> {
    let mut config = Config::default();
    change(&mut config);
    Queue::new(config)
}

/// Offers to a full pool where nobody has to make room.
pub(crate) fn offer(queue: &mut Queue<u64>, work: Work, payload: u64) -> Result<Ticket, Refused> {
    let (now, mut evicted) = (work.received, Vec::new());
    let offered = queue.offer(work, payload, 1.0, now, &mut evicted);
    assert!(evicted.is_empty(), "{evicted:?}");
    offered
}

pub(crate) fn payloads(queue: &mut Queue<u64>, now: Timestamp) -> Vec<u64> {
    std::iter::from_fn(|| queue.next(0.0, now)).map(|gone| gone.payload).collect()
}

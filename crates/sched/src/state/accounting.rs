//! Corrects our own ledger by the last scrape, and trusts the scrape less as it ages.

use crate::Scraped;

/// Requests waiting and running on an endpoint, best estimate for now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ledger {
    pub(super) waiting: f32,
    pub(super) running: f32,
}

/// Requests that may be on their way into an engine (network, tokenizer), hence on no page yet.
/// Were they taken to wait, an endpoint would lose its conversations to the next best for nothing.
const ARRIVING: f32 = 4.0;

impl Ledger {
    /// With `F` our requests in flight now and `F0` at the scrape:
    ///
    /// * others' load = max(0, waiting + running − F0), fading with the scrape's age;
    /// * unseen = max(0, F0 − waiting − running − [`ARRIVING`]): ours that the engine did not count,
    ///   because its page does not move, or moves too seldom: they are taken to wait;
    /// * waiting = max(0, scraped waiting + unseen + F − F0): what we sent since queues first, what
    ///   ended since let a waiting one start;
    /// * both fade to `F`, so that an unknown endpoint is judged by our own requests alone.
    pub(super) fn new(scraped: &Scraped, in_flight: u32, freshness: f32) -> Self {
        let ours = in_flight as f32;
        let ours_then = scraped.in_flight as f32;
        let (Some(waiting), Some(running)) = (scraped.waiting, scraped.running) else {
            let part = |value: Option<u32>| match value {
                Some(value) => fade((value as f32 + ours - ours_then).max(0.0), ours, freshness),
                None => ours,
            };
            return Self { waiting: part(scraped.waiting), running: part(scraped.running) };
        };
        let (waiting, running) = (waiting as f32, running as f32);
        let others = (waiting + running - ours_then).max(0.0);
        let unseen = (ours_then - waiting - running - ARRIVING).max(0.0);
        let waiting = (waiting + ours - ours_then).max(0.0);
        let waiting = waiting + unseen;
        let running = (others + ours - waiting).max(0.0);
        Self { waiting: fade(waiting, ours, freshness), running: fade(running, ours, freshness) }
    }
}

/// Requests of other gateways, by a scrape that counts more than ours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Foreign {
    pub(super) waiting: f32,
    pub(super) running: f32,
}

impl Foreign {
    /// What the engine counts beyond ours is others', waiting ones first; fades with the scrape.
    pub(super) fn new(scraped: &Scraped, freshness: f32) -> Self {
        let (Some(waiting), Some(running)) = (scraped.waiting, scraped.running) else {
            return Self::default();
        };
        let (waiting, running) = (waiting as f32, running as f32);
        let others = (waiting + running - scraped.in_flight as f32).max(0.0);
        let waiting = waiting.min(others);
        Self { waiting: freshness * waiting, running: freshness * (others - waiting) }
    }
}

/// 1.0 up to half of the limit, then falling to 0.0 at the limit; 0.0 if never scraped. Both in
/// nanoseconds.
pub(super) fn freshness(age: Option<u64>, stale_after: u64) -> f32 {
    match age {
        None => 0.0,
        Some(age) if stale_after == 0 => f32::from(u8::from(age == 0)),
        Some(age) => {
            let share = age as f32 / stale_after as f32;
            (2.0 * (1.0 - share)).clamp(0.0, 1.0)
        }
    }
}

fn fade(fresh: f32, faded: f32, freshness: f32) -> f32 {
    freshness * fresh + (1.0 - freshness) * faded
}

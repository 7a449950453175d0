//! Load generators: as many requests as answers allow, requests at fixed times, open streams.

pub mod closed;
pub mod ext_proc;
mod http;
pub mod open;
pub mod page;
pub mod streams;

use hdrhistogram::Histogram;

/// Times in nanoseconds, up to a minute, to three digits.
pub type Times = Histogram<u64>;

pub(crate) fn new_times() -> Times {
    Histogram::new_with_max(60_000_000_000, 3).expect("the bounds are constants and in order")
}

/// Adds a time; what is longer than a minute counts as a minute.
pub(crate) fn record(times: &mut Times, ns: u64) {
    times.saturating_record(ns.max(1));
}

//! What a request would wait for at a member, by its last report and by what happened since.

use std::time::Duration;

use types::Timestamp;

use crate::fleet::Standing;
use crate::heartbeat::ModelLoad;
use crate::report::{Books, Report, Served};
use crate::request::Request;
use crate::settings::Settings;

/// How much slower prompts are computed as an endpoint fills: at full use a fifth of the speed is left for the next.
const CROWDING: f32 = 0.8;
/// Seconds that a request is inside where nothing is known of how fast they end.
const USUAL_STAY: f32 = 10.0;
/// Places of an endpoint that does not say how many it has.
const USUAL_PLACES: u32 = 16;
/// Longest that a request is expected to wait; more makes no difference.
const LONGEST_MS: f32 = 600_000.0;

/// A model's work, estimated for now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Requests inside.
    pub(crate) in_flight: f32,
    /// Use of what it can do; above 1 requests wait.
    pub(crate) load: f32,
    pub(crate) waiting: f32,
}

/// Expected times, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// By reports, inside the member.
    pub(crate) inside: f32,
    /// With the way there and back and what was learned.
    pub(crate) ttft: f32,
    /// The same with the price of failures.
    pub(crate) cost: f32,
}

/// Requests that a model takes without one of them waiting.
pub(crate) fn places(load: &ModelLoad) -> f32 {
    let most = if load.in_flight_max > 0 {
        load.in_flight_max
    } else {
        load.endpoints_ready.saturating_mul(USUAL_PLACES)
    };
    most as f32
}

/// Requests that end each second while the model is full.
pub(crate) fn drain(load: &ModelLoad) -> f32 {
    if load.drain_per_second > 0.0 {
        load.drain_per_second
    } else {
        load.finished_per_second.max(places(load) / USUAL_STAY).max(1e-3)
    }
}

/// Corrects a report by what was sent and what must have ended since. Others send too: as many for each of ours as
/// they did before. Otherwise whoever looked idle would get the requests of all routers until it reports again.
///
/// * `peers_min`: requests of all routers for each one of this, at least.
pub(crate) fn work(
    report: &Report,
    load: &ModelLoad,
    books: &Books,
    peers_min: f32,
    now: Timestamp,
) -> Work {
    let peers = books.peers.max(peers_min);
    let age = now.since(report.heard).as_secs_f32();
    let sent = books.slot.sent().saturating_sub(books.sent) as f32;
    let said = load.in_flight as f32;
    let came = sent * peers - load.finished_per_second * age;
    // What is here now of our own and, if they do as we do, of the others bounds what a member that tells
    // less can attract.
    let own = books.slot.in_flight() as f32 * books.peers;
    let in_flight = (said + came.max(-said / 2.0)).max(own);
    let places = places(load);
    let beyond = (in_flight - places).max(0.0);
    let waiting = (load.waiting as f32 + came).clamp(0.0, in_flight).max(beyond);
    // A queue that was empty stays so while there are places.
    let waiting = if load.waiting == 0 { beyond } else { waiting };
    Work { in_flight, load: in_flight / places.max(1.0), waiting }
}

/// Use of a model's capacity, estimated for now.
pub(crate) fn load(report: &Report, load: &ModelLoad, books: &Books, now: Timestamp) -> f32 {
    work(report, load, books, 1.0, now).load
}

/// `rtt + (queue ÷ drain + (base + uncached prompt ÷ speed) × crowding + adapter) × learned + failures`.
pub(crate) fn expected(
    standing: &Standing,
    served: Served<'_>,
    work: Work,
    request: &Request<'_>,
    settings: &Settings,
    now: Timestamp,
) -> Expected {
    let load = served.load;
    let uncached = match request.blocks.len() {
        0 => 1.0,
        blocks => 1.0 - load.prefixes.matched(request.blocks) as f32 / blocks as f32,
    };
    let prefill = if load.prefill_tokens_per_second > 0.0 {
        request.prompt_tokens as f32 * uncached / load.prefill_tokens_per_second
    } else {
        0.0
    };
    let crowding = 1.0 / (1.0 - CROWDING * work.load.clamp(0.0, 1.0));
    let adapter = if served.needs_loading { seconds(settings.adapter_load) } else { 0.0 };
    let inside =
        work.waiting / drain(load) + (seconds(load.ttft_base) + prefill) * crowding + adapter;
    let inside = (inside * 1e3).min(LONGEST_MS);
    let way = seconds(standing.round_trip) * 1e3;
    let ttft = way + inside * served.books.slot.slowness(now);
    let failed = standing.failed.max(load.failed.get());
    Expected { inside, ttft, cost: ttft + failed * seconds(settings.retry_cost) * 1e3 }
}

fn seconds(time: Duration) -> f32 {
    time.as_secs_f32()
}

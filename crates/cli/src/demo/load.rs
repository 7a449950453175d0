//! Sends the load, open loop: when a request is sent does not depend on how others fare.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use telemetry::clock;
use tokio::sync::watch;
use tokio::task::JoinSet;
use types::Timestamp;

use super::client::{self, Failure, Watcher};
use super::progress::Live;
use super::workload::Ask;

/// One run's timetable, in the fleet's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timetable {
    /// Requests of this time are sent but not measured.
    pub(super) warm_up: Duration,
    pub(super) measured: Duration,
    /// How long answers are waited for when nothing is sent any more.
    pub(super) drain: Duration,
    /// Real time for one unit of the fleet's.
    pub(super) time_scale: f64,
}

impl Timetable {
    /// When sending ends.
    pub(super) fn sent(&self) -> Duration {
        self.warm_up + self.measured
    }

    pub(super) fn whole(&self) -> Duration {
        self.sent() + self.drain
    }

    pub(super) fn real(&self, modelled: Duration) -> Duration {
        modelled.mul_f64(self.time_scale)
    }

    fn modelled(&self, real: Duration) -> Duration {
        real.div_f64(self.time_scale)
    }
}

/// How a request ended.
#[derive(Debug)]
pub(super) enum End {
    Done,
    Failed(Failure),
    /// Still under way when the run was over.
    Cut,
}

/// What became of one request. Times are the fleet's.
#[derive(Debug)]
pub(super) struct Sample {
    /// When it was due, counted from the run's begin.
    pub(super) due: Duration,
    /// How much later the client came to send it.
    pub(super) late: Duration,
    /// From when it was due to its first token.
    pub(super) first_token: Option<Duration>,
    /// From when it was due to its end.
    pub(super) ended: Duration,
    /// Tokens that arrived while the run was measured.
    pub(super) tokens_measured: u64,
    pub(super) end: End,
}

/// Sends every ask when it is due and returns what became of each, in that order.
pub(super) async fn run(
    gateway: SocketAddr,
    asks: Vec<(Duration, Ask)>,
    timetable: Timetable,
    live: Arc<Live>,
) -> Vec<Sample> {
    let begun = clock::now();
    let until =
        move |at: Duration| tokio::time::sleep((begun + timetable.real(at)).since(clock::now()));
    let (over, is_over) = watch::channel(false);
    let mut requests = JoinSet::new();
    for (due, ask) in asks {
        until(due).await;
        let request = Request {
            begun,
            timetable,
            live: live.clone(),
            sample: Sample {
                due,
                late: Duration::ZERO,
                first_token: None,
                ended: Duration::ZERO,
                tokens_measured: 0,
                end: End::Cut,
            },
        };
        requests.spawn(request.run(gateway, ask, is_over.clone()));
    }
    until(timetable.sent()).await;

    let mut samples = Vec::with_capacity(requests.len());
    let end = until(timetable.whole());
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end, if !*over.borrow() => {
                over.send_replace(true);
            }
            joined = requests.join_next() => match joined {
                // A panic in a request's task was reported where it happened.
                Some(sample) => samples.extend(sample.ok()),
                None => break,
            },
        }
    }
    samples.sort_by_key(|sample| sample.due);
    samples
}

struct Request {
    begun: Timestamp,
    timetable: Timetable,
    live: Arc<Live>,
    sample: Sample,
}

impl Request {
    async fn run(
        mut self,
        gateway: SocketAddr,
        ask: Ask,
        mut over: watch::Receiver<bool>,
    ) -> Sample {
        self.sample.late = self.since_due(clock::now());
        self.live.sent();
        let end = tokio::select! {
            result = client::ask(gateway, &ask.body, &mut self) => match result {
                Ok(()) => End::Done,
                Err(failure) => End::Failed(failure),
            },
            _ = over.wait_for(|over| *over) => End::Cut,
        };
        self.sample.ended = self.since_due(clock::now());
        self.live.ended(self.sample.first_token.is_some(), &end);
        self.sample.end = end;
        self.sample
    }

    /// The fleet's time since the run began.
    fn at(&self, now: Timestamp) -> Duration {
        self.timetable.modelled(now.since(self.begun))
    }

    fn since_due(&self, now: Timestamp) -> Duration {
        self.at(now).saturating_sub(self.sample.due)
    }
}

impl Watcher for Request {
    fn tokens(&mut self, count: u64, now: Timestamp) {
        let at = self.at(now);
        if self.sample.first_token.is_none() {
            let waited = self.since_due(now);
            self.sample.first_token = Some(waited);
            self.live.first_token(waited);
        }
        if (self.timetable.warm_up..self.timetable.sent()).contains(&at) {
            self.sample.tokens_measured += count;
        }
    }
}

//! The thread that asks the gateway, so that nobody waits for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use gateway::DecisionView;
use telemetry::clock;

use super::snapshot::{self, Snapshot};
use super::terminal::Event;
use crate::admin::{Admin, AdminError};

/// What can be asked of it besides the look in each interval.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// The receipt of a request.
    Decision(String),
}

/// What came of it.
pub(super) enum News {
    Snapshot(Box<Snapshot>),
    Missed(String),
    Decision { request_id: String, outcome: Result<Option<Box<DecisionView>>, String> },
}

/// Starts to ask. It ends when either side of the channels is gone.
pub(super) fn start(admin: Admin, interval: Duration, events: Sender<Event>) -> Sender<Wish> {
    let (wishes, wished) = channel();
    std::thread::spawn(move || ask(&admin, interval, &events, &wished));
    wishes
}

fn ask(admin: &Admin, interval: Duration, events: &Sender<Event>, wished: &Receiver<Wish>) {
    let mut due = clock::now();
    loop {
        let now = clock::now();
        let news = if now >= due {
            // From the beginning of this look, so that slow answers do not stretch the interval; but
            // never two at once.
            due = now + interval;
            match Snapshot::take(admin, clock::now) {
                Ok(snapshot) => News::Snapshot(Box::new(snapshot)),
                Err(error) => News::Missed(chain(&error)),
            }
        } else {
            match wished.recv_timeout(due.since(now)) {
                Ok(Wish::Decision(request_id)) => {
                    let outcome = snapshot::decision(admin, &request_id);
                    let outcome = outcome.map(|found| found.map(Box::new));
                    News::Decision { request_id, outcome: outcome.map_err(|error| chain(&error)) }
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        };
        if events.send(Event::News(news)).is_err() {
            return;
        }
    }
}

/// An error and what led to it, on one line.
fn chain(error: &AdminError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

//! An endpoint's answer on its way to the client.

use std::ops::Range;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use gateway::{Ending, Exchange};
use openai::Rename;
use telemetry::clock;
use tokio::time::Instant;

use crate::timer::{Timer, deadline_in};
use crate::upstream::{BodyFault, H2cBody, Http1Body, Progress};

/// Where an answer's body comes from.
pub(crate) enum Source {
    Http1(Http1Body),
    H2c(H2cBody),
}

/// How long the parts of a stream may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTimes {
    /// Longest silence of the endpoint.
    pub(crate) idle: Duration,
    /// Longest answer from its first byte to its last.
    pub(crate) duration: Duration,
}

/// Passes an answer on, looks at it on the way, and books how it ended.
///
/// Dropping it before its end means that the client left: the connection to the endpoint closes,
/// which is how an engine learns to stop.
pub(crate) struct Relay {
    source: Source,
    exchange: Exchange,
    /// Payload that came before the answer was committed.
    held: Bytes,
    times: StreamTimes,
    idle_until: Instant,
    end_by: Instant,
    /// Sent as the last bytes of a stream that broke.
    farewell: Option<Bytes>,
    /// Gives the client's name back.
    rename: Option<Box<Rename>>,
    /// All of the payload has passed, what was held back for a name included.
    is_through: bool,
}

/// One step of an answer.
pub(crate) enum Step {
    Payload,
    End,
    /// The answer broke; `farewell` has what to tell the client, if its form allows to.
    Broken,
}

impl Source {
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        with: &mut impl FnMut(&[u8], &[Range<usize>]),
    ) -> Poll<Result<Progress, BodyFault>> {
        match self {
            Self::Http1(body) => body.poll(cx, with),
            Self::H2c(body) => body.poll(cx, with),
        }
    }

    pub(crate) fn ended(&self) -> bool {
        match self {
            Self::Http1(body) => body.ended(),
            Self::H2c(body) => body.ended(),
        }
    }

    /// Bytes of payload that are still to come, where the endpoint said so.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match self {
            Self::Http1(body) => body.remaining(),
            Self::H2c(body) => body.remaining(),
        }
    }
}

impl Relay {
    pub(crate) fn new(
        source: Source,
        exchange: Exchange,
        held: Bytes,
        times: StreamTimes,
        mut rename: Option<Rename>,
    ) -> Self {
        let held = match &mut rename {
            Some(rename) => rename.push(&held),
            None => held,
        };
        Self {
            source,
            exchange,
            held,
            times,
            idle_until: deadline_in(times.idle),
            end_by: deadline_in(times.duration),
            farewell: None,
            rename: rename.map(Box::new),
            is_through: false,
        }
    }

    /// The whole length of the body, where it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        if self.rename.is_some() {
            // Names differ in length.
            return None;
        }
        self.source.remaining().map(|remaining| remaining + self.held.len() as u64)
    }

    /// Payload that is ready before anything is polled.
    pub(crate) fn take_held(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }

    /// Passes on what has come. `Broken` also when the endpoint is silent for too long.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut Timer,
        mut with: impl FnMut(&mut Context<'_>, &[u8], &[Range<usize>]),
    ) -> Poll<Step> {
        if self.is_through {
            return Poll::Ready(self.end());
        }
        let waker = cx.waker().clone();
        loop {
            let Self { source, exchange, rename, .. } = self;
            let mut has_passed = false;
            let mut pass_on = |bytes: &[u8], runs: &[Range<usize>]| {
                let now = clock::now();
                for run in runs {
                    exchange.payload(&bytes[run.clone()], now);
                }
                let mut cx = Context::from_waker(&waker);
                let Some(rename) = rename else {
                    has_passed = true;
                    return with(&mut cx, bytes, runs);
                };
                let renamed = rename_runs(rename, bytes, runs);
                if !renamed.is_empty() {
                    has_passed = true;
                    let run = 0..renamed.len();
                    with(&mut cx, &renamed, std::slice::from_ref(&run));
                }
            };
            return match source.poll(cx, &mut pass_on) {
                Poll::Ready(Ok(Progress::Payload)) => {
                    self.idle_until = deadline_in(self.times.idle);
                    if !has_passed {
                        // All of it may be the beginning of a name.
                        continue;
                    }
                    Poll::Ready(Step::Payload)
                }
                Poll::Ready(Ok(Progress::End)) => {
                    let rest = rename.as_mut().map(|rename| rename.finish()).unwrap_or_default();
                    if rest.is_empty() {
                        return Poll::Ready(self.end());
                    }
                    let mut cx = Context::from_waker(&waker);
                    with(&mut cx, &rest, std::slice::from_ref(&(0..rest.len())));
                    self.is_through = true;
                    Poll::Ready(Step::Payload)
                }
                Poll::Ready(Err(fault)) => Poll::Ready(self.broken(match fault {
                    BodyFault::Cut => Ending::EndpointCut,
                    BodyFault::Framing => Ending::EndpointMalformed,
                })),
                Poll::Pending => {
                    let deadline = self.idle_until.min(self.end_by);
                    match timer.poll(cx, deadline) {
                        Poll::Pending => Poll::Pending,
                        Poll::Ready(()) => Poll::Ready(self.broken(Ending::EndpointStalled)),
                    }
                }
            };
        }
    }

    fn end(&mut self) -> Step {
        if self.exchange.stream_is_unfinished() {
            return self.broken(Ending::EndpointUnfinished);
        }
        self.exchange.finish(Ending::Complete, clock::now());
        Step::End
    }

    fn broken(&mut self, ending: Ending) -> Step {
        self.farewell = self.exchange.farewell(ending);
        self.exchange.finish(ending, clock::now());
        Step::Broken
    }

    /// Last words for a client whose stream broke: an error event in its dialect.
    pub(crate) fn take_farewell(&mut self) -> Option<Bytes> {
        self.farewell.take()
    }

    /// Books that the client did not take what we had for it.
    pub(crate) fn client_failed(&mut self, ending: Ending) {
        self.exchange.finish(ending, clock::now());
    }

    /// Books that the gateway itself ends this stream.
    pub(crate) fn cut_for_drain(&mut self) -> Option<Bytes> {
        self.broken(Ending::Drained);
        self.take_farewell()
    }
}

/// The next payload with the client's name.
fn rename_runs(rename: &mut Rename, bytes: &[u8], runs: &[Range<usize>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(runs.iter().map(ExactSizeIterator::len).sum::<usize>() + 64);
    for run in runs {
        rename.write(&bytes[run.clone()], &mut out);
    }
    out
}

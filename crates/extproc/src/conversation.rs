//! One stream of the protocol, without its wire: messages in, messages out.
//!
//! ```text
//! proxy → RequestHeaders ┐
//!         RequestBody …  ├ nothing is answered until all of it is here, then at once:
//!         (Trailers)     ┘   header answer with the pick · body in pieces · trailers
//! proxy → ResponseHeaders, ResponseBody …, (Trailers): each is answered as it comes
//! ```
//!
//! Or, at any moment before the answer, one `ImmediateResponse`, after which the stream is over.

mod request;
mod response;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use gateway::{Ending, Exchange};
use openai::{Dialect, Rename};
use telemetry::clock;
use types::Timestamp;

use crate::settings::Picker;
use crate::wire::{BodyMode, ProcessingRequest, ProcessingResponse, Request};
use request::Inbound;
use response::Outbound;

/// What to do after a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Read,
    /// Nothing more is needed: end the stream cleanly, once everything is sent.
    Close,
}

/// Why a stream cannot go on. The proxy then does what its failure mode says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("{got} came {when}")]
    OutOfOrder { got: &'static str, when: &'static str },
    #[error("a message without content")]
    Empty,
    #[error("{0}")]
    Unsupported(&'static str),
}

/// One request, from the proxy's first message to its last.
pub struct Conversation {
    picker: Arc<Picker>,
    modes: Modes,
    inbound: Inbound,
    outbound: Outbound,
    /// Set while an endpoint is or may be at work for the request.
    exchange: Option<Exchange>,
    rename: Option<Rename>,
    /// Set while an endpoint has the request and it may be called back.
    revocation: Option<(Dialect, Signal)>,
}

/// Resolves once.
type Signal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How the proxy hands over the two bodies.
#[derive(Clone, Copy, Debug)]
struct Modes {
    request: BodyMode,
    response: BodyMode,
}

impl Default for Modes {
    /// Proxies that do not say it are those that only know the protocol's own mode.
    fn default() -> Self {
        Self { request: BodyMode::FullDuplexStreamed, response: BodyMode::FullDuplexStreamed }
    }
}

impl Conversation {
    pub fn new(picker: Arc<Picker>) -> Self {
        Self {
            picker,
            modes: Modes::default(),
            inbound: Inbound::Fresh,
            outbound: Outbound::Waiting,
            exchange: None,
            rename: None,
            revocation: None,
        }
    }

    /// Takes a message; what is to be sent is appended to `out`.
    pub fn receive(
        &mut self,
        mut message: ProcessingRequest,
        now: Timestamp,
        out: &mut VecDeque<ProcessingResponse>,
    ) -> Result<Next, Violation> {
        if message.observability_mode {
            return Err(Violation::Unsupported(
                "an endpoint cannot be chosen in observability mode: nothing we say would count",
            ));
        }
        match message.request.take().ok_or(Violation::Empty)? {
            Request::RequestHeaders(headers) => self.request_headers(&headers, &message, now, out),
            Request::RequestBody(body) => self.request_body(body, now, out),
            Request::RequestTrailers(_) => self.request_trailers(now, out),
            Request::ResponseHeaders(headers) => {
                self.response_headers(&headers, &message, now, out)
            }
            Request::ResponseBody(body) => self.response_body(body, now, out),
            Request::ResponseTrailers(_) => self.response_trailers(now, out),
        }
    }

    /// When a request that is still arriving is given up; `None` once it is here.
    pub fn deadline(&self) -> Option<Timestamp> {
        match &self.inbound {
            Inbound::Collecting(collecting) => Some(collecting.deadline),
            Inbound::Fresh | Inbound::Waiting(..) | Inbound::Done => None,
        }
    }

    /// Goes on with a request whose turn has come, or that is called back from its endpoint.
    pub fn poll_called(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut VecDeque<ProcessingResponse>,
    ) -> Poll<Next> {
        if let Inbound::Waiting(_, turn) = &mut self.inbound
            && let Poll::Ready(called) = turn.as_mut().poll(cx)
            && let Inbound::Waiting(waiting, _) =
                std::mem::replace(&mut self.inbound, Inbound::Done)
        {
            return Poll::Ready(self.called(*waiting, called, clock::now(), out));
        }
        if self.outbound == Outbound::Waiting
            && let Some((dialect, revoked)) = &mut self.revocation
            && revoked.as_mut().poll(cx).is_ready()
        {
            let (dialect, now) = (*dialect, clock::now());
            self.revocation = None;
            if let Some(exchange) = &mut self.exchange {
                let refusal = exchange.revoked(now);
                return Poll::Ready(self.refuse(&refusal, dialect, None, now, out));
            }
        }
        Poll::Pending
    }

    /// What all streams share.
    pub(crate) fn picker(&self) -> &Arc<Picker> {
        &self.picker
    }

    /// Whether all of the answer has passed that the proxy shows us.
    pub(crate) fn is_complete(&self) -> bool {
        match self.outbound {
            Outbound::Waiting => false,
            Outbound::Passing => self.modes.response == BodyMode::None,
            Outbound::Done => true,
        }
    }

    /// The proxy ended the stream.
    pub fn closed(&mut self, now: Timestamp) {
        // Without the body of the answer, its head was the last that we could be told. What was not
        // answered at all belongs to a client that left, and dropping the exchange says so.
        if self.modes.response == BodyMode::None && self.outbound == Outbound::Passing {
            self.finish(Ending::Complete, now);
        }
        self.exchange = None;
        // Who waits gives its place in the queue up.
        self.inbound = Inbound::Done;
    }

    /// The drain time is over.
    pub fn cut(&mut self, now: Timestamp) {
        self.finish(Ending::Drained, now);
    }

    fn finish(&mut self, ending: Ending, now: Timestamp) {
        if let Some(mut exchange) = self.exchange.take() {
            exchange.finish(ending, now);
        }
    }
}

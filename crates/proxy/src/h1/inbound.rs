//! Reading requests off a client connection.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

use super::chunked::Chunked;
use super::gate::head_end;
use crate::head::{BodyLength, Turned};
use crate::scratch::poll_read_with;
use crate::settings::Settings;
use crate::timer::{Timer, deadline_in};

/// Most bytes of a following request that are kept while the present one is answered.
const PIPELINED_BYTES_MAX: usize = 16 * 1024;

/// Bytes that came from the client and were not used yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: BytesMut,
    searched: usize,
}

/// What came of waiting for a request.
pub(crate) enum Awaited {
    Head(Bytes),
    /// The client closed, or was idle for too long: nothing to answer.
    Gone,
    Refused(Turned),
}

impl Inbox {
    pub(super) fn new(bytes: BytesMut) -> Self {
        Self { bytes, searched: 0 }
    }

    /// Takes a complete head off what has come.
    fn take_head(&mut self, bytes_max: usize) -> Option<Result<Bytes, Turned>> {
        const TOO_LARGE: Turned =
            Turned::of(431, "headers_too_large", "the request head is too large");
        // One empty line before a request is legal, left over by old clients (RFC 9112 §2.2).
        if self.bytes.starts_with(b"\r\n") {
            self.bytes.advance(2);
            self.searched = 0;
        }
        match head_end(&self.bytes, self.searched) {
            Some(end) if end > bytes_max => Some(Err(TOO_LARGE)),
            Some(end) => {
                self.searched = 0;
                let head = self.bytes.split_to(end).freeze();
                if self.bytes.is_empty() {
                    // An idle connection holds no buffer.
                    self.bytes = BytesMut::new();
                }
                Some(Ok(head))
            }
            None if self.bytes.len() > bytes_max => Some(Err(TOO_LARGE)),
            None => {
                self.searched = self.bytes.len();
                // A head of bare line feeds never ends by our reading; say so instead of waiting.
                let bare = self.bytes.windows(2).any(|pair| pair == b"\n\n");
                bare.then_some(Err(Turned::bad(
                    "a line of the request head ends with a bare line feed",
                )))
            }
        }
    }

    /// Waits for the next request's head.
    ///
    /// `idle_until`: when to give up while nothing has come.
    pub(crate) async fn head<S: AsyncRead + Unpin>(
        &mut self,
        io: &mut S,
        settings: &Settings,
        idle_until: Instant,
        timer: &mut Timer,
        mut drained: impl FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Awaited {
        let mut complete_by =
            (!self.bytes.is_empty()).then(|| deadline_in(settings.request_header));
        std::future::poll_fn(|cx| {
            loop {
                match self.take_head(settings.head.bytes_max) {
                    Some(Ok(head)) => return Poll::Ready(Awaited::Head(head)),
                    Some(Err(turned)) => return Poll::Ready(Awaited::Refused(turned)),
                    None => {}
                }
                if self.bytes.is_empty() && drained(cx).is_ready() {
                    return Poll::Ready(Awaited::Gone);
                }
                match poll_read_with(io, cx, |bytes| {
                    self.bytes.extend_from_slice(bytes);
                    bytes.len()
                }) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Awaited::Gone),
                    Poll::Ready(Ok(_)) => {
                        complete_by.get_or_insert_with(|| deadline_in(settings.request_header));
                        continue;
                    }
                    Poll::Pending => {}
                }
                return match timer.poll(cx, complete_by.unwrap_or(idle_until)) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(()) if complete_by.is_some() => {
                        Poll::Ready(Awaited::Refused(Turned::of(
                            408,
                            "request_timeout",
                            "the request head did not arrive in time",
                        )))
                    }
                    Poll::Ready(()) => Poll::Ready(Awaited::Gone),
                };
            }
        })
        .await
    }

    /// Reads a body of at most `bytes_max`.
    pub(crate) async fn body<S: AsyncRead + Unpin>(
        &mut self,
        io: &mut S,
        length: BodyLength,
        bytes_max: usize,
        settings: &Settings,
        timer: &mut Timer,
    ) -> Result<Bytes, BodyRefusal> {
        match length {
            BodyLength::None | BodyLength::Stream => Ok(Bytes::new()),
            BodyLength::Known(length) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > bytes_max {
                    return Err(BodyRefusal::Turned(TOO_LARGE));
                }
                self.known_body(io, length, settings, timer).await
            }
            BodyLength::Chunked => self.chunked_body(io, bytes_max, settings, timer).await,
        }
    }

    async fn known_body<S: AsyncRead + Unpin>(
        &mut self,
        io: &mut S,
        length: usize,
        settings: &Settings,
        timer: &mut Timer,
    ) -> Result<Bytes, BodyRefusal> {
        if self.bytes.len() >= length {
            let body = self.bytes.split_to(length).freeze();
            if self.bytes.is_empty() {
                self.bytes = BytesMut::new();
            }
            return Ok(body);
        }
        let mut body = BytesMut::with_capacity(length);
        body.extend_from_slice(&self.bytes);
        self.bytes = BytesMut::new();
        let mut pace = Pace::new(settings);
        while body.len() < length {
            let missing = length - body.len();
            let mut limited = (&mut *io).take(missing as u64);
            match timer.within(pace.deadline(), limited.read_buf(&mut body)).await {
                None => return Err(BodyRefusal::Turned(pace.too_slow())),
                Some(Ok(0) | Err(_)) => return Err(BodyRefusal::Gone),
                Some(Ok(_)) => pace.arrived(body.len())?,
            }
        }
        Ok(body.freeze())
    }

    async fn chunked_body<S: AsyncRead + Unpin>(
        &mut self,
        io: &mut S,
        bytes_max: usize,
        settings: &Settings,
        timer: &mut Timer,
    ) -> Result<Bytes, BodyRefusal> {
        const BROKEN: Turned = Turned::bad("the chunked body is broken");
        let mut body = BytesMut::new();
        let mut chunked = Chunked::default();
        let mut pace = Pace::new(settings);
        loop {
            let input = std::mem::take(&mut self.bytes);
            let used = chunked
                .read(&input, |run| body.extend_from_slice(&input[run]))
                .map_err(|_| BodyRefusal::Turned(BROKEN))?;
            self.bytes =
                if used == input.len() { BytesMut::new() } else { input.clone().split_off(used) };
            if body.len() > bytes_max {
                return Err(BodyRefusal::Turned(TOO_LARGE));
            }
            if chunked.ended() {
                return Ok(body.freeze());
            }
            let bytes = &mut self.bytes;
            let read = std::future::poll_fn(|cx| {
                poll_read_with(io, cx, |came| {
                    bytes.extend_from_slice(came);
                    came.len()
                })
            });
            match timer.within(pace.deadline(), read).await {
                None => return Err(BodyRefusal::Turned(pace.too_slow())),
                Some(Ok(0) | Err(_)) => return Err(BodyRefusal::Gone),
                Some(Ok(_)) => pace.arrived(body.len())?,
            }
        }
    }

    /// Ready once the client has closed its side. What it sends meanwhile is kept for its turn.
    pub(crate) fn poll_gone<S: AsyncRead + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        while self.bytes.len() < PIPELINED_BYTES_MAX {
            match poll_read_with(io, cx, |bytes| {
                self.bytes.extend_from_slice(bytes);
                bytes.len()
            }) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
            }
        }
        Poll::Pending
    }
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum BodyRefusal {
    Turned(Turned),
    Gone,
}

const TOO_LARGE: Turned =
    Turned::of(413, "request_too_large", "the request body is larger than this gateway accepts");

/// How fast a body has to come.
struct Pace {
    idle: Duration,
    grace: Duration,
    per_second_min: u64,
    begun: Instant,
    last: Instant,
    end: Instant,
}

impl Pace {
    fn new(settings: &Settings) -> Self {
        let now = Instant::now();
        Self {
            idle: settings.request_body_idle,
            grace: settings.request_body_grace,
            per_second_min: settings.request_body_bytes_per_second_min,
            begun: now,
            last: now,
            end: deadline_in(settings.request_body),
        }
    }

    fn deadline(&self) -> Instant {
        self.end.min(self.last + self.idle)
    }

    fn arrived(&mut self, bytes: usize) -> Result<(), BodyRefusal> {
        self.last = Instant::now();
        let took = self.last.duration_since(self.begun);
        // A drip that only holds a connection is not a body.
        if took > self.grace && (bytes as u64) < took.as_secs() * self.per_second_min {
            return Err(BodyRefusal::Turned(self.too_slow()));
        }
        Ok(())
    }

    fn too_slow(&self) -> Turned {
        Turned::of(408, "request_timeout", "the request body did not arrive in time")
    }
}

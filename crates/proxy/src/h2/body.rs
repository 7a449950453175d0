//! Answers as hyper takes them.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::streams::OpenStream;
use crate::answer::{Answer, AnswerBody};
use crate::drain::Drain;
use crate::relay::{Relay, Step};
use crate::timer::{Timer, deadline_in};

/// From the last words of a broken stream to its reset, which discards what is not yet written.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// An answer for hyper.
pub(super) fn response(
    answer: Answer,
    is_head: bool,
    timer: Timer,
    drain: Drain,
    stream: OpenStream,
) -> http::Response<StreamBody> {
    let Answer { status, lines, body, .. } = answer;
    let mut response = http::Response::builder().status(status);
    for line in lines.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = memchr::memchr(b':', line) {
            response = response.header(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    let body = match body {
        AnswerBody::Full(body) if is_head => {
            response = response.header(http::header::CONTENT_LENGTH, body.len());
            StreamBody {
                ready: None,
                relay: None,
                reset_at: None,
                timer,
                drain,
                stream: Some(stream),
            }
        }
        AnswerBody::Full(body) => StreamBody {
            ready: Some(body),
            relay: None,
            reset_at: None,
            timer,
            drain,
            stream: Some(stream),
        },
        AnswerBody::Relay(mut relay) => {
            let held = Some(relay.take_held()).filter(|held| !held.is_empty());
            StreamBody {
                ready: held,
                relay: Some(relay),
                reset_at: None,
                timer,
                drain,
                stream: Some(stream),
            }
        }
    };
    response.body(body).unwrap_or_else(|_| {
        // A field that HTTP/2 cannot carry: the endpoint's fault, and not to be passed on.
        let body = StreamBody {
            ready: None,
            relay: None,
            reset_at: None,
            timer: Timer::default(),
            drain: Drain::new(tokio::sync::watch::channel(crate::Phase::Serving).1),
            stream: None,
        };
        let mut response = http::Response::new(body);
        *response.status_mut() = http::StatusCode::BAD_GATEWAY;
        response
    })
}

/// An answer's body as hyper takes it.
pub(super) struct StreamBody {
    ready: Option<Bytes>,
    relay: Option<Box<Relay>>,
    /// The last words are said; when the reset follows.
    reset_at: Option<Instant>,
    timer: Timer,
    drain: Drain,
    stream: Option<OpenStream>,
}

/// Makes hyper reset the stream: its client must not take the answer for complete.
#[derive(Debug, thiserror::Error)]
#[error("the answer is incomplete")]
pub(super) struct Incomplete;

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Incomplete;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let this = &mut *self;
        if let Some(stream) = &this.stream {
            stream.asked();
        }
        let frame = this.next_frame(cx);
        if let (Poll::Ready(Some(Ok(_))), Some(stream)) = (&frame, &this.stream) {
            stream.handed_over();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.relay.is_none() && self.reset_at.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let ready = self.ready.as_ref().map_or(0, Bytes::len) as u64;
        match &self.relay {
            None if self.reset_at.is_some() => SizeHint::default(),
            None => SizeHint::with_exact(ready),
            Some(relay) => relay
                .length()
                .map_or_else(SizeHint::default, |left| SizeHint::with_exact(left + ready)),
        }
    }
}

impl StreamBody {
    fn next_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        let this = self;
        if let Some(ready) = this.ready.take() {
            return Poll::Ready(Some(Ok(Frame::data(ready))));
        }
        if let Some(reset_at) = this.reset_at {
            return this.timer.poll(cx, reset_at).map(|()| {
                this.reset_at = None;
                Some(Err(Incomplete))
            });
        }
        let Some(relay) = &mut this.relay else { return Poll::Ready(None) };
        if this.drain.poll_deadline(cx).is_ready() {
            let farewell = relay.cut_for_drain();
            return Poll::Ready(this.last_words(farewell));
        }
        let mut payload = BytesMut::new();
        let step = relay.poll(cx, &mut this.timer, |_, bytes, runs| {
            for run in runs {
                payload.extend_from_slice(&bytes[run.clone()]);
            }
        });
        match step {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Step::Payload) => Poll::Ready(Some(Ok(Frame::data(payload.freeze())))),
            Poll::Ready(Step::End) => {
                this.relay = None;
                Poll::Ready(None)
            }
            Poll::Ready(Step::Broken) => {
                let farewell = relay.take_farewell();
                Poll::Ready(this.last_words(farewell))
            }
        }
    }

    /// The error event first, then the reset.
    fn last_words(&mut self, farewell: Option<Bytes>) -> Option<Result<Frame<Bytes>, Incomplete>> {
        self.relay = None;
        self.reset_at = farewell.is_some().then(|| deadline_in(LAST_WORDS));
        Some(farewell.map(Frame::data).ok_or(Incomplete))
    }
}

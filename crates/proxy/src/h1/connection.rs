//! The life of one HTTP/1.1 client connection.

use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gateway::Ending;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use super::gate;
use super::inbound::{Awaited, BodyRefusal, Inbox};
use super::outbound::{Frame, Outbox, write_head};
use crate::answer::{Answer, AnswerBody};
use crate::drain::Drain;
use crate::handler::Handler;
use crate::head::{BodyLength, RequestHead, Turned, Version};
use crate::relay::{Relay, Step};
use crate::settings::Settings;
use crate::timer::{Timer, deadline_in};

/// How long an answered client may still send what we do not read, before it is cut off.
const LINGER: Duration = Duration::from_secs(1);
/// How much of it is read.
const LINGER_BYTES_MAX: usize = 64 * 1024;

/// Serves one connection to its end.
///
/// * `first`: bytes that were read already.
pub(crate) async fn serve<S, H>(
    io: S,
    first: BytesMut,
    client: SocketAddr,
    handler: Rc<H>,
    settings: Rc<Settings>,
    drain: Drain,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Handler,
{
    let mut connection = Connection {
        io,
        client,
        handler,
        settings,
        drain,
        inbox: Inbox::new(first),
        outbox: Outbox::default(),
        timer: Timer::default(),
    };
    connection.run().await;
}

struct Connection<S, H> {
    io: S,
    client: SocketAddr,
    handler: Rc<H>,
    settings: Rc<Settings>,
    drain: Drain,
    inbox: Inbox,
    outbox: Outbox,
    timer: Timer,
}

/// Whether the connection can carry another request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Keep,
    /// Close once the client has had time to read the answer.
    Close,
    /// Close now: the client left, or must see that its answer is incomplete.
    Abort,
}

impl<S: AsyncRead + AsyncWrite + Unpin, H: Handler> Connection<S, H> {
    async fn run(&mut self) {
        let old_at = deadline_in(self.settings.connection_age);
        let mut idle = self.settings.first_request;
        for served in 1.. {
            let idle_until = deadline_in(idle);
            let drain = &mut self.drain;
            let awaited = self
                .inbox
                .head(&mut self.io, &self.settings, idle_until, &mut self.timer, |cx| {
                    // A connection of the drain delay is still good for one request.
                    if served == 1 { drain.poll_closed(cx) } else { drain.poll(cx) }
                })
                .await;
            let last =
                served >= self.settings.requests_per_connection_max || Instant::now() >= old_at;
            let after = match awaited {
                Awaited::Gone => return,
                Awaited::Refused(turned) => self.refuse(&turned, None, Version::Http11).await,
                Awaited::Head(bytes) => match gate::read(bytes, self.settings.head) {
                    Err(turned) => self.refuse(&turned, None, Version::Http11).await,
                    Ok(head) => self.request(head, last).await,
                },
            };
            match after {
                After::Keep => {}
                After::Close => return self.linger().await,
                After::Abort => return,
            }
            idle = self.settings.keep_alive_idle;
        }
    }

    async fn refuse(
        &mut self,
        turned: &Turned,
        ticket: Option<H::Ticket>,
        version: Version,
    ) -> After {
        let answer = self.handler.turned(turned, ticket, self.client).closing();
        self.write(answer, version, false, true).await
    }

    async fn request(&mut self, mut head: RequestHead, last: bool) -> After {
        let version = head.version;
        let close = head.close || last || self.drain.is_on();
        let is_head = head.method == http::Method::HEAD;
        let (plan, ticket) = match self.handler.plan(&head, self.client) {
            Ok(planned) => planned,
            Err(mut answer) => {
                // A body that nobody will read is still on its way.
                answer.close |= head.body != BodyLength::None;
                return self.write(answer, version, is_head, close).await;
            }
        };
        if plan.bytes_max == 0 && head.body != BodyLength::None {
            return self
                .refuse(&Turned::bad("this request takes no body"), Some(ticket), version)
                .await;
        }
        let is_too_large = match head.body {
            BodyLength::Known(length) => length > plan.bytes_max as u64,
            _ => false,
        };
        if head.expects_continue && head.body != BodyLength::None && !is_too_large {
            let _ = self.io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        }
        let body = self
            .inbox
            .body(&mut self.io, head.body, plan.bytes_max, &self.settings, &mut self.timer)
            .await;
        let body = match body {
            Ok(body) => body,
            Err(BodyRefusal::Gone) => return After::Abort,
            Err(BodyRefusal::Turned(turned)) => {
                return self.refuse(&turned, Some(ticket), version).await;
            }
        };
        head.expects_continue = false;
        // Boxed, so that its room is free again while the answer streams.
        let answer = Box::pin(self.answer(ticket, head, body)).await;
        match answer {
            Some(answer) => {
                let close = close || self.drain.is_on();
                self.write(answer, version, is_head, close).await
            }
            None => After::Abort,
        }
    }

    /// Waits for the answer, and at the same time for the client to leave (`None`).
    async fn answer(
        &mut self,
        ticket: H::Ticket,
        head: RequestHead,
        body: Bytes,
    ) -> Option<Answer> {
        let Self { io, inbox, handler, timer, .. } = self;
        let mut answering = std::pin::pin!(handler.answer(ticket, head, body, timer));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answering.as_mut().poll(cx) {
                return Poll::Ready(Some(answer));
            }
            inbox.poll_gone(io, cx).map(|()| None)
        })
        .await
    }

    async fn write(
        &mut self,
        answer: Answer,
        version: Version,
        is_head: bool,
        close: bool,
    ) -> After {
        let Answer { status, lines, body, close: must_close } = answer;
        let close = close || must_close;
        match body {
            AnswerBody::Full(body) => {
                let frame = if matches!(status, 204 | 304) {
                    Frame::None
                } else {
                    Frame::Length(body.len() as u64)
                };
                let mut head = Vec::new();
                write_head(&mut head, status, &lines, frame, close, version);
                let payload = if is_head { &[][..] } else { &body };
                self.put(&head, payload).await;
                match self.flush().await {
                    Ok(()) if close => After::Close,
                    Ok(()) => After::Keep,
                    Err(_) => After::Abort,
                }
            }
            AnswerBody::Relay(relay) => self.relay(relay, status, &lines, version, close).await,
        }
    }

    async fn put(&mut self, head: &[u8], payload: &[u8]) {
        std::future::poll_fn(|cx| {
            self.outbox.write(&mut self.io, cx, &[head, payload]);
            Poll::Ready(())
        })
        .await;
    }

    /// Writes out what is left, within the time that a reader is given.
    async fn flush(&mut self) -> Result<(), Ending> {
        let Self { io, outbox, timer, settings, .. } = self;
        let deadline = deadline_in(settings.slow_reader);
        std::future::poll_fn(|cx| match outbox.poll_flush(io, cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(Ending::ClientGone)),
            Poll::Pending => timer.poll(cx, deadline).map(|()| Err(Ending::ClientSlow)),
        })
        .await
    }

    async fn relay(
        &mut self,
        mut relay: Box<Relay>,
        status: u16,
        lines: &[u8],
        version: Version,
        close: bool,
    ) -> After {
        let frame = match relay.length() {
            _ if matches!(status, 204 | 304) => Frame::None,
            Some(length) => Frame::Length(length),
            None if version == Version::Http10 => Frame::UntilClose,
            None => Frame::Chunked,
        };
        let close = close || frame == Frame::UntilClose;
        let mut head = Vec::new();
        write_head(&mut head, status, lines, frame, close, version);
        let held = relay.take_held();
        let end = self.pass_on(&mut relay, head, held, frame).await;
        match end {
            Ok(Step::End) => {
                if frame == Frame::Chunked {
                    self.put(b"0\r\n\r\n", &[]).await;
                }
                match self.flush().await {
                    Ok(()) if close => After::Close,
                    Ok(()) => After::Keep,
                    Err(_) => After::Abort,
                }
            }
            Ok(_) => {
                // Without the end of its framing the client cannot take the answer for complete.
                if let Some(farewell) = relay.take_farewell() {
                    self.put_chunk(&farewell, frame).await;
                    let _ = self.flush().await;
                }
                let _ = self.io.shutdown().await;
                After::Abort
            }
            Err(ending) => {
                relay.client_failed(ending);
                After::Abort
            }
        }
    }

    async fn put_chunk(&mut self, payload: &[u8], frame: Frame) {
        let run = 0..payload.len();
        std::future::poll_fn(|cx| {
            self.outbox.write_payload(
                &mut self.io,
                cx,
                &[],
                frame,
                payload,
                std::slice::from_ref(&run),
            );
            Poll::Ready(())
        })
        .await;
    }

    /// Moves payload until the answer ends or the client fails.
    async fn pass_on(
        &mut self,
        relay: &mut Relay,
        head: Vec<u8>,
        held: Bytes,
        frame: Frame,
    ) -> Result<Step, Ending> {
        let Self { io, inbox, outbox, timer, settings, drain, .. } = self;
        let mut opening = Some((head, held));
        let mut slow_at = None;
        std::future::poll_fn(|cx| {
            if let Some((head, held)) = opening.take() {
                // The head goes out with the first payload, in one write.
                let run = 0..held.len();
                let runs = if held.is_empty() { &[][..] } else { std::slice::from_ref(&run) };
                outbox.write_payload(io, cx, &head, frame, &held, runs);
            }
            loop {
                match outbox.poll_flush(io, cx) {
                    Poll::Ready(Ok(())) => slow_at = None,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Ending::ClientGone)),
                    Poll::Pending => {
                        // Nothing more is read from the endpoint meanwhile: that is the backpressure.
                        let deadline =
                            *slow_at.get_or_insert_with(|| deadline_in(settings.slow_reader));
                        if inbox.poll_gone(io, cx).is_ready() {
                            return Poll::Ready(Err(Ending::ClientGone));
                        }
                        return timer.poll(cx, deadline).map(|()| Err(Ending::ClientSlow));
                    }
                }
                if inbox.poll_gone(io, cx).is_ready() {
                    return Poll::Ready(Err(Ending::ClientGone));
                }
                if drain.poll_deadline(cx).is_ready() {
                    if let Some(farewell) = relay.cut_for_drain() {
                        let run = 0..farewell.len();
                        outbox.write_payload(
                            io,
                            cx,
                            &[],
                            frame,
                            &farewell,
                            std::slice::from_ref(&run),
                        );
                    }
                    return Poll::Ready(Ok(Step::Broken));
                }
                let step = relay.poll(cx, timer, |cx, bytes, runs| {
                    outbox.write_payload(io, cx, &[], frame, bytes, runs);
                });
                match step {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Step::Payload) => {}
                    Poll::Ready(step) => return Poll::Ready(Ok(step)),
                }
            }
        })
        .await
    }

    /// Closes such that the client can read the answer: its unread bytes would otherwise make the
    /// kernel reset the connection, and the answer with it.
    async fn linger(&mut self) {
        let _ = self.io.shutdown().await;
        let Self { io, timer, .. } = self;
        let mut read = 0;
        let rest = std::future::poll_fn(|cx| {
            loop {
                match crate::scratch::poll_read_with(io, cx, <[u8]>::len) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(more)) => read += more,
                }
                if read > LINGER_BYTES_MAX {
                    return Poll::Ready(());
                }
            }
        });
        timer.within(deadline_in(LINGER), rest).await;
    }
}

//! A request to an endpoint over HTTP/1.1, and its answer.

use std::io::IoSlice;
use std::ops::Range;
use std::task::{Context, Poll};

use tokio::time::Instant;
use types::EndpointId;

use super::connection::Connection;
use super::pool::Pool;
use super::response::{BodyFault, Framing, HeadFault, Parsed, Progress, ResponseHead, parse};
use crate::scratch::poll_read_with;
use crate::timer::Timer;

/// Most interim answers (1xx) before the real one.
const INTERIM_MAX: u8 = 8;

/// The body of an answer, still on its connection.
#[derive(Debug)]
pub(crate) struct Http1Body {
    connection: Option<Connection>,
    framing: Framing,
    keeps_alive: bool,
    endpoint: EndpointId,
    pool: Pool,
}

/// A request that got no answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) fault: HeadFault,
    /// The connection had served before and nothing came back: the endpoint may have closed it
    /// while we wrote, so the request may not even have been read.
    pub(crate) stale_connection: bool,
}

/// Sends one request and reads the head of its answer.
///
/// Payload that came with the head goes to `early`.
pub(crate) async fn exchange(
    mut connection: Connection,
    endpoint: EndpointId,
    pool: &Pool,
    parts: [&[u8]; 2],
    deadline: Instant,
    timer: &mut Timer,
    early: &mut Vec<u8>,
) -> Result<(ResponseHead, Http1Body), Unanswered> {
    let mut written = 0;
    let total = parts[0].len() + parts[1].len();
    let mut partial = Vec::new();
    let mut interim = 0;
    let answer = std::future::poll_fn(|cx| {
        // Written and read in one go: an endpoint may answer (413, say) before it has read all.
        if let Poll::Ready(Err(error)) = poll_send(&mut connection, cx, parts, &mut written, total)
        {
            // It may still have answered before it closed; only if not is this the failure.
            return match poll_head(&mut connection, cx, &mut partial, &mut interim, early) {
                Poll::Ready(Ok(head)) => Poll::Ready(Ok(head)),
                _ => Poll::Ready(Err(HeadFault::Io(error))),
            };
        }
        if let Poll::Ready(answer) =
            poll_head(&mut connection, cx, &mut partial, &mut interim, early)
        {
            return Poll::Ready(answer);
        }
        timer.poll(cx, deadline).map(|()| Err(HeadFault::Timeout))
    })
    .await;
    match answer {
        Ok((head, framing, keeps_alive)) => {
            let keeps_alive = keeps_alive && written == total;
            let mut body = Http1Body {
                connection: Some(connection),
                framing,
                keeps_alive,
                endpoint,
                pool: pool.clone(),
            };
            body.give_back_if_ended();
            Ok((head, body))
        }
        Err(fault) => {
            let nothing_came =
                partial.is_empty() && interim == 0 && !matches!(fault, HeadFault::Timeout);
            Err(Unanswered { fault, stale_connection: connection.reused && nothing_came })
        }
    }
}

fn poll_send(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    parts: [&[u8]; 2],
    written: &mut usize,
    total: usize,
) -> Poll<std::io::Result<()>> {
    while *written < total {
        let head_left = parts[0].get(*written..).unwrap_or_default();
        let body_left = parts[1].get(written.saturating_sub(parts[0].len())..).unwrap_or_default();
        match connection.poll_write(cx, &[IoSlice::new(head_left), IoSlice::new(body_left)]) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(count)) => *written += count,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
        }
    }
    connection.poll_flush(cx)
}

type Head = (ResponseHead, Framing, bool);

fn poll_head(
    connection: &mut Connection,
    cx: &mut Context<'_>,
    partial: &mut Vec<u8>,
    interim: &mut u8,
    early: &mut Vec<u8>,
) -> Poll<Result<Head, HeadFault>> {
    loop {
        let read = poll_read_with(&mut connection.io, cx, |bytes| {
            if bytes.is_empty() {
                return Err(HeadFault::Closed);
            }
            if partial.is_empty() {
                return take_head(bytes, partial, interim, early);
            }
            partial.extend_from_slice(bytes);
            let whole = std::mem::take(partial);
            take_head(&whole, partial, interim, early)
        });
        match read {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(HeadFault::Io(error))),
            Poll::Ready(Ok(Err(fault))) => return Poll::Ready(Err(fault)),
            Poll::Ready(Ok(Ok(Some(head)))) => return Poll::Ready(Ok(head)),
            Poll::Ready(Ok(Ok(None))) => {}
        }
    }
}

/// Takes the head off the front of `bytes`; what is not yet enough goes to `partial`, payload
/// that came along to `early`.
fn take_head(
    mut bytes: &[u8],
    partial: &mut Vec<u8>,
    interim: &mut u8,
    early: &mut Vec<u8>,
) -> Result<Option<Head>, HeadFault> {
    loop {
        match parse(bytes)? {
            Parsed::Partial => {
                partial.extend_from_slice(bytes);
                return Ok(None);
            }
            Parsed::Interim(length) => {
                *interim += 1;
                if *interim > INTERIM_MAX {
                    return Err(HeadFault::Malformed);
                }
                bytes = &bytes[length..];
                if bytes.is_empty() {
                    return Ok(None);
                }
            }
            Parsed::Head { head, mut framing, keeps_alive, length } => {
                let rest = &bytes[length..];
                let used = framing
                    .read(rest, |run| early.extend_from_slice(&rest[run]))
                    .map_err(|_| HeadFault::Malformed)?;
                // Bytes beyond the end of the answer: the connection cannot be trusted again.
                let keeps_alive = keeps_alive && used == rest.len();
                return Ok(Some((head, framing, keeps_alive)));
            }
        }
    }
}

impl Http1Body {
    pub(crate) fn ended(&self) -> bool {
        self.framing.ended()
    }

    /// The length that the endpoint announced and has not sent yet.
    pub(crate) fn remaining(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(remaining) => Some(remaining),
            Framing::Empty => Some(0),
            _ => None,
        }
    }

    /// Reads on; gives the bytes read and the runs of payload among them.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        with: &mut impl FnMut(&[u8], &[Range<usize>]),
    ) -> Poll<Result<Progress, BodyFault>> {
        loop {
            if self.framing.ended() {
                return Poll::Ready(Ok(Progress::End));
            }
            let Some(connection) = &mut self.connection else {
                return Poll::Ready(Err(BodyFault::Cut));
            };
            let framing = &mut self.framing;
            let mut beyond = false;
            let read = poll_read_with(&mut connection.io, cx, |bytes| {
                if bytes.is_empty() {
                    return match framing {
                        Framing::UntilClose => {
                            *framing = Framing::Empty;
                            Ok(false)
                        }
                        _ => Err(BodyFault::Cut),
                    };
                }
                let mut runs = Runs::default();
                let used = framing.read(bytes, |run| runs.push(run))?;
                beyond = used < bytes.len();
                if !runs.is_empty() {
                    with(bytes, runs.as_slice());
                }
                Ok(!runs.is_empty())
            });
            self.keeps_alive &= !beyond;
            match read {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(BodyFault::Cut)),
                Poll::Ready(Ok(Err(fault))) => return Poll::Ready(Err(fault)),
                Poll::Ready(Ok(Ok(came))) => {
                    self.give_back_if_ended();
                    if came {
                        return Poll::Ready(Ok(Progress::Payload));
                    }
                }
            }
        }
    }

    /// Puts the connection back as soon as its answer is read, so that the next request finds it.
    fn give_back_if_ended(&mut self) {
        if self.framing.ended()
            && let Some(connection) = self.connection.take()
            && self.keeps_alive
        {
            self.pool.put(self.endpoint, connection);
        }
    }
}

/// Runs of payload in one read: nearly always few, so they need no allocation.
#[derive(Default)]
struct Runs {
    few: [Range<usize>; 8],
    count: usize,
    many: Vec<Range<usize>>,
}

impl Runs {
    fn push(&mut self, run: Range<usize>) {
        if self.many.is_empty() && self.count < self.few.len() {
            self.few[self.count] = run;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend(self.few.iter().cloned());
        }
        self.many.push(run);
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn as_slice(&self) -> &[Range<usize>] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }
}

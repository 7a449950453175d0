//! Requests to endpoints over HTTP/2 without TLS: one connection for each endpoint and thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::Instant;
use types::{EndpointAddress, EndpointId};

use super::connection::{ConnectError, Connection, Io, Means};
use super::response::{BodyFault, HeadFault, Progress, ResponseHead};
use crate::fields::Fields;
use crate::timer::{Timer, deadline_in};

/// Connections of one thread, by endpoint.
#[derive(Clone, Default)]
pub(crate) struct H2cPool {
    open: Rc<RefCell<HashMap<EndpointId, Open>>>,
}

/// A connection and when it last got a request.
struct Open {
    sender: http2::SendRequest<Full<Bytes>>,
    used_at: Instant,
}

/// The body of an answer over HTTP/2.
pub(crate) struct H2cBody {
    body: Incoming,
    ended: bool,
}

/// Why a request got no answer.
pub(crate) enum Failed {
    Connect(ConnectError),
    Head(HeadFault),
}

impl H2cPool {
    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn exchange(
        &self,
        endpoint: EndpointId,
        address: &EndpointAddress,
        request: http::Request<Full<Bytes>>,
        connect_timeout: Duration,
        deadline: Instant,
        timer: &mut Timer,
    ) -> Result<(ResponseHead, H2cBody), Failed> {
        let mut sender = timer
            .within(deadline_in(connect_timeout), self.sender(endpoint, address))
            .await
            .unwrap_or(Err(ConnectError::Timeout))
            .map_err(Failed::Connect)?;
        let answer = match timer.within(deadline, sender.send_request(request)).await {
            None => return Err(Failed::Head(HeadFault::Timeout)),
            Some(Err(_)) => {
                self.open.borrow_mut().remove(&endpoint);
                return Err(Failed::Head(HeadFault::Closed));
            }
            Some(Ok(answer)) => answer,
        };
        let (parts, body) = answer.into_parts();
        let ended = body.is_end_stream();
        let head =
            ResponseHead { status: parts.status.as_u16(), fields: fields_of(&parts.headers) };
        Ok((head, H2cBody { body, ended }))
    }

    /// Lets go of connections that had no request for longer than `idle_max`. One with streams
    /// lives on until these have ended.
    pub(crate) fn sweep(&self, idle_max: Duration) {
        let now = Instant::now();
        self.open.borrow_mut().retain(|_, open| now.duration_since(open.used_at) < idle_max);
    }

    async fn sender(
        &self,
        endpoint: EndpointId,
        address: &EndpointAddress,
    ) -> Result<http2::SendRequest<Full<Bytes>>, ConnectError> {
        if let Some(open) = self.open.borrow_mut().get_mut(&endpoint)
            && !open.sender.is_closed()
        {
            open.used_at = Instant::now();
            return Ok(open.sender.clone());
        }
        // Only engines, which are near and without TLS, are spoken to in this way.
        let connection = Connection::open(address, &Means::default()).await?;
        let Io::Plain(io) = connection.io else {
            return Err(ConnectError::Tls(std::io::ErrorKind::Unsupported.into()));
        };
        let broken = |_| ConnectError::Refused(std::io::ErrorKind::ConnectionAborted.into());
        let (sender, driver) = http2::Builder::new(LocalExecutor)
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(20))
            .handshake(TokioIo::new(io))
            .await
            .map_err(broken)?;
        // Ends with its connection, which ends with the last sender.
        tokio::task::spawn_local(driver);
        let open = Open { sender: sender.clone(), used_at: Instant::now() };
        self.open.borrow_mut().insert(endpoint, open);
        Ok(sender)
    }
}

/// Header fields of HTTP/2 in the form that all our rules read.
pub(crate) fn fields_of(headers: &http::HeaderMap) -> Fields {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let mut buffer = BytesMut::with_capacity(bytes);
    let mut places = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let start = buffer.len();
        buffer.extend_from_slice(name.as_str().as_bytes());
        let middle = buffer.len();
        buffer.extend_from_slice(value.as_bytes());
        places.push((start..middle, middle..buffer.len()));
    }
    let mut fields = Fields::with_bytes(buffer.freeze());
    for (name, value) in places {
        fields.push(name, value);
    }
    fields
}

/// Runs hyper's tasks on the thread that asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

impl H2cBody {
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn remaining(&self) -> Option<u64> {
        if self.ended { Some(0) } else { self.body.size_hint().exact() }
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        with: &mut impl FnMut(&[u8], &[Range<usize>]),
    ) -> Poll<Result<Progress, BodyFault>> {
        loop {
            if self.ended {
                return Poll::Ready(Ok(Progress::End));
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.ended = true,
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyFault::Cut)),
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.ended = self.body.is_end_stream();
                    if !data.is_empty() {
                        with(&data, std::slice::from_ref(&(0..data.len())));
                        return Poll::Ready(Ok(Progress::Payload));
                    }
                }
            }
        }
    }
}

//! Endpoints, tried until one answers; nothing is committed to the client meanwhile.

use std::time::Duration;

use bytes::Bytes;
use gateway::{Attempt, Component, Exchange, Failure, Refusal, Verdict};
use telemetry::clock;
use telemetry::metrics::labels;
use tokio::time::Instant;

use super::Traffic;
use crate::fields::Class;
use crate::head::RequestHead;
use crate::relay::Source;
use crate::rewrite::{Credentials, request_head, request_http2};
use crate::timer::{Timer, deadline_in};
use crate::upstream::{self, H2cFailed, HeadFault, Progress, ResponseHead};

/// Bytes that are held back at most while an answer is not yet committed.
const HELD_BYTES_MAX: usize = 16 * 1024;

/// An endpoint's answer, before its first payload.
pub(super) struct Begun {
    pub(super) head: ResponseHead,
    pub(super) source: Source,
    pub(super) held: Vec<u8>,
}

impl Traffic {
    /// Tries endpoints until one answers.
    pub(super) async fn forward(
        &self,
        exchange: &mut Exchange,
        head: &RequestHead,
        body: &Bytes,
        timer: &mut Timer,
    ) -> Result<Begun, Refusal> {
        let spec = self.gateway.spec().clone();
        let times = &spec.timeouts;
        let first_byte = if exchange.is_stream() {
            times.first_byte
        } else {
            times.first_byte.min(times.response)
        };
        let head_by =
            deadline_in(exchange.route_timeout().map_or(first_byte, |limit| limit.min(first_byte)));
        loop {
            let Some(attempt) = exchange.attempt(clock::now()) else {
                return Err(Refusal::new(
                    503,
                    "no_endpoints",
                    Component::Picker,
                    labels::Refusal::Overloaded,
                    "no endpoint is left to try",
                ));
            };
            let revocation = exchange.revocation();
            let lost = attempt.lost.clone();
            let trying = self.try_one(&attempt, exchange, head, body, head_by, timer);
            let tried = match (revocation, lost) {
                (None, None) => trying.await,
                (None, Some(mut lost)) => {
                    let tried = tokio::select! {
                        tried = trying => Some(tried),
                        () = lost.lost() => None,
                    };
                    tried.unwrap_or_else(|| Err(exchange.failed(Failure::Lost, clock::now())))
                }
                (Some(revocation), _) => tokio::select! {
                    tried = trying => tried,
                    // What was under way is dropped, and with it the endpoint's connection.
                    () = revocation.revoked() => return Err(exchange.revoked(clock::now())),
                },
            };
            match tried {
                Ok(begun) => return Ok(begun),
                Err(Verdict::Refuse(refusal)) => return Err(refusal),
                Err(Verdict::Retry | Verdict::Forward) => {}
            }
        }
    }

    /// One request to one endpoint, up to the first payload of its answer.
    async fn try_one(
        &self,
        attempt: &Attempt,
        exchange: &mut Exchange,
        head: &RequestHead,
        body: &Bytes,
        head_by: Instant,
        timer: &mut Timer,
    ) -> Result<Begun, Verdict> {
        let answer = self.attempt(attempt, exchange, head, body, head_by, timer).await;
        let begun = answer.map_err(|failure| exchange.failed(failure, clock::now()))?;
        let retry_after = begun.head.fields.get(Class::RetryAfter).map(seconds);
        match exchange.answered(begun.head.status, retry_after, clock::now()) {
            Verdict::Forward => {}
            verdict => return Err(verdict),
        }
        let begun = self.first_payload(exchange, begun, head_by, timer).await;
        begun.map_err(|failure| exchange.failed(failure, clock::now()))
    }

    /// One request to one endpoint.
    async fn attempt(
        &self,
        attempt: &Attempt,
        exchange: &mut Exchange,
        head: &RequestHead,
        body: &Bytes,
        head_by: Instant,
        timer: &mut Timer,
    ) -> Result<Begun, Failure> {
        let connect = self.gateway.spec().timeouts.connect;
        let own = attempt.authorization.as_ref().map(|secret| &*secret.0);
        let credentials = Credentials {
            own: own.or(self.endpoint_authorization.as_deref()),
            of_client: self.gateway.hands_credentials_on(),
            cookies: !self.gateway.keeps_cookies(),
        };
        if attempt.h2c {
            let request = request_http2(head, body, attempt, exchange.id(), credentials)
                .map_err(|_| Failure::Malformed)?;
            let answer = self
                .h2c
                .exchange(attempt.endpoint, &attempt.address, request, connect, head_by, timer)
                .await;
            return match answer {
                Ok((head, body)) => Ok(Begun { head, source: Source::H2c(body), held: Vec::new() }),
                Err(H2cFailed::Connect(error)) => {
                    self.count_connect(Some(&error));
                    Err(Failure::Connect)
                }
                Err(H2cFailed::Head(fault)) => Err(failure_of(&fault)),
            };
        }
        let lines = request_head(head, body.len(), attempt, exchange.id(), credentials);
        let idle_max = self.gateway.spec().timeouts.endpoint_idle;
        let mut reused = self.connections.take(attempt.endpoint, idle_max);
        loop {
            let connection = match reused.take() {
                Some(connection) => connection,
                None => match self.open(attempt, connect, exchange, timer).await {
                    Ok(connection) => {
                        self.count_connect(None);
                        connection
                    }
                    Err(error) => {
                        self.count_connect(Some(&error));
                        return Err(Failure::Connect);
                    }
                },
            };
            let mut held = Vec::new();
            let answer = upstream::exchange(
                connection,
                attempt.endpoint,
                &self.connections,
                [&lines, body],
                head_by,
                timer,
                &mut held,
            )
            .await;
            match answer {
                Ok((head, body)) => return Ok(Begun { head, source: Source::Http1(body), held }),
                // The endpoint closed its idle connection just as we wrote: once more, on a new one.
                Err(unanswered) if unanswered.stale_connection => {}
                Err(unanswered) => return Err(failure_of(&unanswered.fault)),
            }
        }
    }

    /// A new connection; a traced request books how long it took.
    async fn open(
        &self,
        attempt: &Attempt,
        connect: Duration,
        exchange: &mut Exchange,
        timer: &mut Timer,
    ) -> Result<upstream::Connection, upstream::ConnectError> {
        let begun = exchange.has_journey().then(clock::now);
        let opened = self.connections.open(&attempt.address, connect, timer).await;
        if let Some(begun) = begun {
            exchange.connected(begun, clock::now());
        }
        opened
    }

    fn count_connect(&self, error: Option<&upstream::ConnectError>) {
        let outcome = match error {
            None => labels::Connect::Ok,
            Some(upstream::ConnectError::Timeout) => labels::Connect::Timeout,
            Some(upstream::ConnectError::Tls(_)) => labels::Connect::Tls,
            Some(upstream::ConnectError::Name(_)) => labels::Connect::Resolve,
            Some(upstream::ConnectError::Refused(error)) => match error.kind() {
                std::io::ErrorKind::ConnectionRefused => labels::Connect::Refused,
                std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable => {
                    labels::Connect::Unreachable
                }
                _ => labels::Connect::Other,
            },
        };
        self.gateway.metrics.gateway().upstream_connects.of(outcome).inc();
    }

    /// Waits for the first payload of an answer, or its end. Until then nothing is committed, so
    /// another endpoint can still step in.
    async fn first_payload(
        &self,
        exchange: &mut Exchange,
        mut begun: Begun,
        head_by: Instant,
        timer: &mut Timer,
    ) -> Result<Begun, Failure> {
        let content_type = begun.head.fields.get_str(Class::ContentType);
        let encoded = begun.head.fields.get(Class::ContentEncoding).is_some();
        exchange.watch(content_type.filter(|_| !encoded));
        let is_event_stream = exchange.is_event_stream();
        let Begun { source, held, .. } = &mut begun;
        let result = std::future::poll_fn(|cx| {
            while !source.ended()
                && (held.is_empty() || (is_event_stream && is_half_an_event(held)))
            {
                let mut keep = |bytes: &[u8], runs: &[std::ops::Range<usize>]| {
                    for run in runs {
                        held.extend_from_slice(&bytes[run.clone()]);
                    }
                };
                match source.poll(cx, &mut keep) {
                    std::task::Poll::Pending => {
                        return timer.poll(cx, head_by).map(|()| Err(Failure::Timeout));
                    }
                    std::task::Poll::Ready(Ok(Progress::Payload)) => {}
                    std::task::Poll::Ready(Ok(Progress::End)) => break,
                    std::task::Poll::Ready(Err(_)) => {
                        return std::task::Poll::Ready(Err(Failure::CutBeforePayload));
                    }
                }
            }
            std::task::Poll::Ready(Ok(()))
        })
        .await;
        result?;
        if begun.held.is_empty() {
            if exchange.is_event_stream() && begun.head.status == 200 {
                return Err(Failure::EmptyStream);
            }
        } else {
            exchange.payload(&begun.held, clock::now());
        }
        Ok(begun)
    }
}

/// Whether the first event of a stream is not complete yet. Until it is, nobody can tell whether it
/// is an error, which still can have a status. Comments (heartbeats) count as events here: they
/// are sent so that somebody sees them.
fn is_half_an_event(held: &[u8]) -> bool {
    let has = |blank_line: &[u8]| memchr::memmem::find(held, blank_line).is_some();
    held.len() < HELD_BYTES_MAX && !has(b"\n\n") && !has(b"\r\n\r\n") && !has(b"\r\r")
}

fn failure_of(fault: &HeadFault) -> Failure {
    match fault {
        HeadFault::Closed | HeadFault::Io(_) => Failure::Closed,
        HeadFault::Malformed => Failure::Malformed,
        HeadFault::Timeout => Failure::Timeout,
    }
}

/// Of a `Retry-After`; zero if it is a date, which nobody here sends.
fn seconds(value: &[u8]) -> Duration {
    let seconds = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

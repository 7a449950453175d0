//! One request from its head to its end, whatever carries it.
//!
//! The caller moves bytes and reports what happened; the exchange decides and keeps the books. It
//! can be dropped at any moment: credit is returned, and the request is booked as one whose client
//! left.

mod answering;
mod books;
pub(crate) mod placement;
#[cfg(test)]
mod tests;
mod watching;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use openai::{BodyKind, Route};
use prefix::BlockHash;
use sched::{Outcome, Reservation, RetryPermit};
use telemetry::clock;
use telemetry::metrics::labels;
use types::{EndpointAddress, EndpointId, PoolName, Timestamp};

use crate::catalog::Target;
use crate::refusal::{Component, Refusal};
use crate::request_id::RequestId;
use crate::{Gateway, PoolMember};
use watching::Watching;

/// What is known of a request from its head.
#[derive(Debug)]
pub struct RequestMeta {
    pub id: RequestId,
    pub method: Method,
    pub route: Route,
    pub client: SocketAddr,
    pub received: Timestamp,
    /// The client's session, if it names one.
    pub session: Option<u64>,
    /// The pool that the path leads to, where it is not found by model ([`Route::Opened`]).
    pub pool: Option<PoolName>,
}

/// One request.
pub struct Exchange {
    gateway: Arc<Gateway>,
    meta: RequestMeta,
    bytes_in: u64,
    stream: bool,
    target: Option<Target>,
    /// Endpoints to try, the best first, each with the prompt tokens that it does not hold yet.
    order: Vec<(PoolMember, u32)>,
    tried: usize,
    retried_for: Option<labels::Retry>,
    retry_permit: Option<RetryPermit>,
    hashes: Vec<BlockHash>,
    pick_took: Option<Duration>,
    reservation: Option<Reservation>,
    status: u16,
    watching: Watching,
    error: Option<(Component, &'static str)>,
    finished: bool,
}

/// Where to send the request now.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub endpoint: EndpointId,
    pub address: EndpointAddress,
    /// For the `Host` header.
    pub authority: String,
    pub h2c: bool,
}

/// Why an attempt brought no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection came about; the endpoint saw nothing of the request.
    Connect,
    /// The connection ended before a byte of the answer.
    Closed,
    /// The answer had begun, but ended before a byte of its body.
    CutBeforePayload,
    /// A stream without a single event.
    EmptyStream,
    Malformed,
    Timeout,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Pass the endpoint's answer on.
    Forward,
    /// Ask [`Exchange::attempt`] for another endpoint.
    Retry,
    /// Answer with an error of ours.
    Refuse(Refusal),
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Complete,
    EndpointCut,
    /// The stream ended cleanly, but without the mark of its end.
    EndpointUnfinished,
    EndpointMalformed,
    EndpointStalled,
    ClientGone,
    ClientSlow,
    Drained,
    /// Answered with an error of ours.
    Refused,
}

impl Exchange {
    pub fn new(gateway: Arc<Gateway>, meta: RequestMeta) -> Self {
        gateway.metrics.gateway().requests_open.inc();
        Self {
            gateway,
            meta,
            bytes_in: 0,
            stream: false,
            target: None,
            order: Vec::new(),
            tried: 0,
            retried_for: None,
            retry_permit: None,
            hashes: Vec::new(),
            pick_took: None,
            reservation: None,
            status: 0,
            watching: Watching::default(),
            error: None,
            finished: false,
        }
    }

    pub fn id(&self) -> &RequestId {
        &self.meta.id
    }

    pub fn route(&self) -> Route {
        self.meta.route
    }

    /// Whether the client asked for a stream. Known after [`Self::place`].
    pub fn is_stream(&self) -> bool {
        self.stream
    }

    /// Whether the endpoint's answer is an event stream. Known after [`Self::watch`].
    pub fn is_event_stream(&self) -> bool {
        self.watching.is_event_stream()
    }

    /// `host:port` of the endpoint that has the request.
    pub fn endpoint_label(&self) -> Option<String> {
        self.current().map(|current| current.member.authority.clone())
    }

    /// Time since the request was received.
    pub fn age(&self, now: Timestamp) -> Duration {
        now.since(self.meta.received)
    }

    /// Seconds for a `Retry-After` on an endpoint's 429 or 503 that came without one.
    pub fn retry_after_if_missing(&self, has_one: bool) -> Option<u64> {
        if has_one || !matches!(self.status, 429 | 503) {
            return None;
        }
        let target = self.target.as_ref()?;
        Some(target.pool.pace.retry_after(1, clock::now()).as_secs().max(1))
    }

    /// Longest time for the whole request, where its pool says so.
    pub fn route_timeout(&self) -> Option<Duration> {
        self.target.as_ref().and_then(|target| target.pool.settings.route_timeout)
    }

    /// Reads the body, finds the pool and chooses endpoints.
    pub fn place(
        &mut self,
        body: &[u8],
        content_type: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.bytes_in = body.len() as u64;
        self.gateway.metrics.gateway().request_bytes.add(self.bytes_in);
        let said = self.read_body(body, content_type)?;
        self.stream = said.stream;
        let target = self.resolve(&said)?;
        target.pool.metrics.requests_in_flight.inc();
        self.target = Some(target);
        self.choose(body, &said, now)
    }

    fn read_body(&self, body: &[u8], content_type: Option<&str>) -> Result<openai::Body, Refusal> {
        let limits = &self.gateway.body_limits;
        let read = match self.meta.route.body() {
            BodyKind::Multipart => openai::scan_multipart(content_type.unwrap_or(""), body, limits),
            BodyKind::Json | BodyKind::None => openai::scan(self.meta.route, body, limits),
            BodyKind::Opaque => return Ok(openai::Body::default()),
        };
        read.map_err(|error| {
            Refusal::new(
                400,
                error.code(),
                Component::Edge,
                labels::Refusal::BadRequest,
                error.to_string(),
            )
            .with_param(error.param)
        })
    }

    /// The next endpoint to try, with credit reserved on it.
    pub fn attempt(&mut self, now: Timestamp) -> Option<Attempt> {
        let (chosen, uncached_tokens) = self.order.get(self.tried)?;
        self.tried += 1;
        let member = &chosen.member;
        self.reservation = Some(member.state.reserve(*uncached_tokens, now));
        if let Some(adapter) = self.target.as_ref().and_then(|target| target.adapter) {
            member.state.record_adapter(adapter, now);
        }
        self.gateway.index.record(member.endpoint.slot, &self.hashes);
        member.wake();
        chosen.gauges.picks.inc();
        Some(Attempt {
            endpoint: member.endpoint.id,
            address: member.endpoint.address.clone(),
            authority: member.authority.clone(),
            h2c: self.target.as_ref().is_some_and(|target| target.pool.settings.h2c),
        })
    }

    /// The attempt under way brought no answer.
    pub fn failed(&mut self, failure: Failure, now: Timestamp) -> Verdict {
        self.judge(
            match failure {
                Failure::Connect => Outcome::ConnectFailure,
                _ => Outcome::Failure,
            },
            now,
        );
        self.reservation = None;
        let reason = match failure {
            Failure::Connect => Some(labels::Retry::Connect),
            Failure::Closed | Failure::CutBeforePayload | Failure::EmptyStream => {
                Some(labels::Retry::ClosedReused)
            }
            // The endpoint may still be at work on it: a second one would double the load.
            Failure::Malformed | Failure::Timeout => None,
        };
        if let Some(reason) = reason
            && self.may_retry(reason, now)
        {
            return Verdict::Retry;
        }
        Verdict::Refuse(self.failure_refusal(failure, now))
    }

    /// The attempt under way brought the head of an answer.
    pub fn answered(&mut self, status: u16, has_retry_after: bool, now: Timestamp) -> Verdict {
        let adapter_missing =
            status == 404 && self.target.as_ref().is_some_and(|target| target.adapter.is_some());
        let outcome = match status {
            502 | 504 => Outcome::Failure,
            // With `Retry-After` the engine refuses more work; that is no sign of illness.
            503 if !has_retry_after => Outcome::Failure,
            // Engines answer 500 to requests that are wrong in ways they did not foresee.
            429 | 500.. => Outcome::Neutral,
            _ => Outcome::Success,
        };
        self.judge(outcome, now);
        if adapter_missing && let Some(current) = self.current() {
            current.member.doubt_models();
        }
        if (matches!(status, 429 | 502 | 503) || adapter_missing)
            && self.may_retry(labels::Retry::Unavailable, now)
        {
            self.reservation = None;
            return Verdict::Retry;
        }
        self.status = status;
        Verdict::Forward
    }

    /// What a forwarded answer looks like, before its first payload.
    pub fn watch(&mut self, content_type: Option<&str>) {
        self.watching.begin(self.meta.route, self.status, content_type);
    }

    /// Whether another endpoint may be tried.
    fn may_retry(&mut self, reason: labels::Retry, now: Timestamp) -> bool {
        let Some(target) = &self.target else { return false };
        if self.tried >= self.order.len() {
            return false;
        }
        // A connect failure cost nothing, so the list may be walked; anything else once only.
        let allowed = match reason {
            labels::Retry::Connect => true,
            _ => self.retried_for.is_none_or(|earlier| earlier == labels::Retry::Connect),
        };
        if !allowed {
            return false;
        }
        let Some(permit) = target.pool.pace.retry(target.pool.in_flight(), now) else {
            return false;
        };
        target.pool.metrics.retries.of(reason).inc();
        self.retried_for = Some(reason);
        self.retry_permit = Some(permit);
        true
    }

    fn current(&self) -> Option<&PoolMember> {
        self.order.get(self.tried.checked_sub(1)?).map(|(member, _)| member)
    }

    /// Tells the endpoint's ejection what came of the attempt.
    fn judge(&self, outcome: Outcome, now: Timestamp) {
        let (Some(current), Some(reservation)) = (self.current(), &self.reservation) else {
            return;
        };
        let state = reservation.state();
        let usable = |now| state.ejection().health(0, now).usable();
        let was_usable = usable(now);
        state.record_outcome(outcome, now);
        if was_usable && !usable(now) {
            current.gauges.ejections.inc();
            let endpoint = &current.member.authority;
            tracing::warn!(%endpoint, ?outcome, "endpoint ejected");
        }
    }

    fn failure_refusal(&self, failure: Failure, now: Timestamp) -> Refusal {
        let (status, code, message) = match failure {
            Failure::Connect => (503, "endpoint_unreachable", "no endpoint accepted a connection"),
            Failure::Closed => {
                (502, "endpoint_closed", "the endpoint closed the connection before it answered")
            }
            Failure::CutBeforePayload => {
                (502, "endpoint_cut", "the endpoint's answer ended before its first byte")
            }
            Failure::EmptyStream => {
                (502, "empty_stream", "the endpoint's stream ended without an event")
            }
            Failure::Malformed => {
                (502, "endpoint_malformed", "the endpoint's answer is not valid HTTP")
            }
            Failure::Timeout => (504, "endpoint_timeout", "the endpoint did not answer in time"),
        };
        let refusal =
            Refusal::new(status, code, Component::Endpoint, labels::Refusal::Internal, message);
        match (&self.target, status) {
            (Some(target), 503) => refusal.with_retry_after(target.pool.pace.retry_after(1, now)),
            _ => refusal,
        }
    }

    /// Books an error of ours as the answer.
    pub fn refused(&mut self, refusal: &Refusal, now: Timestamp) {
        self.status = refusal.status;
        self.error = Some((refusal.component, refusal.code));
        if self.target.is_none() {
            self.gateway.metrics.gateway().requests_refused.of(refusal.reason).inc();
        }
        self.finish(Ending::Refused, now);
    }

    /// Books the end. Only the first call counts.
    pub fn finish(&mut self, ending: Ending, now: Timestamp) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.close_books(ending, now);
        if ending == Ending::Complete
            && let (Some(reservation), Some(usage)) = (&mut self.reservation, self.watching.usage())
        {
            reservation.finished(u32::try_from(usage.completion_tokens).ok(), now);
        }
        self.reservation = None;
        self.retry_permit = None;
        self.gateway.give_back_hashes(std::mem::take(&mut self.hashes));
        self.gateway.metrics.gateway().requests_open.dec();
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.finished {
            self.finish(Ending::ClientGone, clock::now());
        }
    }
}

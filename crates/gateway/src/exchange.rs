//! One request from its head to its end, whatever carries it.
//!
//! The caller moves bytes and reports what happened; the exchange decides and keeps the books. It
//! can be dropped at any moment: credit is returned, and the request is booked as one whose client
//! left.

pub(crate) mod access;
mod accounts;
pub(crate) mod admitting;
mod answering;
mod booking;
mod books;
mod clustered;
mod copying;
mod delegated;
mod journey;
pub(crate) mod limited;
pub(crate) mod placement;
mod recorded;
mod rewriting;
mod telling;
#[cfg(test)]
mod tests;
mod watching;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use openai::{BodyKind, Route};
use prefix::templates::TemplateRef;
use prefix::{Belief, BlockHash};
use sched::{Outcome, Reservation, RetryPermit};
use telemetry::clock;
use telemetry::metrics::labels;
use types::{EndpointAddress, EndpointId, PoolName, Timestamp};

use crate::catalog::Target;
use crate::clusters::Lost;
use crate::pool::Secret;
use crate::refusal::{Component, Refusal};
use crate::request_id::RequestId;
use crate::rewrite::CopyPermit;
use crate::{Caller, Gateway, PoolMember, Wishes};
use admitting::Admitted;
pub use admitting::Placed;
use clustered::Clustered;
pub(crate) use clustered::Members;
pub use delegated::Subset;
use journey::Journey;
use limited::Limited;
pub use limited::RATE_LIMIT_FIELDS;
use placement::PromptView;
use rewriting::Rewritten;
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
    pub caller: Arc<Caller>,
    pub wishes: Wishes,
}

/// One request.
pub struct Exchange {
    gateway: Arc<Gateway>,
    meta: RequestMeta,
    bytes_in: u64,
    stream: bool,
    target: Option<Target>,
    /// The rule that gave it another model than the client's.
    rewritten: Option<Rewritten>,
    /// No rule may.
    keeps_model: bool,
    /// It is a copy of another request, by this leave.
    permit: Option<CopyPermit>,
    /// The only endpoints that may be chosen; `None`: all of the pool.
    subset: Option<Subset>,
    /// Endpoints to try, the best first, each with the prompt tokens that it does not hold yet.
    order: Vec<(PoolMember, u32)>,
    tried: usize,
    retried_for: Option<labels::Retry>,
    retry_permit: Option<RetryPermit>,
    prompt: PromptView,
    hashes: Vec<BlockHash>,
    /// What the endpoint that has the request was taken to hold of its prompt.
    belief: Belief,
    pick_took: Option<Duration>,
    /// Expected time to the first token on the first of [`Self::order`], from its dispatch.
    predicted: Option<Duration>,
    dispatched: Timestamp,
    /// Where the prompt was counted.
    template: Option<TemplateRef>,
    /// Answers that its endpoint wrote when its first token came, itself included.
    batch_at_first: f32,
    reservation: Option<Reservation>,
    /// Set where the pool has a queue.
    admitted: Option<Admitted>,
    /// Known where the pool has a queue.
    band: Option<labels::Band>,
    /// It names one that the document does not have.
    has_unknown_objective: bool,
    /// What it holds of the rate limits; `None`: there are none.
    limited: Option<Box<Limited>>,
    status: u16,
    watching: Watching,
    /// `None`: nobody asks for this request's times.
    journey: Option<Box<Journey>>,
    error: Option<(Component, &'static str)>,
    /// Why it was not served, for 429.
    dropped: Option<labels::Rejection>,
    finished: bool,
    /// Set at a router over clusters.
    clustered: Option<Box<Clustered>>,
}

/// Where to send the request now.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub endpoint: EndpointId,
    pub address: EndpointAddress,
    /// For the `Host` header.
    pub authority: String,
    pub h2c: bool,
    /// Value of `Authorization`, where the pool has its own.
    pub authorization: Option<Secret>,
    /// Resolves when the endpoint is given up: then nothing is to be waited for there.
    pub lost: Option<Lost>,
    /// Value of its `traceparent`; `None`: the client's passes.
    pub traceparent: Option<[u8; 55]>,
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
    /// Whoever had the request is given up, and nothing of an answer had come.
    Lost,
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
        Self::blank(gateway, meta)
    }

    fn blank(gateway: Arc<Gateway>, meta: RequestMeta) -> Self {
        Self {
            gateway,
            meta,
            bytes_in: 0,
            stream: false,
            target: None,
            rewritten: None,
            keeps_model: false,
            permit: None,
            subset: None,
            order: Vec::new(),
            tried: 0,
            retried_for: None,
            retry_permit: None,
            prompt: PromptView::default(),
            hashes: Vec::new(),
            belief: Belief::default(),
            pick_took: None,
            predicted: None,
            dispatched: Timestamp::ZERO,
            template: None,
            batch_at_first: 0.0,
            reservation: None,
            admitted: None,
            band: None,
            has_unknown_objective: false,
            limited: None,
            status: 0,
            watching: Watching::default(),
            journey: None,
            error: None,
            dropped: None,
            finished: false,
            clustered: None,
        }
    }

    pub fn id(&self) -> &RequestId {
        &self.meta.id
    }

    /// Who sent it.
    pub fn caller(&self) -> &Caller {
        &self.meta.caller
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

    /// Reads the body, finds the pool and chooses endpoints, if there is room.
    pub fn place(
        &mut self,
        body: &[u8],
        content_type: Option<&str>,
        now: Timestamp,
    ) -> Result<Placed, Refusal> {
        self.count_body(body);
        let said = self.read(body, content_type)?;
        self.check_named(&said)?;
        self.place_as(body, &said, now)
    }

    /// Finds the pool of a body that was read, and chooses endpoints, if there is room.
    pub fn place_as(
        &mut self,
        body: &[u8],
        said: &openai::Body,
        now: Timestamp,
    ) -> Result<Placed, Refusal> {
        self.stream = said.stream;
        self.body_is_here(now);
        let target = self.resolve(body, said)?;
        target.pool.metrics.requests_in_flight.inc();
        self.target = Some(target);
        self.note_objective();
        self.reserve_limits(said, now)?;
        self.admit(body, said, now)
    }

    /// Books the size of the body.
    pub fn count_body(&mut self, body: &[u8]) {
        self.bytes_in = body.len() as u64;
        self.gateway.metrics.gateway().request_bytes.add(self.bytes_in);
    }

    /// What a body says that came on this request's route.
    pub fn read(&self, body: &[u8], content_type: Option<&str>) -> Result<openai::Body, Refusal> {
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
        if self.reservation.is_none() {
            self.reserve_next(now);
        }
        self.order.get(self.tried)?;
        if let Some(reservation) = self.reservation.as_mut().filter(|_| !self.stream) {
            reservation.comes_whole();
        }
        self.tried += 1;
        self.begin_attempt(now);
        let (chosen, _) = &self.order[self.tried - 1];
        let member = &chosen.member;
        self.belief = self.gateway.index.record(member.endpoint.slot, &self.hashes);
        self.gateway.tell_peers(member.endpoint.slot, &self.hashes);
        self.dispatched = now;
        member.wake();
        self.note_sent();
        let lost = self.note_member();
        let (chosen, _) = self.order.get(self.tried - 1)?;
        let member = &chosen.member;
        chosen.gauges.picks.inc();
        Some(Attempt {
            endpoint: member.endpoint.id,
            address: member.endpoint.address.clone(),
            authority: member.authority.clone(),
            h2c: self.target.as_ref().is_some_and(|target| target.pool.settings.h2c),
            authorization: self.member_authorization().or_else(|| {
                self.target.as_ref().and_then(|of| of.pool.settings.authorization.clone())
            }),
            lost,
            traceparent: self.traceparent(),
        })
    }

    /// The attempt under way brought no answer.
    pub fn failed(&mut self, failure: Failure, now: Timestamp) -> Verdict {
        self.attempt_failed(failure, now);
        let (outcome, of_member) = match failure {
            Failure::Connect => (Outcome::ConnectFailure, fleet::Outcome::Unreachable),
            _ => (Outcome::Failure, fleet::Outcome::Failed),
        };
        if !self.tell_fleet(of_member, now) {
            self.judge(outcome, now);
        }
        self.reservation = None;
        let reason = match failure {
            Failure::Connect => Some(labels::Retry::Connect),
            Failure::Closed | Failure::CutBeforePayload | Failure::EmptyStream => {
                Some(labels::Retry::ClosedReused)
            }
            Failure::Lost => Some(labels::Retry::Lost),
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
        if !self.tell_answered(status, has_retry_after, now) {
            self.judge(outcome_of(status, has_retry_after), now);
        }
        if adapter_missing && let Some(current) = self.current() {
            current.member.doubt_models();
        }
        if (matches!(status, 429 | 502 | 503) || adapter_missing)
            && self.may_retry(labels::Retry::Unavailable, now)
        {
            self.reservation = None;
            self.attempt_answered(status, false, now);
            return Verdict::Retry;
        }
        self.attempt_answered(status, true, now);
        self.status = status;
        if let Some(current) = self.current() {
            current.member.answered.note(now);
        }
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
        // A router gives up a member that fails, which bounds what is repeated; a budget would lose the requests
        // that a lost cluster had all at once.
        let is_free = self.clustered.is_some() && reason != labels::Retry::Unavailable;
        let permit = match target.pool.pace.retry(target.pool.in_flight(), now) {
            None if !is_free => return false,
            permit => permit,
        };
        target.pool.metrics.retries.of(reason).inc();
        self.retried_for = Some(reason);
        self.retry_permit = permit;
        self.note_failover();
        true
    }

    fn current(&self) -> Option<&PoolMember> {
        self.order.get(self.tried.checked_sub(1)?).map(|(member, _)| member)
    }

    /// What was foreseen for the endpoint that has the request; nothing for a substitute, whose state
    /// may be another by now.
    fn predicted(&self) -> Option<Duration> {
        self.predicted.filter(|_| self.tried == 1)
    }

    /// Time from receiving the request to its first token; `None` where it is no stream.
    fn ttft(&self) -> Option<Duration> {
        let first = self.watching.first_token.filter(|_| self.stream);
        first.map(|first| first.since(self.meta.received))
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
            Failure::Lost => (502, "member_lost", "the member fell silent before it answered"),
        };
        let reason = labels::Refusal::Internal;
        let refusal = match self.member_name() {
            None => Refusal::new(status, code, Component::Endpoint, reason, message),
            Some(member) => {
                let message = format!("member `{member}`: {message}");
                Refusal::new(status, code, Component::Member, reason, message).with_member(member)
            }
        };
        match (&self.target, status) {
            (Some(target), 503) => refusal.with_retry_after(target.pool.pace.retry_after(1, now)),
            _ => refusal,
        }
    }

    /// Books an error of ours as the answer.
    pub fn refused(&mut self, refusal: &Refusal, now: Timestamp) {
        self.status = refusal.status;
        self.error = Some((refusal.component, refusal.code));
        self.dropped = refusal.dropped;
        if self.target.is_none() && !self.is_copy() {
            self.gateway.metrics.gateway().requests_refused.of(refusal.reason).inc();
        }
        self.finish(Ending::Refused, now);
    }

    /// Books the end. Only the first call counts.
    pub fn finish(&mut self, ending: Ending, now: Timestamp) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if let Some(permit) = self.permit.take() {
            self.finish_copy(&permit, ending, now);
        } else {
            self.settle_limits(ending, now);
            let outcome = self.close_books(ending, now);
            self.settle_rewrite(ending, outcome, now);
            self.write_down(outcome, now);
            self.gateway.metrics.gateway().requests_open.dec();
        }
        if ending == Ending::Complete
            && let (Some(reservation), Some(usage)) = (&mut self.reservation, self.watching.usage())
        {
            reservation.finished(u32::try_from(usage.completion_tokens).ok(), now);
        }
        self.leave_member(ending, now);
        self.reservation = None;
        self.retry_permit = None;
        self.leave(now);
        self.gateway.give_back_hashes(std::mem::take(&mut self.hashes));
    }
}

/// What a status says of the endpoint's health.
fn outcome_of(status: u16, has_retry_after: bool) -> Outcome {
    match status {
        502 | 504 => Outcome::Failure,
        // With `Retry-After` the engine refuses more work; that is no sign of illness.
        503 if !has_retry_after => Outcome::Failure,
        // Engines answer 500 to requests that are wrong in ways they did not foresee.
        429 | 500.. => Outcome::Neutral,
        _ => Outcome::Success,
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.finished {
            self.finish(Ending::ClientGone, clock::now());
        }
    }
}

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
mod trying;
mod watching;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use openai::{BodyKind, Route};
use prefix::templates::TemplateRef;
use prefix::{Belief, BlockHash};
use sched::{Reservation, RetryPermit};
use telemetry::clock;
use telemetry::metrics::labels;
use types::{PoolName, Timestamp};

use crate::catalog::Target;
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
pub use trying::{Attempt, Failure, Verdict};
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

    /// Seconds for the `Retry-After` of an endpoint's 429 or 503, in the place of its own: where it came without
    /// one, or where another member that refused the request wants less waited.
    pub fn retry_after_instead(&self, has_one: bool) -> Option<u64> {
        if !matches!(self.status, 429 | 503) {
            return None;
        }
        if has_one {
            return (self.tried > 1)
                .then(|| self.least_wait())?
                .map(|least| least.as_secs().max(1));
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

    /// What a forwarded answer looks like, before its first payload.
    pub fn watch(&mut self, content_type: Option<&str>) {
        self.watching.begin(self.meta.route, self.status, content_type);
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

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.finished {
            self.finish(Ending::ClientGone, clock::now());
        }
    }
}

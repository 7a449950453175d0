//! Trying endpoints one after the other, until one answers or none may be asked any more.

use std::time::Duration;

use sched::Outcome;
use telemetry::metrics::labels;
use types::{EndpointAddress, EndpointId, Timestamp};

use super::Exchange;
use crate::clusters::Lost;
use crate::pool::Secret;
use crate::refusal::{Component, Refusal};

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

impl Exchange {
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
    ///
    /// * `retry_after`: what the endpoint wants waited, zero if that is no number of seconds.
    pub fn answered(
        &mut self,
        status: u16,
        retry_after: Option<Duration>,
        now: Timestamp,
    ) -> Verdict {
        let adapter_missing =
            status == 404 && self.target.as_ref().is_some_and(|target| target.adapter.is_some());
        if !self.tell_answered(status, retry_after, now) {
            self.judge(outcome_of(status, retry_after.is_some()), now);
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

    /// Tells the endpoint's ejection what came of the attempt.
    pub(super) fn judge(&self, outcome: Outcome, now: Timestamp) {
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

    pub(super) fn failure_refusal(&self, failure: Failure, now: Timestamp) -> Refusal {
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
            (Some(target), 503) => {
                let usual = target.pool.pace.retry_after(1, now);
                refusal.with_retry_after(self.least_wait().map_or(usual, |least| least.min(usual)))
            }
            _ => refusal,
        }
    }
}

/// What a status says of the endpoint's health.
pub(super) fn outcome_of(status: u16, has_retry_after: bool) -> Outcome {
    match status {
        502 | 504 => Outcome::Failure,
        // With `Retry-After` the engine refuses more work; that is no sign of illness.
        503 if !has_retry_after => Outcome::Failure,
        // Engines answer 500 to requests that are wrong in ways they did not foresee.
        429 | 500.. => Outcome::Neutral,
        _ => Outcome::Success,
    }
}

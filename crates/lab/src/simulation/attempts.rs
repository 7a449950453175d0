//! A request's way to an endpoint, and what happens when one fails: the product's rules.
//!
//! A connect failure leads to the next endpoint of the list, as long as there is one; any other
//! failure before an answer does so once. Both need leave of the retry budget. After the first token
//! a failure is final. Source: `gateway::Exchange`.

use prefix::Belief;
use sched::{Outcome, Reservation, RetryPermit};
use types::Timestamp;

use super::{Event, Simulation};
use crate::endpoint::Pending;
use crate::gateway;
use crate::measure::Fate;
use crate::policy::{Choice, Truth};

/// Endpoints that a request may be sent to, the chosen one and its substitutes.
const ORDER_MAX: usize = 4;

/// Why an attempt brought no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// No connection came about.
    Connect,
    /// The connection ended before an answer.
    Closed,
    /// The answer was 503.
    Shed,
    /// The answer was 400: the prompt does not fit.
    Refused,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) gateway: u16,
    order: Vec<Choice>,
    tried: usize,
    retried_for: Option<Failure>,
    permit: Option<RetryPermit>,
    pub(super) reservation: Option<Reservation>,
    belief: Belief,
}

impl Ticket {
    /// Where it is now.
    fn current(&self) -> Option<usize> {
        self.order.get(self.tried.checked_sub(1)?).map(|choice| choice.endpoint)
    }
}

impl Simulation<'_> {
    pub(super) fn arrive(&mut self, request: u32, now: Timestamp) {
        if let Some(next) = self.requests.get(request as usize + 1) {
            self.order(next.at, Event::Arrival { request: request + 1 });
        }
        if self.door.is_some() { self.knock(request, now) } else { self.place(request, now) }
    }

    /// Lets the policy choose and sends.
    pub(super) fn place(&mut self, request: u32, now: Timestamp) {
        let mut ticket = Ticket {
            gateway: self.gateway_of(request),
            order: Vec::new(),
            tried: 0,
            retried_for: None,
            permit: None,
            reservation: None,
            belief: Belief::default(),
        };
        self.choose(request, &mut ticket, now);
        if ticket.order.is_empty() {
            self.records[request as usize].fate = Fate::Refused;
            self.open -= 1;
            return;
        }
        self.send(request, ticket, now);
    }

    /// Asks the policy, and leaves out where the request failed already.
    fn choose(&mut self, request: u32, ticket: &mut Ticket, now: Timestamp) {
        let mut excluded: Vec<_> =
            ticket.order.iter().map(|choice| gateway::id(choice.endpoint)).collect();
        if excluded.is_empty() {
            self.exclude_full(&mut excluded, now);
        }
        let truth = Truth { endpoints: &self.endpoints, progress: &self.progress };
        let asked = &self.requests[request as usize];
        let gateway = &mut self.gateways[usize::from(ticket.gateway)];
        gateway.choose(request, asked, &excluded, now, &truth, &mut ticket.order);
    }

    /// Sends to the next endpoint of the list, which must have one.
    fn send(&mut self, request: u32, mut ticket: Ticket, now: Timestamp) {
        let choice = ticket.order[ticket.tried];
        ticket.tried += 1;
        let asked = &self.requests[request as usize];
        let sent = self.gateways[usize::from(ticket.gateway)].send(request, asked, choice, now);
        let endpoint = choice.endpoint as u32;
        let record = &mut self.records[request as usize];
        record.endpoint = Some(choice.endpoint);
        record.attempts += 1;
        let prompt_tokens = self.progress[request as usize].prompt_tokens;
        self.endpoints[choice.endpoint].pending.push(Pending {
            request,
            prompt_tokens,
            left: prompt_tokens.saturating_sub(choice.held_tokens),
            is_delivered: false,
            is_admitted: false,
        });
        self.order(now + self.settings.network, Event::Delivery { request, endpoint });
        if let Some(due) = sent.scrape_at {
            self.order(due, Event::ScrapeBegin { gateway: ticket.gateway, endpoint });
        }
        ticket.reservation = Some(sent.reservation);
        ticket.belief = sent.belief;
        self.tickets[request as usize] = Some(ticket);
    }

    /// The gateway learns that an attempt failed.
    pub(super) fn fail(&mut self, request: u32, failure: Failure, now: Timestamp) {
        let Some(mut ticket) = self.tickets[request as usize].take() else { return };
        if let Some(reservation) = ticket.reservation.take() {
            let outcome = match failure {
                Failure::Connect => Outcome::ConnectFailure,
                Failure::Closed | Failure::Shed => Outcome::Failure,
                Failure::Refused => Outcome::Neutral,
            };
            reservation.state().record_outcome(outcome, now);
        }
        if let Some(endpoint) = ticket.current() {
            self.endpoints[endpoint].drop_pending(request);
            self.gateways[usize::from(ticket.gateway)].ended(endpoint, request);
        }
        if self.may_retry(request, &mut ticket, failure, now) {
            self.send(request, ticket, now);
        } else {
            self.records[request as usize].fate = Fate::Failed;
            self.open -= 1;
            self.leave(request, now);
        }
    }

    fn may_retry(
        &mut self,
        request: u32,
        ticket: &mut Ticket,
        failure: Failure,
        now: Timestamp,
    ) -> bool {
        let is_allowed = match failure {
            Failure::Connect => true,
            Failure::Closed | Failure::Shed => {
                ticket.retried_for.is_none_or(|earlier| earlier == Failure::Connect)
            }
            Failure::Refused => false,
        };
        if !is_allowed || ticket.tried >= ORDER_MAX {
            return false;
        }
        // Profiles named their substitutes at once; the others are asked now.
        if ticket.tried >= ticket.order.len() && !self.policy.names_substitutes() {
            self.choose(request, ticket, now);
        }
        if ticket.tried >= ticket.order.len() {
            return false;
        }
        let gateway = &self.gateways[usize::from(ticket.gateway)];
        // This request's own reservation is given back already.
        let Some(permit) = gateway.retries.take(gateway.in_flight() + 1, now) else { return false };
        ticket.permit = Some(permit);
        ticket.retried_for = Some(failure);
        true
    }

    /// The gateway sees the first token.
    pub(super) fn see_first_token(&mut self, request: u32, now: Timestamp) {
        if let Some(ticket) = &mut self.tickets[request as usize]
            && let Some(reservation) = &mut ticket.reservation
        {
            reservation.state().record_outcome(Outcome::Success, now);
            reservation.first_token(now);
        }
        self.note_answer(request, now);
    }

    /// The gateway sees the end of the answer, or that it ended too early.
    pub(super) fn see_end(&mut self, request: u32, is_whole: bool, now: Timestamp) {
        let Some(mut ticket) = self.tickets[request as usize].take() else { return };
        if let Some(reservation) = &mut ticket.reservation
            && is_whole
        {
            let tokens = self.requests[request as usize].answer.tokens;
            reservation.finished(Some(tokens), now);
        }
        if !is_whole {
            self.records[request as usize].fate = Fate::Cut;
        }
        if let Some(endpoint) = ticket.current() {
            let gateway = &mut self.gateways[usize::from(ticket.gateway)];
            gateway.ended(endpoint, request);
            if is_whole {
                let record = &self.records[request as usize];
                let (prompt, cached) = (record.prompt_tokens, record.cached_tokens);
                let block_size = self.endpoints[endpoint].engine.spec().block_size;
                gateway.correct(endpoint, &ticket.belief, prompt, cached, block_size);
            }
        }
        self.open -= 1;
        self.leave(request, now);
    }
}

//! A request that somebody else carries: we choose, another proxy connects and retries.
//!
//! That proxy gets the whole list at once, walks it by its own rules and tells us afterwards which
//! endpoint answered.

use sched::{Candidate, Outcome};
use telemetry::metrics::labels;
use types::{EndpointId, Timestamp};

use super::Exchange;
use super::placement::WAIT_FOR_ENDPOINTS;
use super::trying::outcome_of;
use crate::catalog::Target;
use crate::pool::Pool;
use crate::refusal::{Component, Refusal};
use crate::{Member, PoolMember};

/// The only endpoints that a request may go to.
#[derive(Clone, Debug, Default)]
pub struct Subset(Vec<EndpointId>);

impl Subset {
    /// Drops the candidates outside; an error when none is left.
    pub(super) fn keep(&self, pool: &Pool, candidates: &mut Vec<Candidate>) -> Result<(), Refusal> {
        candidates.retain(|candidate| self.0.binary_search(&candidate.endpoint).is_ok());
        if !candidates.is_empty() {
            return Ok(());
        }
        Err(Refusal::new(
            503,
            "no_endpoints",
            Component::Picker,
            labels::Refusal::Overloaded,
            format!("pool `{}` has no endpoint in the subset that the proxy allows", pool.name),
        )
        .with_retry_after(WAIT_FOR_ENDPOINTS))
    }
}

impl FromIterator<EndpointId> for Subset {
    fn from_iter<T: IntoIterator<Item = EndpointId>>(endpoints: T) -> Self {
        let mut endpoints: Vec<_> = endpoints.into_iter().collect();
        endpoints.sort_unstable();
        Self(endpoints)
    }
}

impl Exchange {
    /// Restricts the choice. To be called before [`Self::place`].
    pub fn restrict(&mut self, subset: Subset) {
        self.subset = Some(subset);
    }

    /// What the request's model name stands for. Known after [`Self::place`].
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The endpoints to try, the best first. Known after [`Self::place`].
    pub fn choices(&self) -> impl Iterator<Item = &Member> {
        self.order.iter().map(|(chosen, _)| &*chosen.member)
    }

    /// Another endpoint than the chosen one answered: it gets the credit, and the chosen one is
    /// taken to have refused the connection.
    ///
    /// Nothing happens when the endpoint is the chosen one, or none of the pool.
    pub fn served_by(&mut self, endpoint: EndpointId, now: Timestamp) {
        let Some(chosen) = self.current() else { return };
        let serves = |member: &PoolMember| member.member.endpoint.id == endpoint;
        if serves(chosen) {
            return;
        }
        let at = match self.order.iter().position(|(member, _)| serves(member)) {
            Some(at) => at,
            None => {
                let pool = self.target.as_ref().map(|target| &target.pool);
                let Some(member) = pool.and_then(|pool| pool.member(endpoint)) else { return };
                let uncached_tokens = self.order.first().map_or(0, |(_, tokens)| *tokens);
                self.order.push((member.clone(), uncached_tokens));
                self.order.len() - 1
            }
        };
        self.judge(Outcome::ConnectFailure, now);
        self.reservation = None;
        self.tried = at;
        self.attempt(now);
        self.move_attempt();
    }

    /// The answer that the other proxy passes on, whatever we would have done with it.
    pub fn answered_finally(&mut self, status: u16, has_retry_after: bool, now: Timestamp) {
        // The client has its head: nothing can be called back any more.
        self.note_answered();
        self.judge(outcome_of(status, has_retry_after), now);
        if status == 404
            && self.target.as_ref().is_some_and(|target| target.adapter.is_some())
            && let Some(current) = self.current()
        {
            current.member.doubt_models();
        }
        self.attempt_answered(status, true, now);
        self.status = status;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, body, exchange, in_flight, pool_of};

    fn placed(gateway: &std::sync::Arc<crate::Gateway>) -> Exchange {
        let mut exchange = exchange(gateway);
        exchange.place(&body("llama"), None, at(0)).unwrap();
        exchange
    }

    #[test]
    fn a_subset_is_never_left() {
        let gateway = pool_of(4);
        let only = gateway.members()[2].endpoint.id;
        for _ in 0..20 {
            let mut exchange = exchange(&gateway);
            exchange.restrict([only].into_iter().collect());
            exchange.place(&body("llama"), None, at(0)).unwrap();
            let chosen: Vec<_> = exchange.choices().map(|member| member.endpoint.id).collect();
            assert_eq!(chosen, [only]);
        }
    }

    #[test]
    fn an_empty_subset_is_503() {
        let gateway = pool_of(2);
        let mut exchange = exchange(&gateway);
        exchange.restrict(Subset::default());
        let refusal = exchange.place(&body("llama"), None, at(0)).unwrap_err();
        assert_eq!((refusal.status, refusal.code), (503, "no_endpoints"));
    }

    #[test]
    fn credit_moves_to_the_endpoint_that_answered() {
        let gateway = pool_of(3);
        let mut exchange = placed(&gateway);
        let order: Vec<_> = exchange.choices().map(|member| member.endpoint.id).collect();
        exchange.attempt(at(0)).unwrap();
        exchange.served_by(order[1], at(0));
        let in_flight_at = |id| {
            let members = gateway.members();
            let member = members.iter().find(|member| member.endpoint.id == id).unwrap();
            member.state.in_flight()
        };
        assert_eq!((in_flight_at(order[0]), in_flight_at(order[1])), (0, 1));
        drop(exchange);
        assert_eq!(in_flight(&gateway), 0);
    }

    #[test]
    fn an_endpoint_that_was_not_on_the_list_gets_the_credit_too() {
        let gateway = pool_of(6);
        let mut exchange = placed(&gateway);
        let order: Vec<_> = exchange.choices().map(|member| member.endpoint.id).collect();
        let other = gateway.members().into_iter().find(|m| !order.contains(&m.endpoint.id));
        let other = other.unwrap();
        exchange.attempt(at(0)).unwrap();
        exchange.served_by(other.endpoint.id, at(0));
        assert_eq!(other.state.in_flight(), 1);
        assert_eq!(in_flight(&gateway), 1);
    }
}

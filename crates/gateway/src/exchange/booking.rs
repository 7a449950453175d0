//! Credit on an endpoint, where a document bounds how many requests it may have at once.
//!
//! Two requests that look at the same instant see the same room. So whoever has chosen an endpoint with room
//! books it under its bound, and looks again if another was faster.

use sched::Candidate;
use types::Timestamp;

use super::Exchange;
use crate::catalog::Target;

impl Exchange {
    /// Books the request on the best endpoint, which was seen as `best`. `false`: it has filled meanwhile.
    ///
    /// Without a bound there is nothing to be fast for: [`Self::attempt`] books. So it is where the best is
    /// full and was chosen all the same. Whoever is too late was so because another was not: this ends.
    pub(super) fn claim(&mut self, target: &Target, best: &Candidate, now: Timestamp) -> bool {
        let Some(most) = target.pool.settings.saturation.in_flight else { return true };
        if best.in_flight >= most {
            return true;
        }
        let Some((chosen, uncached_tokens)) = self.order.first() else { return true };
        let state = &chosen.member.state;
        self.reservation = state.reserve_within(most, *uncached_tokens, target.adapter, now);
        let is_booked = self.reservation.is_some();
        if is_booked {
            self.note_claimed();
        }
        is_booked
    }

    /// Books the request on the next endpoint. One that is tried again goes, of those that are left, to the
    /// first that has room; to the first of all if none has.
    pub(super) fn reserve_next(&mut self, now: Timestamp) {
        let Some(target) = &self.target else { return };
        let is_retry = self.retried_for.is_some();
        let most = target.pool.settings.saturation.in_flight.filter(|_| is_retry);
        let left = self.order.iter().enumerate().skip(self.tried);
        let roomy = most.and_then(|most| {
            left.clone().find_map(|(at, (member, tokens))| {
                let state = &member.member.state;
                Some((at, state.reserve_within(most, *tokens, target.adapter, now)?))
            })
        });
        let booked = roomy.or_else(|| {
            let (at, (member, tokens)) = left.clone().next()?;
            Some((at, member.member.state.reserve_with(*tokens, target.adapter, now)))
        });
        if let Some((at, reservation)) = booked {
            self.order.swap(self.tried, at);
            self.reservation = Some(reservation);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;
    use crate::testing::{at, body, exchange, gateway};
    use crate::{Failure, Gateway, Verdict};

    /// A pool of endpoints that take one request each.
    fn pool(endpoints: usize, more: &str) -> Arc<Gateway> {
        let urls: Vec<_> =
            (1..=endpoints).map(|n| format!("{{ url: 'http://10.0.0.{n}:8000' }}")).collect();
        gateway(&format!(
            "  schedulers: [{{ name: chat, modelName: llama, saturation: {{ concurrency: 1 }}, endpoints: [{}] }}]\n{more}",
            urls.join(", ")
        ))
    }

    fn placed(gateway: &Arc<Gateway>) -> Exchange {
        let mut exchange = exchange(gateway);
        exchange.place(&body("llama"), None, at(0)).unwrap();
        exchange
    }

    fn in_flight(gateway: &Gateway) -> Vec<u32> {
        gateway.members().iter().map(|member| member.state.in_flight()).collect()
    }

    #[test]
    fn who_has_looked_has_booked_before_another_looks() {
        let gateway = pool(2, "  flowControl: {}\n");
        for _ in 0..50 {
            let mut both = [placed(&gateway), placed(&gateway)];
            both.iter_mut().for_each(|exchange| drop(exchange.attempt(at(0)).unwrap()));
            assert_eq!(in_flight(&gateway), [1, 1]);
        }
    }

    #[test]
    fn requests_of_many_threads_never_exceed_what_an_endpoint_may_have() {
        const THREADS: usize = 4;
        for more in ["  flowControl: {}\n", ""] {
            let gateway = pool(THREADS, more);
            let (ready, over) = (Barrier::new(THREADS), Barrier::new(THREADS));
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            ready.wait();
                            let mut exchange = placed(&gateway);
                            exchange.attempt(at(0)).unwrap();
                            over.wait();
                            let each = in_flight(&gateway);
                            assert!(each.iter().all(|here| *here == 1), "{each:?} {more}");
                            ready.wait();
                            drop(exchange);
                            over.wait();
                        }
                    });
                }
            });
        }
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_before_it_is_sent_lets_the_next_go() {
        let gateway = pool(1, "  flowControl: {}\n");
        let first = placed(&gateway);
        let mut second = exchange(&gateway);
        let crate::Placed::Waits(turn) = second.place(&body("llama"), None, at(0)).unwrap() else {
            panic!("there was room")
        };
        drop(first);
        let come = tokio::time::timeout(std::time::Duration::from_secs(5), turn.come());
        assert!(come.await.expect("it has its turn").is_ok());
    }

    #[test]
    fn a_retry_goes_to_a_substitute_with_room_before_one_that_filled_meanwhile() {
        for _ in 0..20 {
            let gateway = pool(3, "");
            let mut exchange = placed(&gateway);
            let first = exchange.attempt(at(0)).unwrap().endpoint;
            let order: Vec<_> = exchange.choices().map(|member| member.endpoint.id).collect();
            let members = gateway.members();
            let second = members.iter().find(|member| member.endpoint.id == order[1]).unwrap();
            let _other = second.state.reserve(10, at(0));
            assert_eq!(exchange.failed(Failure::Connect, at(0)), Verdict::Retry);
            let retried = exchange.attempt(at(0)).unwrap().endpoint;
            assert_eq!((order[0], order[2]), (first, retried));
        }
    }
}

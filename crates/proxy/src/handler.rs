//! What stands behind a listener.

use std::net::SocketAddr;

use bytes::Bytes;

use crate::answer::Answer;
use crate::head::{RequestHead, Turned};
use crate::timer::Timer;

/// A request whose head was let in: how much of a body to read for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyPlan {
    /// Longest body in bytes; 0: the request must have none.
    pub(crate) bytes_max: usize,
}

/// Answers requests. Traffic and administration are two of them, the HTTP versions their callers.
pub(crate) trait Handler: 'static {
    /// What `plan` found out and `answer` needs.
    type Ticket;

    /// Judges a request by its head alone, before any of its body is read.
    fn plan(
        &self,
        head: &RequestHead,
        client: SocketAddr,
    ) -> Result<(BodyPlan, Self::Ticket), Answer>;

    /// Answers a request with its whole body. Dropped when the client leaves.
    async fn answer(
        &self,
        ticket: Self::Ticket,
        head: RequestHead,
        body: Bytes,
        timer: &mut Timer,
    ) -> Answer;

    /// The answer to a request that was turned away: by the gate, or while its body was read, in
    /// which case it has a ticket.
    fn turned(&self, turned: &Turned, ticket: Option<Self::Ticket>, client: SocketAddr) -> Answer;
}

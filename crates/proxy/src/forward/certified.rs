//! Traffic of one connection whose client has shown a certificate.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use gateway::Certificate;

use super::{Ticket, Traffic};
use crate::answer::Answer;
use crate::handler::{BodyPlan, Handler};
use crate::head::{RequestHead, Turned};
use crate::timer::Timer;

/// [`Traffic`] that knows who is at the other end.
pub(crate) struct Certified {
    pub(crate) traffic: Rc<Traffic>,
    pub(crate) certificate: Certificate,
}

impl Handler for Certified {
    type Ticket = Ticket;

    fn plan(&self, head: &RequestHead, client: SocketAddr) -> Result<(BodyPlan, Ticket), Answer> {
        self.traffic.plan_for(head, client, Some(&self.certificate))
    }

    async fn answer(
        &self,
        ticket: Ticket,
        head: RequestHead,
        body: Bytes,
        timer: &mut Timer,
    ) -> Answer {
        self.traffic.answer(ticket, head, body, timer).await
    }

    fn turned(&self, turned: &Turned, ticket: Option<Ticket>, client: SocketAddr) -> Answer {
        self.traffic.turned(turned, ticket, client)
    }
}

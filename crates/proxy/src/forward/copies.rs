//! Copies of requests to a mirror's model. Nobody waits for them and nobody reads their answers.

use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use gateway::{Ending, Exchange};
use telemetry::clock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Traffic, too_many_bytes};
use crate::fields::Class;
use crate::head::RequestHead;
use crate::relay::{Relay, Step};
use crate::timer::Timer;

/// Copies that may wait for their task; how many may be under way is the rule's to say.
const WAITING_MAX: usize = 1024;

/// A request that is sent once more.
pub(super) struct Job {
    exchange: Exchange,
    head: RequestHead,
    /// As the client sent it.
    body: Bytes,
}

pub(super) fn channel() -> (mpsc::Sender<Job>, mpsc::Receiver<Job>) {
    mpsc::channel(WAITING_MAX)
}

impl Traffic {
    /// Hands a copy of the request over, if its rule wants one.
    pub(super) fn copy(&self, exchange: &Exchange, head: &RequestHead, body: &Bytes) {
        let Some(copy) = exchange.copy(body, self.memory_bytes) else { return };
        let job = Job { exchange: copy, head: head.clone(), body: body.clone() };
        if let Err(mpsc::error::TrySendError::Full(mut job)) = self.copies.try_send(job) {
            job.exchange.refused(&too_many_bytes(), clock::now());
        }
    }

    /// Sends the copies of this thread's requests, as long as it is polled.
    pub(crate) async fn send_copies(self: Rc<Self>) {
        let Some(mut jobs) = self.copies_to_send.take() else { return };
        let mut under_way = JoinSet::new();
        loop {
            tokio::select! {
                job = jobs.recv() => {
                    let Some(job) = job else { return };
                    under_way.spawn_local(self.clone().send_copy(job));
                }
                Some(_) = under_way.join_next() => {}
            }
        }
    }

    async fn send_copy(self: Rc<Self>, job: Job) {
        let Job { mut exchange, mut head, body } = job;
        let mut timer = Timer::default();
        let content_type = head.fields.get_str(Class::ContentType);
        let placed = exchange.place_copy(&body, content_type, clock::now());
        let body = match placed {
            Ok(Some(body)) => body,
            Ok(None) => return,
            Err(refusal) => return exchange.refused(&refusal, clock::now()),
        };
        head.fields.remove("accept-encoding");
        let begun = match self.forward(&mut exchange, &head, &body, &mut timer).await {
            Ok(begun) => begun,
            Err(refusal) => return exchange.refused(&refusal, clock::now()),
        };
        if begun.source.ended() && !exchange.stream_is_unfinished() {
            return exchange.finish(Ending::Complete, clock::now());
        }
        let times = self.stream_times(&exchange);
        let mut relay = Relay::new(begun.source, exchange, Bytes::new(), times, None);
        std::future::poll_fn(|cx| {
            loop {
                match relay.poll(cx, &mut timer, |_, _, _| {}) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Step::Payload) => {}
                    Poll::Ready(Step::End | Step::Broken) => return Poll::Ready(()),
                }
            }
        })
        .await;
    }
}

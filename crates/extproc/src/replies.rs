//! A conversation on its gRPC stream.
//!
//! A message is read when all answers to the one before are on their way, so a proxy that does not
//! read does not make us hold more than one request.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use telemetry::clock;
use telemetry::metrics::labels::StreamEnd;
use tokio::sync::watch;
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::Status;

use crate::conversation::{Conversation, Next, Violation};
use crate::server::Phase;
use crate::tally::Tally;
use crate::wire::{ProcessingRequest, ProcessingResponse};

/// Answers to a stream of messages.
pub(crate) struct Replies<S> {
    inbound: S,
    conversation: Conversation,
    out: VecDeque<ProcessingResponse>,
    is_over: bool,
    /// Set while a request is arriving and has to be waited for.
    timer: Option<Pin<Box<Sleep>>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    tally: Tally,
}

impl<S> Replies<S> {
    pub(crate) fn new(
        inbound: S,
        conversation: Conversation,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let cut = Box::pin(over(phase));
        let tally = Tally::new(conversation.picker());
        let out = VecDeque::new();
        Self { inbound, conversation, out, is_over: false, timer: None, cut, tally }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.conversation.deadline() else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| {
            let left: Duration = deadline.since(clock::now());
            Box::pin(tokio::time::sleep(left))
        });
        timer.as_mut().poll(cx)
    }
}

/// Resolves when the drain time is over.
async fn over(mut phase: watch::Receiver<Phase>) {
    if phase.wait_for(|phase| *phase == Phase::Over).await.is_err() {
        // Whoever could give the order is gone; it will not come.
        std::future::pending::<()>().await;
    }
}

impl<S> Stream for Replies<S>
where
    S: Stream<Item = Result<ProcessingRequest, Status>> + Unpin,
{
    type Item = Result<ProcessingResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(response) = this.out.pop_front() {
                this.tally.sent(&response);
                return Poll::Ready(Some(Ok(response)));
            }
            if this.is_over {
                return Poll::Ready(None);
            }
            let next = match Pin::new(&mut this.inbound).poll_next(cx) {
                Poll::Ready(Some(Ok(message))) => {
                    this.conversation.receive(message, clock::now(), &mut this.out)
                }
                Poll::Ready(None) => {
                    this.tally.closed(this.conversation.is_complete());
                    this.conversation.closed(clock::now());
                    Ok(Next::Close)
                }
                Poll::Ready(Some(Err(status))) => {
                    // Reset by the proxy, or a message that is too long or no protobuf.
                    this.is_over = true;
                    this.tally.closed(this.conversation.is_complete());
                    this.conversation.closed(clock::now());
                    return Poll::Ready(Some(Err(status)));
                }
                Poll::Pending
                    if let Poll::Ready(next) = this.conversation.poll_called(cx, &mut this.out) =>
                {
                    Ok(next)
                }
                Poll::Pending if this.poll_deadline(cx).is_ready() => {
                    Ok(this.conversation.expired(clock::now(), &mut this.out))
                }
                Poll::Pending if this.cut.as_mut().poll(cx).is_ready() => {
                    this.is_over = true;
                    this.tally.ended(StreamEnd::Drained);
                    this.conversation.cut(clock::now());
                    let status = Status::unavailable("the endpoint picker is shutting down");
                    return Poll::Ready(Some(Err(status)));
                }
                Poll::Pending => return Poll::Pending,
            };
            match next {
                Ok(Next::Read) => {}
                Ok(Next::Close) => {
                    this.is_over = true;
                    this.tally.ended(StreamEnd::RequestOnly);
                }
                Err(violation) => {
                    this.is_over = true;
                    this.tally.ended(StreamEnd::Violation);
                    tracing::warn!(%violation, "a proxy's stream does not follow the protocol");
                    return Poll::Ready(Some(Err(violation.into())));
                }
            }
        }
    }
}

impl<S> Drop for Replies<S> {
    /// A proxy that resets the stream is not heard of otherwise.
    fn drop(&mut self) {
        self.tally.closed(self.conversation.is_complete());
    }
}

impl From<Violation> for Status {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::OutOfOrder { .. } | Violation::Empty => {
                Self::invalid_argument(violation.to_string())
            }
            Violation::Unsupported(_) => Self::failed_precondition(violation.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ProcessingRequest as Message;

    #[test]
    fn an_idle_stream_costs_little_besides_its_buffers() {
        type Inbound = tokio_stream::Pending<Result<Message, Status>>;
        let bytes = size_of::<Replies<Inbound>>();
        assert!(bytes <= 2048, "{bytes} bytes");
    }
}

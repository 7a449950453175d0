//! One timer for all the deadlines of a connection.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// A timer that is armed at most rarely.
///
/// Each phase of a request has its deadline, but nearly all end early. So the timer stays armed at
/// the earliest moment asked for; when it fires it looks at the deadline in force, and arms itself
/// again if that lies ahead. Moving a deadline back costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready once `deadline` has passed. Otherwise the task is woken then, or earlier.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    /// Runs `future`, but not past `deadline`.
    pub(crate) async fn within<F: Future>(
        &mut self,
        deadline: Instant,
        future: F,
    ) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            self.poll(cx, deadline).map(|()| None)
        })
        .await
    }
}

/// The moment `after` from now; far ahead for a span that overflows.
pub(crate) fn deadline_in(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(60 * 60 * 24 * 365))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_moved_back_does_not_fire_at_the_old_one() {
        let mut timer = Timer::default();
        let start = Instant::now();
        std::future::poll_fn(|cx| {
            let _ = timer.poll(cx, start + Duration::from_secs(1));
            Poll::Ready(())
        })
        .await;
        std::future::poll_fn(|cx| timer.poll(cx, start + Duration::from_secs(5))).await;
        assert_eq!(start.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_that_is_too_slow_is_given_up() {
        let mut timer = Timer::default();
        let never = std::future::pending::<()>();
        assert!(timer.within(deadline_in(Duration::from_secs(1)), never).await.is_none());
    }
}

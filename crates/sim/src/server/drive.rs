//! Runs an engine in real time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use types::Timestamp;

use super::{Core, Shared};
use crate::engine::Event;

/// Runs the step loop for ever. A step ends at an absolute deadline and the next one begins at
/// that deadline, so timer delays do not add up.
pub(crate) async fn drive(server: Shared) {
    let mut events = Vec::new();
    let mut last_end = Timestamp::ZERO;
    let mut was_busy = false;
    loop {
        let woken = server.wake.notified();
        let (step, begun, deaths) = {
            let mut core = server.core();
            let now = server.clock.now();
            let begun = if was_busy { last_end } else { now.max(last_end) };
            let mut step = core.engine.step(begun);
            let mut at = begun;
            if step.is_none() && begun < now {
                // Caught up: whoever came in meanwhile starts now, not at the last deadline.
                step = core.engine.step(now);
                at = now;
            }
            if step.is_none() {
                core.publish(now, server.clock.wall());
            }
            (step, at, core.deaths)
        };
        match step {
            Some(step) => {
                was_busy = true;
                last_end = begun + step.duration;
                let deadline = server.clock.instant(last_end);
                sleep_until(deadline).await;
                let late = Instant::now().saturating_duration_since(deadline);
                let mut core = server.core();
                if core.deaths != deaths {
                    was_busy = false;
                    continue;
                }
                core.engine.finish_step(last_end, &mut events);
                core.books.step(step.work.tokens, late);
                deliver(&mut core, &mut events, last_end, |modelled| server.clock.real(modelled));
                core.publish(last_end, server.clock.wall());
            }
            None => {
                was_busy = false;
                let ready = server.core().engine.next_ready();
                match ready {
                    Some(ready) => {
                        let until = server.clock.instant(ready.max(last_end));
                        // Rounded up by the timer's grain, so that the request is ready then.
                        let until = until + Duration::from_micros(1);
                        tokio::select! {
                            () = sleep_until(until) => {}
                            () = woken => {}
                        }
                    }
                    None => woken.await,
                }
            }
        }
    }
}

/// Hands the step's events to the waiting requests and the books.
fn deliver(
    core: &mut Core,
    events: &mut Vec<Event>,
    now: Timestamp,
    real: impl Fn(Duration) -> Duration,
) {
    for event in events.drain(..) {
        match event {
            Event::Admitted { id, cached_tokens } => core.streams.admitted(id, cached_tokens),
            Event::FirstToken { id } | Event::Token { id } => {
                if let Some(gap) = core.streams.token(id, now) {
                    core.books.inter_token(real(gap));
                }
            }
            Event::Finished { id, times } => {
                let cut = core.streams.finished(id);
                core.books.finished(&times, cut, &real);
            }
            Event::Preempted { .. } | Event::AdapterLoaded { .. } => {}
        }
    }
}

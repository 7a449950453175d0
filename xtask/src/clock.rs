//! The stopwatch and the pause of the harness: nothing in the product uses them.

use std::time::{Duration, Instant};

/// How often a condition outside this process (a port, an exit) is looked at.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the harness times its own parts")]
        let started = Instant::now();
        Self { started }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Looks at `condition` until it holds or `limit` has passed; says which.
pub(crate) fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let stopwatch = Stopwatch::start();
    loop {
        if condition() {
            return true;
        }
        if stopwatch.elapsed() >= limit {
            return false;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the interval between two looks, with a limit"
        )]
        std::thread::sleep(POLL_INTERVAL);
    }
}

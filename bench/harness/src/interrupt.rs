//! Ctrl-C and SIGTERM end a run in order, so that nothing that it started stays behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use tokio::signal::unix::{SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
const SLICE: Duration = Duration::from_millis(100);

/// Turns the signals into a flag that [`pause`] looks at.
pub fn catch() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            let (Ok(mut int), Ok(mut term)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            tokio::select! { _ = int.recv() => {}, _ = term.recv() => {} }
            INTERRUPTED.store(true, Ordering::Relaxed);
        });
    })?;
    Ok(())
}

/// Waits; fails at once when the run was interrupted.
pub fn pause(time: Duration) -> anyhow::Result<()> {
    let mut left = time;
    loop {
        if INTERRUPTED.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        if left.is_zero() {
            return Ok(());
        }
        let slice = left.min(SLICE);
        std::thread::sleep(slice);
        left -= slice;
    }
}

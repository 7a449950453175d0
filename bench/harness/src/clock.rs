//! The one clock of the harness: nanoseconds of the machine's monotonic clock, which mock and load
//! generator share although they are two processes.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started; comparable between processes.
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux always has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Blocks the thread until `deadline_ns`; returns at once when that has passed.
pub fn sleep_until(deadline_ns: u64) {
    let left = deadline_ns.saturating_sub(now_ns());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// Lets this thread wake within a microsecond of its deadline instead of the usual fifty.
///
/// It holds for the calling thread only. The measured programs are started from another thread and
/// keep the system's default.
pub fn wake_exactly() {
    // A kernel that refuses costs precision, not correctness: lateness is measured anyway.
    let _ = nix::sys::prctl::set_timerslack(1);
}

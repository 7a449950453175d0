//! How far the runs are: a bar on a terminal, a line now and then elsewhere.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use telemetry::clock;
use types::Timestamp;

/// What is shown less often than this is no news.
const QUIET: Duration = Duration::from_secs(2);

pub(super) struct Progress {
    bar: ProgressBar,
    total: u64,
    last_line: Mutex<Timestamp>,
}

impl Progress {
    pub(super) fn new(total: usize) -> Self {
        let bar = ProgressBar::new(total as u64);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left  {msg}")
        {
            bar.set_style(style);
        }
        Self { bar, total: total as u64, last_line: Mutex::new(clock::now()) }
    }

    /// One more run is done; `what` says which kind.
    pub(super) fn done(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
        if !self.bar.is_hidden() {
            return;
        }
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if now.since(*last) >= QUIET {
            *last = now;
            self.line(what);
        }
    }

    fn line(&self, what: &str) {
        write_beside(&format!("{}/{} runs: {what}", self.bar.position(), self.total));
    }

    /// Says something beside the output.
    pub(super) fn note(&self, text: &str) {
        self.bar.suspend(|| write_beside(text));
    }

    /// Prints to standard output without tearing the bar.
    pub(super) fn print(&self, text: &str) {
        self.bar.suspend(|| write_out(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn write_out(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "progress of a command, beside its output")]
fn write_beside(text: &str) {
    eprintln!("{text}");
}

//! What is seen while the load runs: a line that moves on a terminal, plain lines elsewhere.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use telemetry::clock;

use super::load::{End, Timetable};
use super::text;

const REFRESH: Duration = Duration::from_millis(100);

/// Counters of the run under way. Relaxed: only the display reads them.
#[derive(Debug, Default)]
pub(super) struct Live {
    sent: AtomicU64,
    waiting: AtomicU64,
    failed: AtomicU64,
    /// Times to first token so far.
    waits: Mutex<Vec<Duration>>,
}

impl Live {
    pub(super) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn first_token(&self, waited: Duration) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
    }

    pub(super) fn ended(&self, answered: bool, end: &End) {
        if !answered {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        if matches!(end, End::Failed(_)) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn line(&self) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut line = format!("{:>4} sent  {:>3} waiting", of(&self.sent), of(&self.waiting));
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let middle = waits.len() / 2;
        if middle > 0 {
            let (_, median, _) = waits.select_nth_unstable(middle);
            line.push_str(&format!("  TTFT P50 {}", text::time(*median)));
        }
        let failed = of(&self.failed);
        if failed > 0 {
            line.push_str(&format!("  {failed} failed"));
        }
        line
    }
}

/// Shows one policy's run from its creation to [`Display::done`].
pub(super) struct Display {
    name: &'static str,
    bar: ProgressBar,
    ticking: Option<tokio::task::JoinHandle<()>>,
}

impl Display {
    pub(super) fn new(name: &'static str, timetable: Timetable, live: Arc<Live>) -> Self {
        let total = timetable.whole().mul_f64(timetable.time_scale);
        let bar = ProgressBar::new(u64::try_from(total.as_millis()).unwrap_or(u64::MAX));
        if bar.is_hidden() {
            note(&format!("{name}: {:.0} s of load", total.as_secs_f64()));
            return Self { name, bar, ticking: None };
        }
        if let Ok(style) = ProgressStyle::with_template("  {prefix:<14} {bar:16} {msg}") {
            bar.set_style(style.progress_chars("━━╌"));
        }
        bar.set_prefix(name);
        let (ticked, begun) = (bar.clone(), clock::now());
        let ticking = tokio::spawn(async move {
            loop {
                let since = clock::now().since(begun).as_millis();
                ticked.set_position(u64::try_from(since).unwrap_or(u64::MAX));
                ticked.set_message(live.line());
                tokio::time::sleep(REFRESH).await;
            }
        });
        Self { name, bar, ticking: Some(ticking) }
    }

    /// Leaves the line with a last word.
    pub(super) fn done(self, word: &str) {
        match self.ticking {
            Some(ticking) => {
                ticking.abort();
                self.bar.set_position(self.bar.length().unwrap_or_default());
                self.bar.finish_with_message(word.to_owned());
            }
            None => note(&format!("{}: {word}", self.name)),
        }
    }
}

/// A line for people, apart from the results on standard output.
pub(super) fn note(line: &str) {
    // Nobody reads along: the results matter.
    let _ = writeln!(std::io::stderr(), "{line}");
}

//! How a target did of late: a ring of slices, the oldest forgotten as time goes on.

use std::time::Duration;

use types::Timestamp;

use crate::Sketch;

/// Slices of a window; what is looked at is as old as the window, give or take one of them.
const SLICES: usize = 10;

/// Ends of requests and times to the first token within a span of time.
#[derive(Debug)]
pub struct Window {
    slice: Duration,
    slices: [Slice; SLICES],
    /// Number of the slice that time has come to, counted from the origin of time.
    current: u64,
}

#[derive(Debug, Default)]
struct Slice {
    requests: u64,
    errors: u64,
    ttft: Sketch,
}

/// A window added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Ended in a way that says something of the target.
    pub requests: u64,
    /// Of them, those that failed.
    pub errors: u64,
    /// Times to the first token of streams.
    pub ttft: Sketch,
}

impl Summary {
    /// Share of requests that failed, 0 to 1; 0 without requests.
    pub fn error_rate(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.errors as f64 / self.requests as f64 }
    }
}

impl Window {
    /// * `span`: how far back it looks; above zero.
    pub fn new(span: Duration) -> Self {
        let slice = (span / SLICES as u32).max(Duration::from_millis(1));
        Self { slice, slices: Default::default(), current: 0 }
    }

    /// A request ended, well or not.
    pub fn ended(&mut self, failed: bool, now: Timestamp) {
        let slice = self.slice_at(now);
        slice.requests += 1;
        slice.errors += u64::from(failed);
    }

    /// A stream had its first token after this time.
    pub fn first_token(&mut self, ttft: Duration, now: Timestamp) {
        self.slice_at(now).ttft.add(ttft);
    }

    pub fn summary(&mut self, now: Timestamp) -> Summary {
        self.slice_at(now);
        let mut sum = Summary::default();
        for slice in &self.slices {
            sum.requests += slice.requests;
            sum.errors += slice.errors;
            sum.ttft.merge(&slice.ttft);
        }
        sum
    }

    pub fn clear(&mut self) {
        self.slices.iter_mut().for_each(Slice::clear);
    }

    fn slice_at(&mut self, now: Timestamp) -> &mut Slice {
        let number = u64::try_from(now.as_duration().as_nanos() / self.slice.as_nanos());
        // Time may come from several threads and so go back a little: then the newest slice is meant.
        let number = number.unwrap_or(u64::MAX).max(self.current);
        let passed = usize::try_from(number - self.current).unwrap_or(SLICES).min(SLICES);
        for back in 0..passed {
            self.slices[index(number - back as u64)].clear();
        }
        self.current = number;
        &mut self.slices[index(number)]
    }
}

fn index(number: u64) -> usize {
    (number % SLICES as u64) as usize
}

impl Slice {
    fn clear(&mut self) {
        self.requests = 0;
        self.errors = 0;
        self.ttft.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + seconds * 1000)
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let mut window = Window::new(Duration::from_secs(10));
        window.ended(true, at(0));
        window.first_token(Duration::from_millis(5), at(0));
        window.ended(false, at(5));
        assert_eq!(window.summary(at(9)).error_rate(), 0.5);
        let later = window.summary(at(10));
        assert_eq!((later.requests, later.errors, later.ttft.count()), (1, 0, 0));
        assert_eq!(window.summary(at(1000)), Summary::default());
    }

    #[test]
    fn time_that_goes_back_a_little_loses_nothing() {
        let mut window = Window::new(Duration::from_secs(10));
        window.ended(false, at(8));
        window.ended(true, at(3));
        assert_eq!(window.summary(at(8)).requests, 2);
    }
}

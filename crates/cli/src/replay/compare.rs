//! Two policies over the same traffic, and how sure the difference is.
//!
//! Traffic was recorded once, so seeds cannot tell how it might have been otherwise: they decide
//! only ties. The interval is a block bootstrap instead: the recording is cut into equal stretches
//! of time, which are drawn again and again with replacement, the same ones for both sides.

use std::time::Duration;

use lab::Change;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Timestamp;

/// Stretches of time.
const STRETCHES: usize = 30;
/// Fewest with something in them of which an interval is made.
const FILLED_MIN: usize = 10;
const RESAMPLES: usize = 1000;

/// Times, each with the stretch in which its request came.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    /// Milliseconds and stretch, by time.
    sorted: Vec<(f64, usize)>,
}

impl Times {
    /// * `all`: arrival and time.
    /// * `window`: what is counted; the rest is left out.
    pub(super) fn of(
        all: impl Iterator<Item = (Timestamp, Duration)>,
        window: &std::ops::Range<Timestamp>,
    ) -> Self {
        let length = window.end.since(window.start).as_secs_f64().max(1e-9);
        let stretch = |at: Timestamp| {
            let share = at.since(window.start).as_secs_f64() / length;
            ((share * STRETCHES as f64) as usize).min(STRETCHES - 1)
        };
        let counted = all.filter(|(at, _)| window.contains(at));
        let mut sorted: Vec<_> =
            counted.map(|(at, time)| (time.as_secs_f64() * 1e3, stretch(at))).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Self { sorted }
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Milliseconds at this share, nearest rank; `None` if there is nothing.
    pub(super) fn at(&self, share: f64) -> Option<f64> {
        self.weighted(&[1; STRETCHES], share)
    }

    fn weighted(&self, weights: &[u32; STRETCHES], share: f64) -> Option<f64> {
        let whole: u64 = self.sorted.iter().map(|(_, at)| u64::from(weights[*at])).sum();
        let wanted = (share * whole as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.sorted.iter().find(|(_, at)| {
            seen += u64::from(weights[*at]);
            seen >= wanted
        });
        found.map(|(ms, _)| *ms)
    }

    fn filled(&self) -> usize {
        let mut filled = [false; STRETCHES];
        self.sorted.iter().for_each(|(_, at)| filled[*at] = true);
        filled.into_iter().filter(|filled| *filled).count()
    }
}

/// The change of a percentile, with its 95 % interval where there is enough. `None` without times
/// on both sides.
pub(super) fn change(from: &Times, to: &Times, share: f64) -> Option<Change> {
    let ratio = |weights: &[u32; STRETCHES]| {
        let (from, to) = (from.weighted(weights, share)?, to.weighted(weights, share)?);
        (from > 0.0).then(|| to / from - 1.0)
    };
    let mean = ratio(&[1; STRETCHES])?;
    if from.filled().min(to.filled()) < FILLED_MIN {
        return Some(Change { mean, interval: None });
    }
    let mut rng = Pcg64Mcg::seed_from_u64(0);
    let mut draw = || {
        let mut weights = [0; STRETCHES];
        (0..STRETCHES).for_each(|_| weights[rng.random_range(0..STRETCHES)] += 1);
        ratio(&weights)
    };
    let mut drawn: Vec<f64> = (0..RESAMPLES).filter_map(|_| draw()).collect();
    drawn.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * drawn.len().saturating_sub(1) as f64).round() as usize;
        drawn.get(place).copied()
    };
    Some(Change { mean, interval: at(0.025).zip(at(0.975)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(of: impl Fn(u64) -> u64) -> Times {
        let window = Timestamp::ZERO..Timestamp::from_millis(30_000);
        let all =
            (0..3000).map(|at| (Timestamp::from_millis(at * 10), Duration::from_millis(of(at))));
        Times::of(all, &window)
    }

    #[test]
    fn a_change_that_is_the_same_in_every_stretch_is_certain() {
        let change = change(&times(|_| 100), &times(|_| 50), 0.95).unwrap();
        assert_eq!((change.mean, change.interval), (-0.5, Some((-0.5, -0.5))));
    }

    #[test]
    fn a_change_that_rests_on_one_stretch_is_not() {
        let once = |at: u64| if (1000..1200).contains(&at) { 1000 } else { 100 };
        let change = change(&times(|_| 100), &times(once), 0.95).unwrap();
        let (low, high) = change.interval.unwrap();
        assert!(low < 0.01 && high > 5.0, "{change:?}");
    }

    #[test]
    fn what_lies_outside_the_window_does_not_count_and_nothing_is_no_time() {
        let window = Timestamp::from_millis(10)..Timestamp::from_millis(20);
        let all = [5, 15, 20].map(|at| (Timestamp::from_millis(at), Duration::from_millis(at)));
        let times = Times::of(all.into_iter(), &window);
        assert_eq!((times.len(), times.at(0.5)), (1, Some(15.0)));
        assert!(change(&Times::default(), &times, 0.5).is_none());
    }
}

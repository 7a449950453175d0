//! What was seen of an endpoint over time and is shown, but decides nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Prompt tokens a second beyond any GPU of today by a factor of ten: the fit saw noise.
const PREFILL_SPEED_MAX: f64 = 1e6;
/// Share of a new look at the speed; with one each five seconds, a minute is what counts.
const SHARE: f64 = 1.0 / 12.0;

/// Relaxed throughout: only metrics read it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Bits of an `f64`; zero: nothing yet.
    prefill_speed: AtomicU64,
}

impl Seen {
    /// A look at the learned speed, tokens a second. The mean is one of logarithms: where prompts hardly differ in
    /// length a single fit may be off by a factor of ten, either way.
    pub(crate) fn note_prefill_speed(&self, learned: f64) {
        if !(learned > 0.0 && learned < PREFILL_SPEED_MAX) {
            return;
        }
        let mean = match self.prefill_speed() {
            Some(mean) => mean * (learned / mean).powf(SHARE),
            None => learned,
        };
        self.prefill_speed.store(mean.to_bits(), Ordering::Relaxed);
    }

    /// Prompt tokens a second, over the last minute.
    pub(crate) fn prefill_speed(&self) -> Option<f64> {
        Some(f64::from_bits(self.prefill_speed.load(Ordering::Relaxed))).filter(|mean| *mean > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fit_that_is_off_hardly_moves_the_speed_and_nonsense_not_at_all() {
        let seen = Seen::default();
        assert_eq!(seen.prefill_speed(), None);
        (0..10).for_each(|_| seen.note_prefill_speed(10_000.0));
        seen.note_prefill_speed(100_000.0);
        [f64::NAN, f64::INFINITY, 0.0, 1e9]
            .into_iter()
            .for_each(|odd| seen.note_prefill_speed(odd));
        let speed = seen.prefill_speed().unwrap();
        assert!((10_000.0..13_000.0).contains(&speed), "{speed}");
        (0..60).for_each(|_| seen.note_prefill_speed(40_000.0));
        assert!(seen.prefill_speed().unwrap() > 38_000.0);
    }
}

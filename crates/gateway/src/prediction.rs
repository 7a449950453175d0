//! How well an endpoint's times to the first token were foreseen.

use std::time::Duration;

use telemetry::PoolMetrics;
use telemetry::metrics::{Counter, Seconds};

/// Sums over all predictions that could be compared.
#[derive(Debug, Default)]
pub(crate) struct PredictionBook {
    compared: Counter,
    predicted: Seconds,
    observed: Seconds,
    off: Seconds,
}

impl PredictionBook {
    /// Books what was foreseen at the dispatch and what came, here and for the pool.
    pub(crate) fn compare(&self, predicted: Duration, observed: Duration, pool: &PoolMetrics) {
        let off = predicted.abs_diff(observed);
        self.compared.inc();
        self.predicted.add(predicted);
        self.observed.add(observed);
        self.off.add(off);
        pool.prediction_error.observe(predicted.as_secs_f64() / observed.as_secs_f64());
        pool.prediction_error_seconds.add(off);
        pool.prediction_observed_seconds.add(observed);
    }

    pub(crate) fn compared(&self) -> u64 {
        self.compared.get()
    }

    /// Time foreseen over time observed, 1 is right; `None` before the first.
    pub(crate) fn bias(&self) -> Option<f64> {
        self.per_observed(&self.predicted)
    }

    /// Differences without their sign over time observed, 0 is right; `None` before the first.
    pub(crate) fn error(&self) -> Option<f64> {
        self.per_observed(&self.off)
    }

    fn per_observed(&self, sum: &Seconds) -> Option<f64> {
        let quotient = sum.get() / self.observed.get();
        quotient.is_finite().then_some(quotient)
    }
}

/// A forecast as a time; one that no `Duration` can hold is the longest.
pub(crate) fn duration_of(ms: f32) -> Duration {
    Duration::try_from_secs_f32(ms / 1000.0).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn errors_that_cancel_out_show_in_the_error_and_not_in_the_bias() {
        let (book, pool) = (PredictionBook::default(), PoolMetrics::default());
        assert_eq!((book.bias(), book.error()), (None, None));
        book.compare(ms(150), ms(100), &pool);
        book.compare(ms(50), ms(100), &pool);
        assert_eq!(book.compared(), 2);
        assert!((book.bias().unwrap() - 1.0).abs() < 1e-9);
        assert!((book.error().unwrap() - 0.5).abs() < 1e-9);
        assert!((pool.prediction_error.sum() - 2.0).abs() < 1e-9);
        assert!((pool.prediction_error_seconds.get() - 0.1).abs() < 1e-9);
        assert!((pool.prediction_observed_seconds.get() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn an_answer_that_took_no_time_leaves_the_quotient_out() {
        let (book, pool) = (PredictionBook::default(), PoolMetrics::default());
        book.compare(ms(5), Duration::ZERO, &pool);
        assert_eq!(pool.prediction_error.count(), 0);
        assert_eq!(book.bias(), None);
    }

    #[test]
    fn every_forecast_is_a_time() {
        for odd in [0.0, -1.0, f32::MAX, f32::NAN, f32::INFINITY] {
            let _ = duration_of(odd);
        }
        assert_eq!(duration_of(250.0), ms(250));
    }
}

//! When requests come: always an open loop, fixed before the run.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Timestamp;

use crate::lengths::{exponential, gamma};

/// A process of arrivals with mean rate 1, to be scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrivals {
    Poisson,
    /// Gamma-distributed gaps with this coefficient of variation.
    Gamma {
        cv: f64,
    },
    /// `peak` times the rate for `length` out of every `period`; in between at what keeps the mean.
    /// The seed decides where in the period a run begins.
    Bursts {
        peak: f64,
        length: Duration,
        period: Duration,
        /// Coefficient of variation of the gaps, each measured in the mean gap of its time. 1 is
        /// Poisson.
        cv: f64,
    },
}

impl Arrivals {
    /// Instants up to `until`, `rate` per second on average.
    pub(crate) fn instants(self, seed: u64, rate: f64, until: Duration) -> Vec<Timestamp> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let phase = rng.random::<f64>();
        let (mut at, until) = (0.0, until.as_secs_f64());
        let mut all = Vec::new();
        if rate <= 0.0 || !rate.is_finite() {
            return all;
        }
        loop {
            at = match self {
                Self::Poisson => at + gap(1.0, &mut rng) / rate,
                Self::Gamma { cv } => at + gap(cv, &mut rng) / rate,
                Self::Bursts { peak, length, period, cv } => {
                    let bursts = Bursts::new(peak, length, period, phase);
                    bursts.advance(at, gap(cv, &mut rng) / rate)
                }
            };
            if at >= until {
                return all;
            }
            all.push(Timestamp::from_duration(Duration::from_secs_f64(at)));
        }
    }
}

/// A gap of mean 1 with this coefficient of variation.
fn gap(cv: f64, rng: &mut Pcg64Mcg) -> f64 {
    if cv == 1.0 {
        return exponential(rng);
    }
    let shape = 1.0 / (cv * cv);
    gamma(shape, rng) / shape
}

/// A rate that is `peak` or `calm` times the mean, periodically.
struct Bursts {
    peak: f64,
    calm: f64,
    length: f64,
    period: f64,
    /// Where in the period time 0 lies, seconds.
    phase: f64,
}

impl Bursts {
    fn new(peak: f64, length: Duration, period: Duration, phase: f64) -> Self {
        let (length, period) = (length.as_secs_f64(), period.as_secs_f64());
        let calm = (period - peak * length) / (period - length);
        Self { peak, calm: calm.max(0.0), length, period, phase: phase * period }
    }

    /// The instant until which `work` (seconds at the mean rate) has gone by since `at`.
    fn advance(&self, mut at: f64, mut work: f64) -> f64 {
        loop {
            let place = (at + self.phase) % self.period;
            let (speed, left) = if place < self.length {
                (self.peak, self.length - place)
            } else {
                (self.calm, self.period - place)
            };
            if speed > 0.0 && work <= speed * left {
                return at + work / speed;
            }
            work -= speed * left;
            // A hair more, so that rounding cannot keep us at the edge.
            at += left + 1e-9;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURSTS: Arrivals = Arrivals::Bursts {
        peak: 4.0,
        length: Duration::from_secs(10),
        period: Duration::from_secs(60),
        cv: 1.0,
    };

    #[test]
    fn every_process_keeps_its_rate_and_its_order() {
        for arrivals in [Arrivals::Poisson, Arrivals::Gamma { cv: 2.0 }, BURSTS] {
            let all = arrivals.instants(7, 20.0, Duration::from_secs(1200));
            let rate = all.len() as f64 / 1200.0;
            assert!((rate / 20.0 - 1.0).abs() < 0.05, "{arrivals:?}: {rate}");
            assert!(all.is_sorted());
            assert_eq!(all, arrivals.instants(7, 20.0, Duration::from_secs(1200)));
        }
    }

    #[test]
    fn a_burst_is_as_long_and_as_steep_as_it_says() {
        let all = BURSTS.instants(3, 50.0, Duration::from_secs(600));
        let mut by_second = vec![0; 600];
        all.iter().for_each(|at| by_second[at.as_duration().as_secs() as usize] += 1);
        let busy = by_second.iter().filter(|count| **count > 120).count();
        // Of the two seconds that a burst begins and ends in, one is busy at most.
        assert!((88..=102).contains(&busy), "{busy} of 100 seconds");
    }
}

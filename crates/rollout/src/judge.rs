//! Whether a target does worse than the stable one.

use std::fmt;
use std::time::Duration;

use crate::Summary;

/// When a target is taken back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// By how much its share of failed requests may exceed the stable side's, 0 to 1.
    pub error_rate: f64,
    /// How many times the stable side's P95 TTFT its own may be; at least 1.
    pub ttft_ratio: f64,
    /// And how much longer it may be in any case.
    pub ttft_slack: Duration,
    /// How far back both are looked at.
    pub window: Duration,
    /// Below this many requests in the window a side is not judged, or nothing to judge by.
    pub requests_min: u32,
}

/// What was exceeded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Breach {
    /// Shares of failed requests.
    ErrorRate { target: f64, stable: f64 },
    /// P95 times to the first token.
    Ttft { target: Duration, stable: Duration },
}

/// One-sided 95 %.
const Z: f64 = 1.645;
const P95: f64 = 0.95;

/// What `target` exceeds with a certainty of 95 %, if anything.
///
/// Without enough requests on the stable side its error rate counts as none, and times are not
/// compared: an absolute bound on errors is better than none, one on times would be a guess.
pub fn judge(guard: &Guard, target: &Summary, stable: &Summary) -> Option<Breach> {
    let least = u64::from(guard.requests_min);
    if target.requests >= least {
        let baseline = if stable.requests >= least { stable.error_rate() } else { 0.0 };
        if lower_bound(target.errors, target.requests) > baseline + guard.error_rate {
            return Some(Breach::ErrorRate { target: target.error_rate(), stable: baseline });
        }
    }
    if target.ttft.count() >= least && stable.ttft.count() >= least {
        let certain = target.ttft.quantile_at_least(P95)?;
        let baseline = stable.ttft.quantile(P95)?;
        let most = baseline.mul_f64(guard.ttft_ratio.max(1.0)).max(baseline + guard.ttft_slack);
        if certain > most {
            let target = target.ttft.quantile(P95)?;
            return Some(Breach::Ttft { target, stable: baseline });
        }
    }
    None
}

/// Lower end of Wilson's interval for a share, one-sided.
fn lower_bound(errors: u64, requests: u64) -> f64 {
    let (n, p) = (requests as f64, errors as f64 / requests.max(1) as f64);
    if errors == 0 || requests == 0 {
        return 0.0;
    }
    let square = Z * Z;
    let middle = p + square / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt();
    (middle - spread) / (1.0 + square / n)
}

impl Breach {
    /// As a label of metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ErrorRate { .. } => "error_rate",
            Self::Ttft { .. } => "ttft",
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrorRate { target, stable } => write!(
                f,
                "error rate {:.1} % against {:.1} % on the stable side",
                target * 100.0,
                stable * 100.0
            ),
            Self::Ttft { target, stable } => write!(
                f,
                "P95 TTFT {} ms against {} ms on the stable side",
                target.as_millis(),
                stable.as_millis()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: Guard = Guard {
        error_rate: 0.05,
        ttft_ratio: 1.5,
        ttft_slack: Duration::from_millis(50),
        window: Duration::from_secs(60),
        requests_min: 20,
    };

    fn side(requests: u64, errors: u64, ttft_ms: u64) -> Summary {
        let mut side = Summary { requests, errors, ..Summary::default() };
        for _ in 0..requests {
            side.ttft.add(Duration::from_millis(ttft_ms));
        }
        side
    }

    #[test]
    fn a_target_that_fails_more_often_than_allowed_is_taken_back() {
        let breach = judge(&GUARD, &side(100, 20, 100), &side(1000, 10, 100));
        assert_eq!(breach, Some(Breach::ErrorRate { target: 0.2, stable: 0.01 }));
        assert_eq!(
            breach.unwrap().to_string(),
            "error rate 20.0 % against 1.0 % on the stable side"
        );
    }

    #[test]
    fn what_fails_on_both_sides_alike_is_not_the_targets_fault() {
        assert_eq!(judge(&GUARD, &side(200, 80, 100), &side(1000, 390, 100)), None);
    }

    #[test]
    fn a_few_failures_by_chance_are_no_breach() {
        assert_eq!(judge(&GUARD, &side(20, 2, 100), &side(1000, 0, 100)), None);
        assert!(judge(&GUARD, &side(20, 6, 100), &side(1000, 0, 100)).is_some());
    }

    #[test]
    fn too_few_requests_are_not_judged() {
        assert_eq!(judge(&GUARD, &side(19, 19, 9000), &side(1000, 0, 100)), None);
    }

    #[test]
    fn without_a_stable_side_errors_count_absolutely_and_times_not_at_all() {
        assert!(judge(&GUARD, &side(100, 20, 9000), &side(0, 0, 0)).is_some());
        assert_eq!(judge(&GUARD, &side(100, 0, 9000), &side(10, 0, 10)), None);
    }

    #[test]
    fn times_must_exceed_the_ratio_and_the_slack() {
        let stable = side(1000, 0, 100);
        assert!(matches!(judge(&GUARD, &side(100, 0, 170), &stable), Some(Breach::Ttft { .. })));
        assert_eq!(judge(&GUARD, &side(100, 0, 140), &stable), None);
        // Twice as long, but who waits 8 ms?
        assert_eq!(judge(&GUARD, &side(100, 0, 8), &side(1000, 0, 4)), None);
    }
}

//! From what became of each request to the numbers of the table.

use std::time::Duration;

use super::load::{End, Sample, Timetable};

/// A percentile, exact over all samples (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percentile {
    pub(super) value: Duration,
    /// The true one may be larger: a request of this rank or before it had no first token yet.
    pub(super) at_least: bool,
}

/// What one policy did with the load.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// Requests that were due in the measured time.
    pub(super) requests: usize,
    pub(super) errors: usize,
    /// What the first error was.
    pub(super) first_error: Option<String>,
    /// Requests without a first token when the run was over.
    pub(super) unanswered: usize,
    pub(super) p50: Percentile,
    pub(super) p95: Percentile,
    pub(super) p99: Percentile,
    /// Output tokens per second that arrived in the measured time, failed requests left out.
    pub(super) tokens_per_second: f64,
    /// 99 % of requests were sent within this of their time (the fleet's).
    pub(super) send_late_p99: Duration,
}

/// Time to first token of a request; `Err` with a lower bound where none came.
type Ttft = Result<Duration, Duration>;

/// Sums a run up. A request that failed before its first token counts as one that would have waited to the end.
pub(super) fn measure(samples: &[Sample], timetable: &Timetable) -> Measured {
    let window = timetable.warm_up..timetable.sent();
    let due: Vec<&Sample> = samples.iter().filter(|sample| window.contains(&sample.due)).collect();
    let mut ttfts: Vec<Ttft> = due.iter().map(|sample| ttft(sample, timetable)).collect();
    ttfts.sort_by_key(|ttft| ttft.unwrap_or_else(|bound| bound));
    let mut late: Vec<Duration> = due.iter().map(|sample| sample.late).collect();
    late.sort();

    let tokens: u64 =
        samples.iter().filter(|sample| !failed(sample)).map(|sample| sample.tokens_measured).sum();
    Measured {
        requests: due.len(),
        errors: due.iter().filter(|sample| failed(sample)).count(),
        first_error: due.iter().find_map(|sample| match &sample.end {
            End::Failed(failure) => Some(failure.to_string()),
            End::Done | End::Cut => None,
        }),
        unanswered: due
            .iter()
            .filter(|sample| !failed(sample) && sample.first_token.is_none())
            .count(),
        p50: percentile(&ttfts, 0.50),
        p95: percentile(&ttfts, 0.95),
        p99: percentile(&ttfts, 0.99),
        tokens_per_second: tokens as f64 / timetable.measured.as_secs_f64(),
        send_late_p99: rank(late.len(), 0.99).map_or(Duration::ZERO, |at| late[at]),
    }
}

fn failed(sample: &Sample) -> bool {
    matches!(sample.end, End::Failed(_))
}

fn ttft(sample: &Sample, timetable: &Timetable) -> Ttft {
    match sample.first_token {
        Some(waited) => Ok(waited),
        None if failed(sample) => {
            Err(timetable.whole().saturating_sub(sample.due).max(sample.ended))
        }
        None => Err(sample.ended),
    }
}

/// Index of the nearest rank among `count` sorted samples; `None` if there are none.
fn rank(count: usize, share: f64) -> Option<usize> {
    let rank = (count as f64 * share).ceil() as usize;
    count.checked_sub(1).map(|last| rank.saturating_sub(1).min(last))
}

/// * `sorted`: by value or lower bound.
fn percentile(sorted: &[Ttft], share: f64) -> Percentile {
    let Some(at) = rank(sorted.len(), share) else {
        return Percentile { value: Duration::ZERO, at_least: false };
    };
    Percentile {
        value: sorted[at].unwrap_or_else(|bound| bound),
        at_least: sorted[..=at].iter().any(Result::is_err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const TIMES: Timetable = Timetable {
        warm_up: Duration::from_secs(2),
        measured: Duration::from_secs(10),
        drain: Duration::from_secs(1),
        time_scale: 1.0,
    };

    fn sample(due: u64, first_token: Option<u64>, end: End) -> Sample {
        Sample {
            due: SECOND * due as u32,
            late: Duration::ZERO,
            first_token: first_token.map(Duration::from_millis),
            ended: SECOND,
            tokens_measured: 10,
            end,
        }
    }

    fn measured(samples: &[Sample]) -> Measured {
        measure(samples, &TIMES)
    }

    #[test]
    fn percentiles_are_the_nearest_ranks_of_all_samples() {
        let sorted: Vec<Ttft> = (1..=200).map(|ms| Ok(Duration::from_millis(ms))).collect();
        let at = |share| percentile(&sorted, share).value.as_millis();
        assert_eq!((at(0.5), at(0.95), at(0.99), at(1.0)), (100, 190, 198, 200));
        assert_eq!(percentile(&sorted[..1], 0.99).value.as_millis(), 1);
        assert_eq!(percentile(&[], 0.99).value, Duration::ZERO);
    }

    #[test]
    fn a_request_without_an_answer_makes_the_percentiles_behind_it_lower_bounds() {
        let mut sorted: Vec<Ttft> = (1..=10).map(|second| Ok(SECOND * second)).collect();
        sorted[6] = Err(SECOND * 7);
        assert!(!percentile(&sorted, 0.6).at_least);
        assert!(percentile(&sorted, 0.7).at_least);
        assert!(percentile(&sorted, 0.9).at_least);
    }

    #[test]
    fn only_requests_due_in_the_measured_time_count() {
        let done = |due| sample(due, Some(100), End::Done);
        let measured = measured(&[done(1), done(2), done(3), done(5), done(11), done(12)]);
        assert_eq!(measured.requests, 4);
        assert_eq!(measured.errors, 0);
    }

    #[test]
    fn a_failed_request_is_an_error_a_miss_and_no_throughput() {
        let refused = sample(4, None, End::Failed(super::super::client::Failure::Status(429)));
        let measured = measured(&[sample(3, Some(100), End::Done), refused]);
        assert_eq!((measured.errors, measured.unanswered), (1, 0));
        assert_eq!(measured.first_error.as_deref(), Some("status 429"));
        assert_eq!(measured.p99, Percentile { value: SECOND * 9, at_least: true });
        assert_eq!(measured.tokens_per_second, 1.0);
    }

    #[test]
    fn a_request_that_still_waits_is_no_error_but_unanswered() {
        let measured = measured(&[sample(3, Some(100), End::Done), sample(4, None, End::Cut)]);
        assert_eq!((measured.errors, measured.unanswered), (0, 1));
        assert!(!measured.p50.at_least && measured.p99.at_least);
    }
}

//! What faults did, and how long they were felt.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use types::Timestamp;

use super::{Percentiles, Record, Run, rounded};
use crate::fault::{Fault, FaultKind};

/// How much worse than before is still as before.
const AS_BEFORE: f64 = 1.25;
/// Seconds in a row that must be as before.
const CALM_SECONDS: u32 = 3;
/// Seconds before a fault that it is measured against, and after it that may still feel it.
const BEFORE_SECONDS: u32 = 30;
/// Seconds after the end of a fault in which a recovery is looked for.
const AFTER_SECONDS: u32 = 60;
/// What counts as the first time after a return.
const RETURN: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

/// What one fault did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultResult {
    pub fault: &'static str,
    /// Of requests that came while it lasted or in the half minute before, those not answered to
    /// the end.
    pub failed: usize,
    /// Of requests that came while it lasted, and in the half minutes before and after.
    pub ttft_p95_ms: f64,
    pub ttft_p95_before_ms: f64,
    pub ttft_p95_after_ms: f64,
    /// As [`super::RunResult::recovery_seconds`], for this fault.
    pub recovery_seconds: Option<f64>,
}

impl Run {
    pub(super) fn faults(&self, faults: &[Fault]) -> Vec<FaultResult> {
        let result = |fault: &Fault| {
            let during = fault.during(&self.window);
            let begin = during.start.as_duration().saturating_sub(SECOND * BEFORE_SECONDS);
            let before = Timestamp::from_duration(begin)..during.start;
            let after = during.end..during.end + SECOND * BEFORE_SECONDS;
            let hit = before.start..during.end;
            let hit = self.records.iter().filter(|record| hit.contains(&record.at));
            FaultResult {
                fault: fault.name,
                failed: hit.filter(|record| record.finished.is_none()).count(),
                ttft_p95_ms: self.ttft_p95_ms(&during),
                ttft_p95_before_ms: self.ttft_p95_ms(&before),
                ttft_p95_after_ms: self.ttft_p95_ms(&after),
                recovery_seconds: self.recovery(fault),
            }
        };
        faults.iter().map(result).collect()
    }

    pub(super) fn recovery_seconds(&self, faults: &[Fault]) -> Option<f64> {
        self.recovery(faults.iter().find(|fault| fault.kind == FaultKind::Dead)?)
    }

    pub(super) fn returning_share(&self, faults: &[Fault]) -> Option<f64> {
        let fault = faults.iter().find(|fault| fault.kind == FaultKind::Dead)?;
        let back = fault.during(&self.window).end;
        let first = back..back + RETURN;
        let came = self.records.iter().filter(|record| first.contains(&record.at));
        let endpoints: Vec<usize> = came.filter_map(|record| record.endpoint).collect();
        let returned = endpoints.iter().filter(|at| fault.endpoints().contains(at)).count();
        let all = endpoints.len().max(1) * fault.count.max(1);
        Some(returned as f64 / all as f64)
    }

    /// Seconds from the begin of a fault to the first of three as good as those before it.
    fn recovery(&self, fault: &Fault) -> Option<f64> {
        let during = fault.during(&self.window);
        let lasts = fault.lasts.as_secs() as u32;
        let seconds = self.p95_by_second(during.start, lasts + AFTER_SECONDS);
        let begin = during.start.as_duration().saturating_sub(SECOND * BEFORE_SECONDS);
        let begin = begin.max(self.window.start.as_duration());
        let before = (during.start.as_duration() - begin).as_secs() as u32;
        let before = self.p95_by_second(Timestamp::from_duration(begin), before);
        let limit = AS_BEFORE * before.iter().sum::<f64>() / before.len().max(1) as f64;
        let calm = seconds.windows(CALM_SECONDS as usize);
        let mut calm = calm.map(|run| run.iter().all(|p95| *p95 <= limit));
        calm.position(|is_calm| is_calm).map(|second| second as f64)
    }

    /// P95 of the time to the first token of those who came in each second, milliseconds; who got
    /// none waited for ever.
    fn p95_by_second(&self, from: Timestamp, seconds: u32) -> Vec<f64> {
        let mut by_second: Vec<Vec<f64>> = vec![Vec::new(); seconds as usize];
        for record in self.records.iter().filter(|record| record.at >= from) {
            if let Some(second) = by_second.get_mut(record.at.since(from).as_secs() as usize) {
                second.push(record.ttft().map_or(f64::INFINITY, |ttft| ttft.as_secs_f64() * 1e3));
            }
        }
        let p95 = |mut second: Vec<f64>| {
            second.sort_unstable_by(f64::total_cmp);
            let rank = (0.95 * second.len() as f64).ceil() as usize;
            second.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        by_second.into_iter().map(p95).collect()
    }

    fn ttft_p95_ms(&self, during: &Range<Timestamp>) -> f64 {
        let came = self.records.iter().filter(|record| during.contains(&record.at));
        rounded(Percentiles::of(came.filter_map(Record::ttft)).at(0.95))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Fate;

    /// Ten requests a second for 200 s, each answered after so many milliseconds.
    fn run(ttft_ms: impl Fn(f64) -> Option<u64>) -> Run {
        let at = |ms: u64| Timestamp::from_millis(ms);
        let mut run = Run::empty(at(10_000)..at(200_000));
        for ms in (0..200_000).step_by(100) {
            let first = ttft_ms(ms as f64 / 1e3).map(|ttft| at(ms + ttft));
            run.records.push(Record {
                at: at(ms),
                prompt_tokens: 1,
                output_tokens: 1,
                endpoint: Some((ms / 100 % 4) as usize),
                attempts: 1,
                fate: Fate::Open,
                first_token: first,
                finished: first,
                floor: Duration::from_millis(50),
                cached_tokens: 0,
                preemptions: 0,
                inside: Duration::ZERO,
            });
        }
        run
    }

    const DEATH: Fault = Fault {
        name: "death",
        kind: FaultKind::Dead,
        endpoint: 0,
        count: 2,
        from: Duration::from_secs(50),
        lasts: Duration::from_secs(30),
    };

    #[test]
    fn a_recovery_is_over_when_three_seconds_in_a_row_are_as_before() {
        // Bad from second 60 on, for seven seconds, a calm one in between.
        let hit = |second: f64| (60.0..67.0).contains(&second) && !(63.0..64.0).contains(&second);
        let run = run(|second| Some(if hit(second) { 130 } else { 100 }));
        assert_eq!(run.recovery_seconds(&[DEATH]), Some(7.0));
        let result = &run.faults(&[DEATH])[0];
        assert_eq!((result.ttft_p95_before_ms, result.ttft_p95_ms), (100.0, 130.0));
        assert_eq!((result.ttft_p95_after_ms, result.failed), (100.0, 0));
    }

    #[test]
    fn who_is_not_answered_has_not_recovered() {
        let run = run(|second| (second < 60.0).then_some(100));
        assert_eq!(run.recovery_seconds(&[DEATH]), None);
        assert_eq!(run.faults(&[DEATH])[0].failed, 300);
    }

    #[test]
    fn the_share_of_the_returning_is_that_of_one_of_them() {
        assert_eq!(run(|_| Some(100)).returning_share(&[DEATH]), Some(0.25));
    }
}

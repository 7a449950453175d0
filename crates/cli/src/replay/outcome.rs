//! What a replay found, in words and for scripts.

use std::time::Duration;

use lab::{Change, Policy, Record, Run};
use serde_json::{Value, json};
use telemetry::recording::PoolState;
use types::Timestamp;

use super::compare::{Times, change};
use super::traffic::Traffic;
use crate::bench::text;

const SHARES: [(&str, f64); 3] = [("P50", 0.50), ("P95", 0.95), ("P99", 0.99)];
/// A simulated P95 within this of the recorded one is good.
const GOOD: f64 = 0.2;
/// And within this it is rough.
const ROUGH: f64 = 0.5;

/// A percentile on two sides.
pub(super) struct Line {
    what: String,
    from_ms: f64,
    to_ms: f64,
    change: Change,
}

pub(super) struct Outcome {
    pool: String,
    recorded_policy: String,
    requests: usize,
    counted: Duration,
    endpoints: usize,
    base: Policy,
    tried: String,
    /// From recorded to simulated.
    trust: Vec<Line>,
    /// From the base to what was tried, both simulated.
    prediction: Vec<Line>,
    /// Shares that got no whole answer.
    failed: (f64, f64),
    notes: Vec<String>,
}

impl Outcome {
    /// * `trusted`: plays of the recorded policy; none, if it cannot be played.
    pub(super) fn new(
        traffic: &Traffic,
        (base, base_runs): (Policy, &[Run]),
        (tried, tried_runs): (&str, &[Run]),
        trusted: &[Run],
        notes: Vec<String>,
    ) -> Self {
        let window =
            base_runs.first().map_or(Timestamp::ZERO..Timestamp::ZERO, |run| run.window.clone());
        let simulated = |runs: &[Run], of: fn(&Record) -> Option<Duration>| {
            let all = runs.iter().flat_map(|run| &run.records);
            Times::of(all.filter_map(|record| Some((record.at, of(record)?))), &window)
        };
        // The same requests on both sides: those whose time was recorded.
        let both = |recorded: fn(&telemetry::recording::Request) -> Option<f64>,
                    of: fn(&Record) -> Option<Duration>| {
            let is_known: Vec<bool> =
                traffic.recorded.iter().map(|request| recorded(request).is_some()).collect();
            let theirs =
                traffic.recorded.iter().zip(&traffic.requests).filter_map(|(one, request)| {
                    Some((request.at, Duration::try_from_secs_f64(recorded(one)? * 1e-3).ok()?))
                });
            let ours = trusted.iter().flat_map(|run| run.records.iter().zip(&is_known));
            let ours = ours.filter(|(_, known)| **known);
            let ours = ours.filter_map(|(record, _)| Some((record.at, of(record)?)));
            (Times::of(theirs, &window), Times::of(ours, &window))
        };
        let mut trust = Vec::new();
        let (theirs, ours) = both(|one| one.ttft_ms, Record::ttft);
        trust.extend(lines("TTFT", &theirs, &ours));
        let answered =
            |one: &telemetry::recording::Request| (one.outcome == "ok").then_some(one.duration_ms);
        let (theirs, ours) = both(answered, Record::e2e);
        trust.extend(lines("duration", &theirs, &ours));
        let mut prediction = Vec::new();
        for (what, of) in
            [("TTFT", Record::ttft as fn(&Record) -> Option<Duration>), ("duration", Record::e2e)]
        {
            prediction.extend(lines(what, &simulated(base_runs, of), &simulated(tried_runs, of)));
        }
        Self {
            pool: traffic.pool.name.clone(),
            recorded_policy: shown(&traffic.pool),
            requests: traffic.requests.len(),
            counted: window.end.since(window.start),
            endpoints: traffic.engines.len(),
            base,
            tried: tried.to_owned(),
            trust,
            prediction,
            failed: (failed(base_runs), failed(tried_runs)),
            notes,
        }
    }

    /// How far off the simulated P95 of the first token is; `None` where no stream was recorded or
    /// the recorded policy cannot be played.
    fn error(&self) -> Option<f64> {
        self.trust.iter().find(|line| line.what == "TTFT P95").map(|line| line.change.mean)
    }

    fn verdict(&self) -> &'static str {
        match self.error().map(f64::abs) {
            None => "unknown: there is nothing to compare with",
            Some(..GOOD) => "good: the simulated P95 is within 20 % of the recorded one",
            Some(..ROUGH) => "rough: read changes as directions",
            Some(_) => "poor: this traffic is not reproduced, do not rely on the changes",
        }
    }

    pub(super) fn text(&self) -> String {
        let seconds = Duration::from_secs(self.counted.as_secs());
        let mut out = format!(
            "pool {}: {} requests, {} counted, {} endpoints; recorded under {}\n",
            self.pool,
            self.requests,
            humantime::format_duration(seconds),
            self.endpoints,
            self.recorded_policy,
        );
        for note in &self.notes {
            out.push_str(&format!("note: {note}\n"));
        }
        out.push_str("\nThe recorded policy: recorded, simulated, difference\n");
        self.trust.iter().for_each(|line| out.push_str(&line.text()));
        out.push_str(&format!("trust: {}\n", self.verdict()));
        out.push_str(&format!("\nPredicted: {}, {}, change\n", self.base.name(), self.tried));
        self.prediction.iter().for_each(|line| out.push_str(&line.text()));
        out.push_str(&format!(
            "  {:<14} {:>9.1} % {:>9.1} %\n",
            "failed",
            100.0 * self.failed.0,
            100.0 * self.failed.1
        ));
        out.push_str(
            "Engines are simulated with learned speeds; times are of requests that got an answer.",
        );
        out
    }

    pub(super) fn json(&self) -> Value {
        let lines = |lines: &[Line]| lines.iter().map(Line::json).collect::<Vec<_>>();
        json!({
            "pool": self.pool,
            "recorded_policy": self.recorded_policy,
            "requests": self.requests,
            "counted_seconds": self.counted.as_secs_f64(),
            "endpoints": self.endpoints,
            "against": self.base.name(),
            "policy": self.tried,
            "trust": self.verdict().split(':').next(),
            "recorded_to_simulated": lines(&self.trust),
            "predicted": lines(&self.prediction),
            "failed_against": self.failed.0,
            "failed": self.failed.1,
            "notes": self.notes,
        })
    }
}

impl Line {
    fn text(&self) -> String {
        format!(
            "  {:<14} {:>11} {:>11}   {}\n",
            self.what,
            text::time(self.from_ms),
            text::time(self.to_ms),
            text::change(Some(self.change))
        )
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "change": self.change.mean,
            "interval": self.change.interval.map(|(low, high)| [low, high]),
        })
    }
}

/// Fewest times of which a percentile is shown.
const TIMES_MIN: usize = 20;

fn lines(what: &str, from: &Times, to: &Times) -> Vec<Line> {
    if from.len().min(to.len()) < TIMES_MIN {
        return Vec::new();
    }
    let line = |(name, share): (&str, f64)| {
        Some(Line {
            what: format!("{what} {name}"),
            from_ms: from.at(share)?,
            to_ms: to.at(share)?,
            change: change(from, to, share)?,
        })
    };
    SHARES.into_iter().filter_map(line).collect()
}

/// Share of the counted requests that got no whole answer.
fn failed(runs: &[Run]) -> f64 {
    let counted = || runs.iter().flat_map(Run::counted);
    let failed = counted().filter(|record| record.finished.is_none()).count();
    failed as f64 / counted().count().max(1) as f64
}

/// A recorded policy by its weights.
pub(super) fn shown(pool: &PoolState) -> String {
    let weights: Vec<String> =
        pool.scorers.iter().map(|(name, weight)| format!("{name} {weight}")).collect();
    if weights.is_empty() {
        pool.policy.clone()
    } else {
        format!("{} ({})", pool.policy, weights.join(", "))
    }
}

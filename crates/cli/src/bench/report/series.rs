//! One measure of one policy over the loads of a scenario.

use lab::Policy;
use lab::statistics::{Better, bootstrap_mean};

use super::super::measured::{Measure, Section};
use super::super::text;

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) policy: Policy,
    pub(super) points: Vec<Point>,
    /// Whether no rival of the last load has a better mean.
    pub(super) is_best_rival: bool,
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) load: f64,
    pub(super) mean: f64,
    /// 95 %, of the mean.
    pub(super) interval: Option<(f64, f64)>,
}

/// A series for each policy; loads at which nothing was answered are left out.
pub(super) fn of(section: &Section, measure: &Measure) -> Vec<Series> {
    let Some(last) = section.cells.last() else { return Vec::new() };
    let best = last.best_rival(measure);
    let series = |(at, policy): (usize, &Policy)| {
        let point = |cell: &super::super::measured::Cell| {
            let values = cell.values(at, measure);
            let (mean, interval) = (text::mean(&values), bootstrap_mean(&values));
            measure.is_known(mean).then_some(Point { load: cell.load, mean, interval })
        };
        Series {
            policy: *policy,
            points: section.cells.iter().filter_map(point).collect(),
            is_best_rival: best == Some(at),
        }
    };
    last.policies.iter().enumerate().map(series).collect()
}

/// The value as it stands beside a point.
pub(super) fn shown(measure: &Measure, value: f64) -> String {
    match measure.better {
        Better::Lower => text::time(value),
        Better::Higher => format!("{value:.3}"),
    }
}

/// What a point says when one points at it.
pub(super) fn tip(series: &Series, point: &Point, measure: &Measure) -> String {
    let value = shown(measure, point.mean);
    let interval = point.interval.map_or(String::new(), |(low, high)| {
        format!(" ({} to {})", shown(measure, low), shown(measure, high))
    });
    let name = series.policy.name();
    format!("{name} at load {}: {} {value}{interval}", point.load, measure.title)
}

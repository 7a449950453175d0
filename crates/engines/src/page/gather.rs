//! Values of one signal, while more series of it may come.

use super::Anomalies;

/// Series of one signal that are kept; a hostile page could hold any number.
const SERIES_MAX: usize = 256;

/// Values by rank. Within a rank, series that differ in other labels tell the same thing more than
/// once (tensor-parallel ranks of SGLang) or a total and its parts (priorities): the largest holds.
#[derive(Debug, Default)]
pub(super) struct PerRank<'a> {
    series: Vec<Series<'a>>,
    was_said: bool,
}

#[derive(Debug)]
struct Series<'a> {
    rank: &'a [u8],
    /// Name and labels as written.
    identity: (&'a [u8], &'a [u8]),
    value: f64,
}

impl<'a> PerRank<'a> {
    /// Takes a value between 0 and `max`; counts any other as rejected.
    pub(super) fn take(
        &mut self,
        rank: &'a [u8],
        identity: (&'a [u8], &'a [u8]),
        value: f64,
        max: f64,
        anomalies: &mut Anomalies,
    ) {
        self.was_said = true;
        if self.series.len() == SERIES_MAX || !(0.0..=max).contains(&value) {
            anomalies.rejected_values += 1;
        } else if self.series.iter().any(|series| series.identity == identity) {
            anomalies.duplicate_series += 1;
        } else {
            self.series.push(Series { rank, identity, value });
        }
    }

    /// Whether a series stood on the page, usable or not.
    pub(super) fn was_said(&self) -> bool {
        self.was_said
    }

    /// These values, or `fallback` if the page does not have them at all. If it has and they are
    /// wrong, an older or vaguer name beside them is not more right.
    pub(super) fn or(self, fallback: Self) -> Self {
        if self.was_said { self } else { fallback }
    }

    /// The largest value of the first rank.
    pub(super) fn first(&self) -> Option<f64> {
        self.per_rank().next()
    }

    pub(super) fn sum(&self) -> Option<f64> {
        self.per_rank().reduce(|sum, value| sum + value)
    }

    /// All series added up, for counters: there, labels beside the rank part the total.
    pub(super) fn sum_of_series(&self) -> Option<f64> {
        self.series.iter().map(|series| series.value).reduce(|sum, value| sum + value)
    }

    pub(super) fn mean(&self) -> Option<f64> {
        let ranks = self.per_rank().count();
        self.sum().map(|sum| sum / ranks as f64)
    }

    fn per_rank(&self) -> impl Iterator<Item = f64> {
        let is_first = |at: &usize| {
            let rank = self.series[*at].rank;
            self.series[..*at].iter().all(|earlier| earlier.rank != rank)
        };
        (0..self.series.len()).filter(is_first).map(|at| {
            let of_rank = self.series.iter().filter(|series| series.rank == self.series[at].rank);
            of_rank.map(|series| series.value).fold(0.0, f64::max)
        })
    }
}

/// A checked value as a number of things; saturates.
pub(super) fn quantity(value: f64) -> u32 {
    value.round() as u32
}

/// A checked value as a count since the engine's start; saturates.
pub(super) fn counter(value: f64) -> u64 {
    value.round() as u64
}

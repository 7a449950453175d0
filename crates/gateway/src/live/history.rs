//! The last minutes, one row a second, so that a page that is opened shows what led to this.

use std::collections::VecDeque;

use serde::Serialize;

use super::pulse::Pulse;

/// Rows that are kept: five minutes.
pub(super) const ROWS_MAX: usize = 300;

/// The last [`ROWS_MAX`] pulses of the whole gateway.
#[derive(Debug, Default)]
pub(super) struct History {
    rows: VecDeque<(u64, Pulse)>,
    /// Of the next row; counts on for ever.
    next: u64,
}

/// Rows as columns, which are half as long when written down.
#[derive(Debug, Default, Serialize)]
pub(super) struct Columns {
    /// Number of the first row; the others follow one by one.
    first: u64,
    /// Milliseconds since 1970.
    at_ms: Vec<u64>,
    requests: Vec<f32>,
    failed: Vec<f32>,
    shed: Vec<f32>,
    refused: Vec<f32>,
    tokens_in: Vec<f32>,
    tokens_out: Vec<f32>,
    ttft_p50_ms: Vec<Option<f32>>,
    ttft_p95_ms: Vec<Option<f32>>,
    hit_ratio: Vec<Option<f32>>,
    cached_ratio: Vec<Option<f32>>,
    in_flight: Vec<i64>,
}

impl History {
    pub(super) fn push(&mut self, at_ms: u64, pulse: Pulse) {
        if self.rows.len() == ROWS_MAX {
            self.rows.pop_front();
        }
        self.rows.push_back((at_ms, pulse));
        self.next += 1;
    }

    /// The last rows, the oldest first.
    pub(super) fn last(&self, most: usize) -> Columns {
        let skipped = self.rows.len().saturating_sub(most);
        let first = self.next - (self.rows.len() - skipped) as u64;
        let mut columns = Columns { first, ..Columns::default() };
        for (at_ms, pulse) in self.rows.iter().skip(skipped) {
            columns.push(*at_ms, pulse);
        }
        columns
    }
}

impl Columns {
    fn push(&mut self, at_ms: u64, pulse: &Pulse) {
        self.at_ms.push(at_ms);
        self.requests.push(pulse.requests);
        self.failed.push(pulse.failed);
        self.shed.push(pulse.shed);
        self.refused.push(pulse.refused);
        self.tokens_in.push(pulse.tokens_in);
        self.tokens_out.push(pulse.tokens_out);
        self.ttft_p50_ms.push(pulse.ttft_p50_ms);
        self.ttft_p95_ms.push(pulse.ttft_p95_ms);
        self.hit_ratio.push(pulse.hit_ratio);
        self.cached_ratio.push(pulse.cached_ratio);
        self.in_flight.push(pulse.in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_row_goes_and_numbers_go_on() {
        let mut history = History::default();
        for number in 0..(ROWS_MAX as u64 + 5) {
            history.push(1000 * number, Pulse { in_flight: number as i64, ..Pulse::default() });
        }
        let all = history.last(usize::MAX);
        assert_eq!((all.first, all.at_ms.len()), (5, ROWS_MAX));
        let last = history.last(2);
        assert_eq!((last.first, last.at_ms), (303, vec![303_000, 304_000]));
        assert_eq!(last.in_flight, [303, 304]);
    }

    #[test]
    fn an_empty_history_has_no_rows() {
        assert!(History::default().last(5).at_ms.is_empty());
    }
}

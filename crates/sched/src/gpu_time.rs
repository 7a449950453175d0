//! What a request took of its endpoint, from the endpoint's learned speed.
//!
//! A prompt takes the time in which its tokens that were not cached are computed. An answer takes a share
//! of each step that brings it a token: the step is for all answers of the batch, so each pays one part.
//! What cannot be told from outside is left out: idle steps, transfers, a prompt given up half-way.

use std::sync::{Mutex, PoisonError};

use types::Timestamp;

use crate::Speed;

/// A request as far as it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Prompt tokens that were computed, as the gateway estimates tokens: speeds are learned in those.
    pub computed_tokens: f64,
    /// Prompt tokens that were cached, likewise.
    pub cached_tokens: f64,
    /// Tokens of the answer, the first one included.
    pub output_tokens: f64,
    /// Answers that were written at the same time, this one included; a mean over its time.
    pub batch: f64,
}

/// Endpoint-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuTime {
    pub prefill: f64,
    pub decode: f64,
    /// What the prompt would have taken besides, had nothing been cached.
    pub saved: f64,
}

impl Work {
    /// At this speed. Each part is finite and at least 0.
    pub fn gpu_time(&self, speed: &Speed) -> GpuTime {
        let batch = self.batch.max(1.0);
        let step = f64::from(speed.step_ms_at(batch as f32));
        // The first token comes out of the prompt's last step.
        let steps = (self.output_tokens - 1.0).max(0.0);
        let per_token = f64::from(speed.prefill_ms_per_token);
        let seconds = |ms: f64| if ms.is_finite() { ms.max(0.0) / 1e3 } else { 0.0 };
        GpuTime {
            prefill: seconds(self.computed_tokens * per_token),
            decode: seconds(steps * step / batch),
            saved: seconds(self.cached_tokens * per_token),
        }
    }
}

/// Holds what is booked to the requests of one endpoint against the time in which it had any.
///
/// Learned steps have others' prompts in them, so the parts by themselves add up to more than the whole
/// under load. An endpoint cannot work longer than somebody waits for it: what is too much is taken off
/// all alike.
#[derive(Debug, Default)]
pub struct BusyBook(Mutex<Busy>);

/// Seconds.
#[derive(Debug, Default)]
struct Busy {
    covered_until: Timestamp,
    busy: f64,
    booked: f64,
}

/// Seconds of work after which the past counts half.
const BUSY_HALVED: f64 = 300.0;

impl BusyBook {
    /// What to book for a request that was there from `begun` to `ended` and by itself would take `time`.
    /// To be called in the order of their ends, or nearly.
    pub fn settle(&self, time: GpuTime, begun: Timestamp, ended: Timestamp) -> GpuTime {
        // A panic elsewhere cannot leave it half written.
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.busy += ended.since(begun.max(book.covered_until)).as_secs_f64();
        book.covered_until = book.covered_until.max(ended);
        book.booked += time.prefill + time.decode;
        if book.busy > 2.0 * BUSY_HALVED {
            book.busy /= 2.0;
            book.booked /= 2.0;
        }
        let share = if book.booked > book.busy { book.busy / book.booked } else { 1.0 };
        GpuTime { prefill: share * time.prefill, decode: share * time.decode, ..time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_booked_than_the_endpoint_was_busy() {
        let book = BusyBook::default();
        let at = |seconds: u64| Timestamp::from_millis(1000 * seconds);
        let greedy = GpuTime { prefill: 1.0, decode: 3.0, saved: 5.0 };
        let mut booked = 0.0;
        for second in 0..100_u64 {
            // Two at each time, for two seconds each.
            let time = book.settle(greedy, at(second), at(second + 2));
            assert_eq!(time.saved, 5.0);
            booked += time.prefill + time.decode;
        }
        assert!((95.0..106.0).contains(&booked), "{booked} s booked of 101 s");
    }

    #[test]
    fn answers_of_one_batch_share_its_steps() {
        let speed = Speed::default();
        let work = |batch| Work { output_tokens: 101.0, batch, ..Work::default() };
        let alone = work(1.0).gpu_time(&speed).decode;
        let among_ten = work(10.0).gpu_time(&speed).decode;
        let step = f64::from(speed.step_ms_at(10.0)) / 1e3;
        assert!((10.0 * among_ten - 100.0 * step).abs() < 1e-9, "ten together take whole steps");
        assert!(among_ten < alone / 5.0);
    }

    #[test]
    fn what_is_cached_is_saved_not_paid() {
        let speed = Speed::default();
        let cold = Work { computed_tokens: 1000.0, ..Work::default() }.gpu_time(&speed);
        let warm = Work { computed_tokens: 200.0, cached_tokens: 800.0, ..Work::default() };
        let warm = warm.gpu_time(&speed);
        assert!((warm.prefill + warm.saved - cold.prefill).abs() < 1e-9);
        assert_eq!((cold.saved, cold.decode), (0.0, 0.0));
    }

    #[test]
    fn nonsense_costs_nothing() {
        let work = Work { computed_tokens: f64::NAN, output_tokens: -5.0, ..Work::default() };
        assert_eq!(work.gpu_time(&Speed::default()), GpuTime::default());
    }
}

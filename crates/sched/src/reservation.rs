//! Credit booked on an endpoint for one request, and what its answer teaches.

use std::sync::Arc;

use types::{EndpointId, Timestamp};

use crate::EndpointState;
use crate::speed::Dispatch;

/// One request and its uncached prompt tokens, counted on an endpoint until this is dropped.
///
/// Whatever ends the request (answer, error, a client that leaves, a panic) drops the guard, so
/// no path can leak credit.
#[derive(Debug)]
#[must_use = "dropping a reservation gives its credit back"]
pub struct Reservation {
    state: Arc<EndpointState>,
    dispatch: Dispatch,
    sent_at: Timestamp,
    stage: Stage,
    has_trial: bool,
    comes_whole: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Prefilling,
    /// * `batch`: requests there at the first token.
    Decoding {
        since: Timestamp,
        batch: f32,
    },
    /// Nothing more to learn.
    Answered,
}

impl Reservation {
    pub(crate) fn new(
        state: Arc<EndpointState>,
        dispatch: Dispatch,
        has_trial: bool,
        sent_at: Timestamp,
    ) -> Self {
        Self { state, dispatch, sent_at, stage: Stage::Prefilling, has_trial, comes_whole: false }
    }

    pub fn endpoint(&self) -> EndpointId {
        self.state.id()
    }

    pub fn state(&self) -> &Arc<EndpointState> {
        &self.state
    }

    /// The answer will not come token by token.
    pub fn comes_whole(&mut self) {
        if matches!(self.stage, Stage::Prefilling) && !self.comes_whole {
            self.comes_whole = true;
            self.state.book_whole(&self.dispatch);
        }
    }

    /// The first token of an answer came: gives the prefill tokens back and learns from the time
    /// that they took. Further calls do nothing.
    ///
    /// Only for a good answer that comes token by token; for any other use [`Self::answered`].
    pub fn first_token(&mut self, now: Timestamp) {
        if self.leave_prefill(now) {
            let batch = self.state.present(now);
            self.stage = Stage::Decoding { since: now, batch };
            let elapsed = now.since(self.sent_at);
            self.state.learner().first_token(&self.dispatch, elapsed, now);
        }
    }

    /// An answer came whole, or an error: gives the prefill tokens back and learns nothing, since
    /// the time says nothing about the prefill. Further calls do nothing.
    pub fn answered(&mut self, now: Timestamp) {
        self.leave_prefill(now);
    }

    /// The answer ended well: learns the pace of its tokens. Further calls do nothing, nor does one
    /// without [`Self::first_token`] before.
    ///
    /// * `output_tokens`: as the engine counted them, the first included; `None` if it did not.
    pub fn finished(&mut self, output_tokens: Option<u32>, now: Timestamp) {
        if let (Stage::Decoding { since, batch }, Some(tokens)) = (self.stage, output_tokens) {
            // Arrivals and departures between the two ends even out over many answers.
            let batch = 0.5 * (batch + self.state.present(now));
            self.state.learner().finished(tokens, now.since(since), batch, now);
            self.stage = Stage::Answered;
        }
    }

    /// Whether this was still to be done.
    fn leave_prefill(&mut self, now: Timestamp) -> bool {
        let is_prefilling = matches!(self.stage, Stage::Prefilling);
        if is_prefilling {
            self.state.give_back_prefill(&self.dispatch, now);
            self.drop_whole();
            self.stage = Stage::Answered;
        }
        is_prefilling
    }

    fn drop_whole(&mut self) {
        if std::mem::take(&mut self.comes_whole) {
            self.state.drop_whole(&self.dispatch);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Prefilling) {
            self.state.drop_prefill(&self.dispatch);
            self.drop_whole();
        }
        self.state.give_back_request();
        if self.has_trial {
            self.state.ejection().give_back_trial();
        }
    }
}

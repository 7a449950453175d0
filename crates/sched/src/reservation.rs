//! Credit booked on an endpoint for one request.

use std::sync::Arc;

use types::{EndpointId, Timestamp};

use crate::EndpointState;

/// One request and its uncached prompt tokens, counted on an endpoint until this is dropped.
///
/// Whatever ends the request (answer, error, a client that leaves, a panic) drops the guard, so
/// no path can leak credit.
#[derive(Debug)]
#[must_use = "dropping a reservation gives its credit back"]
pub struct Reservation {
    state: Arc<EndpointState>,
    prefill_tokens: u32,
    has_trial: bool,
}

impl Reservation {
    pub(crate) fn new(state: Arc<EndpointState>, prefill_tokens: u32, has_trial: bool) -> Self {
        Self { state, prefill_tokens, has_trial }
    }

    pub fn endpoint(&self) -> EndpointId {
        self.state.id()
    }

    pub fn state(&self) -> &Arc<EndpointState> {
        &self.state
    }

    /// The prompt is computed: gives the prefill tokens back. Further calls do nothing.
    pub fn first_token(&mut self, _now: Timestamp) {
        self.state.give_back_prefill(self.prefill_tokens);
        self.prefill_tokens = 0;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.state.give_back(self.prefill_tokens);
        if self.has_trial {
            self.state.ejection().give_back_trial();
        }
    }
}

//! The metrics of one stream: open while it is, counted once when it ends.

use std::sync::Arc;

use telemetry::clock;
use telemetry::metrics::ExtProcMetrics;
use telemetry::metrics::labels::{ImmediateCode, StreamEnd};
use types::Timestamp;

use crate::settings::Picker;
use crate::wire::{ProcessingResponse, Response};

/// Counts a stream; dropping it closes the account.
pub(crate) struct Tally {
    picker: Arc<Picker>,
    begun: Timestamp,
    end: Option<StreamEnd>,
}

impl Tally {
    pub(crate) fn new(picker: &Arc<Picker>) -> Self {
        let tally = Self { picker: picker.clone(), begun: clock::now(), end: None };
        tally.metrics().streams_open.inc();
        tally
    }

    /// Something goes to the proxy.
    pub(crate) fn sent(&mut self, response: &ProcessingResponse) {
        if let Some(Response::Immediate(answer)) = &response.response {
            let status = answer.status.as_ref().and_then(|status| u16::try_from(status.code).ok());
            let code = ImmediateCode::of(status.unwrap_or_default());
            self.metrics().immediate_responses.of(code).inc();
            self.end = Some(StreamEnd::Answered);
        }
    }

    /// How the stream ends; the first word counts, save that an answer of ours is said after it.
    pub(crate) fn ended(&mut self, end: StreamEnd) {
        self.end.get_or_insert(end);
    }

    /// The proxy ended the stream, after the answer or before.
    pub(crate) fn closed(&mut self, is_complete: bool) {
        self.ended(if is_complete { StreamEnd::Complete } else { StreamEnd::Left });
    }

    fn metrics(&self) -> &ExtProcMetrics {
        &self.picker.gateway.metrics.gateway().extproc
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let metrics = self.metrics();
        metrics.streams_open.dec();
        metrics.stream_duration.observe(clock::now().since(self.begun));
        metrics.streams.of(self.end.unwrap_or(StreamEnd::Left)).inc();
    }
}

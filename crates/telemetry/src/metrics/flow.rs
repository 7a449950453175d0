//! What flow control tells of one pool's queue.

use super::cell::{By, Counter, Gauge, Histogram};
use super::labels::{Band, Rejection};
use super::series::Owned;
use crate::names;

/// Nearly all by band.
#[derive(Debug)]
pub struct FlowMetrics {
    pub queue_requests: By<Band, Gauge>,
    pub queue_tokens: By<Band, Gauge>,
    pub queue_bytes: By<Band, Gauge>,
    pub queue_duration: By<Band, Histogram>,
    pub dispatched: By<Band, Counter>,
    pub dispatched_beyond: By<Band, Counter>,
    /// `shed.of(band).of(reason)`.
    pub shed: By<Band, By<Rejection, Counter>>,
    pub unknown_objectives: Counter,
}

impl Default for FlowMetrics {
    fn default() -> Self {
        Self {
            queue_requests: By::default(),
            queue_tokens: By::default(),
            queue_bytes: By::default(),
            queue_duration: By::of_each(|| Histogram::of(&names::FLOW_QUEUE_DURATION)),
            dispatched: By::default(),
            dispatched_beyond: By::default(),
            shed: By::default(),
            unknown_objectives: Counter::default(),
        }
    }
}

impl FlowMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.gauges_by(&names::FLOW_QUEUE_REQUESTS, &self.queue_requests);
        out.gauges_by(&names::FLOW_QUEUE_TOKENS, &self.queue_tokens);
        out.gauges_by(&names::FLOW_QUEUE_BYTES, &self.queue_bytes);
        out.histograms_by(&names::FLOW_QUEUE_DURATION, &self.queue_duration);
        out.counters_by(&names::FLOW_DISPATCHED, &self.dispatched);
        out.counters_by(&names::FLOW_DISPATCHED_BEYOND, &self.dispatched_beyond);
        out.counters_by_two(&names::FLOW_SHED, &self.shed);
        out.counter(&names::FLOW_UNKNOWN_OBJECTIVES, &self.unknown_objectives);
    }
}

//! The cluster's gauges, and what became of sending them on.

use super::cell::{By, Counter, Gauge, Reading};
use super::labels::{CloudWatchFailure, EndpointState};
use super::series::Owned;
use crate::names;

/// Help texts of the fields: [`names::CLUSTER`].
#[derive(Debug)]
pub struct ClusterMetrics {
    pub endpoints: By<EndpointState, Gauge>,
    pub kv_usage: Reading,
    pub request_rate: Reading,
    pub error_ratio: Reading,
    pub shed_ratio: Reading,
    pub ttft_p99: Reading,
    pub duration_p99: Reading,
    pub input_token_rate: Reading,
    pub output_token_rate: Reading,
    pub capacity_requests: Reading,
    pub headroom_requests: Reading,
    pub prefill_capacity: Reading,
    pub prefill_headroom: Reading,
}

impl Default for ClusterMetrics {
    fn default() -> Self {
        let zero = || {
            let reading = Reading::default();
            reading.set(0.0);
            reading
        };
        Self {
            endpoints: By::default(),
            kv_usage: Reading::default(),
            request_rate: zero(),
            error_ratio: Reading::default(),
            shed_ratio: Reading::default(),
            ttft_p99: Reading::default(),
            duration_p99: Reading::default(),
            input_token_rate: zero(),
            output_token_rate: zero(),
            capacity_requests: zero(),
            headroom_requests: zero(),
            prefill_capacity: Reading::default(),
            prefill_headroom: Reading::default(),
        }
    }
}

impl ClusterMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.gauges_by(&names::CLUSTER_ENDPOINTS, &self.endpoints);
        for (metric, reading) in self.readings() {
            out.reading(metric, reading);
        }
    }

    /// All but the endpoints, in page order.
    pub fn readings(&self) -> [(&'static names::Metric, &Reading); 12] {
        [
            (&names::CLUSTER_KV_USAGE, &self.kv_usage),
            (&names::CLUSTER_REQUEST_RATE, &self.request_rate),
            (&names::CLUSTER_ERROR_RATIO, &self.error_ratio),
            (&names::CLUSTER_SHED_RATIO, &self.shed_ratio),
            (&names::CLUSTER_TTFT_P99, &self.ttft_p99),
            (&names::CLUSTER_DURATION_P99, &self.duration_p99),
            (&names::CLUSTER_INPUT_TOKEN_RATE, &self.input_token_rate),
            (&names::CLUSTER_OUTPUT_TOKEN_RATE, &self.output_token_rate),
            (&names::CLUSTER_CAPACITY_REQUESTS, &self.capacity_requests),
            (&names::CLUSTER_HEADROOM_REQUESTS, &self.headroom_requests),
            (&names::CLUSTER_PREFILL_CAPACITY, &self.prefill_capacity),
            (&names::CLUSTER_PREFILL_HEADROOM, &self.prefill_headroom),
        ]
    }
}

/// What was sent to CloudWatch; part of [`names::GATEWAY`].
#[derive(Debug, Default)]
pub struct CloudWatchMetrics {
    pub reports: Counter,
    pub failures: By<CloudWatchFailure, Counter>,
}

impl CloudWatchMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.counter(&names::CLOUD_WATCH_REPORTS, &self.reports);
        out.counters_by(&names::CLOUD_WATCH_FAILURES, &self.failures);
    }
}

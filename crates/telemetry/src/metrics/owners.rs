//! What belongs to the gateway, to a pool, to an endpoint.

use std::sync::{Arc, Mutex, PoisonError};

use types::EndpointMetrics;

use super::cell::{By, Counter, Gauge, Histogram, Reading};
use super::labels::{
    Abort, Connect, EndpointState, Outcome, Refusal, Rejection, Reload, Retry, Route,
    ScrapeAnomaly, ScrapeFailure,
};
use super::series::Owned;
use crate::names;

/// Which build runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildInfo {
    pub version: &'static str,
    /// Commit, or `unknown`.
    pub revision: &'static str,
}

/// Help texts of the fields: [`names::GATEWAY`].
#[derive(Debug)]
pub struct GatewayMetrics {
    build: BuildInfo,
    config_hash: Mutex<String>,
    pub config_reloads: By<Reload, Counter>,
    pub config_last_reload_success: Reading,
    pub connections_open: Gauge,
    pub connections_accepted: Counter,
    pub requests_open: Gauge,
    pub requests_refused: By<Refusal, Counter>,
    pub request_bytes: Counter,
    pub response_bytes: Counter,
    pub buffered_body_bytes: Gauge,
    /// Shared with the access log, which counts here.
    pub access_log_dropped_lines: Arc<Counter>,
    pub schedule_duration: Histogram,
    pub upstream_connects: By<Connect, Counter>,
    pub certificate_expiry: Reading,
}

impl GatewayMetrics {
    pub(super) fn new(build: BuildInfo) -> Self {
        Self {
            build,
            config_hash: Mutex::default(),
            config_reloads: By::default(),
            config_last_reload_success: Reading::default(),
            connections_open: Gauge::default(),
            connections_accepted: Counter::default(),
            requests_open: Gauge::default(),
            requests_refused: By::default(),
            request_bytes: Counter::default(),
            response_bytes: Counter::default(),
            buffered_body_bytes: Gauge::default(),
            access_log_dropped_lines: Arc::default(),
            schedule_duration: Histogram::of(&names::SCHEDULE_DURATION),
            upstream_connects: By::default(),
            certificate_expiry: Reading::default(),
        }
    }

    /// Hash of the configuration in force, as hexadecimal digits; replaces the former series.
    pub fn set_config_hash(&self, hash: &str) {
        hash.clone_into(&mut self.config_hash.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        let BuildInfo { version, revision } = self.build;
        out.info(&names::BUILD_INFO, &[("version", version), ("revision", revision)]);
        let hash = self.config_hash.lock().unwrap_or_else(PoisonError::into_inner);
        if !hash.is_empty() {
            out.info(&names::CONFIG_INFO, &[("hash", &hash)]);
        }
        out.counters_by(&names::CONFIG_RELOADS, &self.config_reloads);
        out.reading(&names::CONFIG_LAST_RELOAD_SUCCESS, &self.config_last_reload_success);
        out.gauge(&names::CONNECTIONS_OPEN, &self.connections_open);
        out.counter(&names::CONNECTIONS_ACCEPTED, &self.connections_accepted);
        out.gauge(&names::REQUESTS_OPEN, &self.requests_open);
        out.counters_by(&names::REQUESTS_REFUSED, &self.requests_refused);
        out.counter(&names::REQUEST_BYTES, &self.request_bytes);
        out.counter(&names::RESPONSE_BYTES, &self.response_bytes);
        out.gauge(&names::BUFFERED_BODY_BYTES, &self.buffered_body_bytes);
        out.counter(&names::ACCESS_LOG_DROPPED_LINES, &self.access_log_dropped_lines);
        out.histogram(&names::SCHEDULE_DURATION, &self.schedule_duration);
        out.counters_by(&names::UPSTREAM_CONNECTS, &self.upstream_connects);
        out.reading(&names::CERTIFICATE_EXPIRY, &self.certificate_expiry);
    }
}

/// Help texts of the fields: [`names::POOL`].
#[derive(Debug)]
pub struct PoolMetrics {
    /// `requests.of(route).of(outcome)`.
    pub requests: By<Route, By<Outcome, Counter>>,
    pub requests_in_flight: Gauge,
    pub request_duration: Histogram,
    pub request_ttft: Histogram,
    pub time_per_output_token: Histogram,
    pub stream_gap: Histogram,
    pub input_tokens: Counter,
    pub cached_input_tokens: Counter,
    pub output_tokens: Counter,
    pub retries: By<Retry, Counter>,
    pub requests_rejected: By<Rejection, Counter>,
    pub streams_aborted: By<Abort, Counter>,
    pub saturation: Reading,
    pub endpoints: By<EndpointState, Gauge>,
    pub prefix_blocks_looked_up: Counter,
    pub prefix_blocks_matched: Counter,
}

impl Default for PoolMetrics {
    fn default() -> Self {
        let saturation = Reading::default();
        saturation.set(0.0);
        Self {
            requests: By::default(),
            requests_in_flight: Gauge::default(),
            request_duration: Histogram::of(&names::REQUEST_DURATION),
            request_ttft: Histogram::of(&names::REQUEST_TTFT),
            time_per_output_token: Histogram::of(&names::TIME_PER_OUTPUT_TOKEN),
            stream_gap: Histogram::of(&names::STREAM_GAP),
            input_tokens: Counter::default(),
            cached_input_tokens: Counter::default(),
            output_tokens: Counter::default(),
            retries: By::default(),
            requests_rejected: By::default(),
            streams_aborted: By::default(),
            saturation,
            endpoints: By::default(),
            prefix_blocks_looked_up: Counter::default(),
            prefix_blocks_matched: Counter::default(),
        }
    }
}

impl PoolMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by_two(&names::REQUESTS, &self.requests);
        out.gauge(&names::REQUESTS_IN_FLIGHT, &self.requests_in_flight);
        out.histogram(&names::REQUEST_DURATION, &self.request_duration);
        out.histogram(&names::REQUEST_TTFT, &self.request_ttft);
        out.histogram(&names::TIME_PER_OUTPUT_TOKEN, &self.time_per_output_token);
        out.histogram(&names::STREAM_GAP, &self.stream_gap);
        out.counter(&names::INPUT_TOKENS, &self.input_tokens);
        out.counter(&names::CACHED_INPUT_TOKENS, &self.cached_input_tokens);
        out.counter(&names::OUTPUT_TOKENS, &self.output_tokens);
        out.counters_by(&names::RETRIES, &self.retries);
        out.counters_by(&names::REQUESTS_REJECTED, &self.requests_rejected);
        out.counters_by(&names::STREAMS_ABORTED, &self.streams_aborted);
        out.reading(&names::POOL_SATURATION, &self.saturation);
        out.gauges_by(&names::POOL_ENDPOINTS, &self.endpoints);
        out.counter(&names::PREFIX_BLOCKS_LOOKED_UP, &self.prefix_blocks_looked_up);
        out.counter(&names::PREFIX_BLOCKS_MATCHED, &self.prefix_blocks_matched);
    }
}

/// Help texts of the fields: [`names::ENDPOINT`].
#[derive(Debug, Default)]
pub struct EndpointGauges {
    /// 1 or 0.
    pub up: Gauge,
    pub waiting: Reading,
    pub running: Reading,
    pub kv_usage: Reading,
    pub resident_adapters: Reading,
    pub in_flight: Gauge,
    pub picks: Counter,
    pub ejections: Counter,
    pub scrape_age: Reading,
    pub scrapes: Counter,
    pub scrape_failures: By<ScrapeFailure, Counter>,
    pub scrape_anomalies: By<ScrapeAnomaly, Counter>,
}

impl EndpointGauges {
    /// Shows what a good scrape said: waiting, running and KV use.
    pub fn show(&self, scraped: &EndpointMetrics) {
        self.waiting.set(scraped.waiting.map(f64::from));
        self.running.set(scraped.running.map(f64::from));
        self.kv_usage.set(scraped.kv_usage.map(|usage| f64::from(usage.get())));
    }

    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.gauge(&names::ENDPOINT_UP, &self.up);
        out.reading(&names::ENDPOINT_WAITING, &self.waiting);
        out.reading(&names::ENDPOINT_RUNNING, &self.running);
        out.reading(&names::ENDPOINT_KV_USAGE, &self.kv_usage);
        out.reading(&names::ENDPOINT_RESIDENT_ADAPTERS, &self.resident_adapters);
        out.gauge(&names::ENDPOINT_IN_FLIGHT, &self.in_flight);
        out.counter(&names::ENDPOINT_PICKS, &self.picks);
        out.counter(&names::ENDPOINT_EJECTIONS, &self.ejections);
        out.reading(&names::ENDPOINT_SCRAPE_AGE, &self.scrape_age);
        out.counter(&names::ENDPOINT_SCRAPES, &self.scrapes);
        out.counters_by(&names::ENDPOINT_SCRAPE_FAILURES, &self.scrape_failures);
        out.counters_by(&names::ENDPOINT_SCRAPE_ANOMALIES, &self.scrape_anomalies);
    }
}

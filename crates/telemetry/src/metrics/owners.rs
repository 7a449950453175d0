//! What belongs to the gateway, to a pool, to an endpoint.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use types::EndpointMetrics;

use super::cell::{By, Counter, Distribution, Gauge, Histogram, Reading, Seconds};
use super::cluster::{CloudWatchMetrics, ClusterMetrics};
use super::flow::FlowMetrics;
use super::labels::{
    Abort, AuthMeans, AuthRefusal, Code, Connect, Direction, EndpointState, ImmediateCode,
    JwksFetch, Outcome, PeerLoss, Refusal, Rejection, Reload, Retry, Route, ScrapeAnomaly,
    ScrapeFailure, Shadow, Signal, StreamEnd, TraceEnd, Work,
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
    pub kubernetes_watch_failures: Counter,
    /// Shared with the recorder, which counts here.
    pub recording_dropped_lines: Arc<Counter>,
    /// Shared with the tracer and whoever exports.
    pub traces: Arc<By<TraceEnd, Counter>>,
    /// Shared with whoever speaks with the peers.
    pub peers: Arc<PeerMetrics>,
    pub schedule_duration: Histogram,
    pub upstream_connects: By<Connect, Counter>,
    pub certificate_expiry: Reading,
    pub extproc: ExtProcMetrics,
    pub auth: AuthMetrics,
    pub cloud_watch: CloudWatchMetrics,
    pub cluster: ClusterMetrics,
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
            kubernetes_watch_failures: Counter::default(),
            recording_dropped_lines: Arc::default(),
            traces: Arc::default(),
            peers: Arc::default(),
            schedule_duration: Histogram::of(&names::SCHEDULE_DURATION),
            upstream_connects: By::default(),
            certificate_expiry: Reading::default(),
            extproc: ExtProcMetrics::default(),
            auth: AuthMetrics::default(),
            cloud_watch: CloudWatchMetrics::default(),
            cluster: ClusterMetrics::default(),
        }
    }

    pub fn build(&self) -> &BuildInfo {
        &self.build
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
        out.counter(&names::KUBERNETES_WATCH_FAILURES, &self.kubernetes_watch_failures);
        out.counter(&names::RECORDING_DROPPED_LINES, &self.recording_dropped_lines);
        out.counters_by(&names::TRACES, &self.traces);
        self.peers.write(out);
        out.histogram(&names::SCHEDULE_DURATION, &self.schedule_duration);
        out.counters_by(&names::UPSTREAM_CONNECTS, &self.upstream_connects);
        out.reading(&names::CERTIFICATE_EXPIRY, &self.certificate_expiry);
        self.extproc.write(out);
        self.auth.write(out);
        self.cloud_watch.write(out);
        self.cluster.write(out);
    }
}

/// Streams that proxies have to the picker; part of [`names::GATEWAY`].
#[derive(Debug)]
pub struct ExtProcMetrics {
    pub streams_open: Gauge,
    pub streams: By<StreamEnd, Counter>,
    pub stream_duration: Histogram,
    pub immediate_responses: By<ImmediateCode, Counter>,
}

impl Default for ExtProcMetrics {
    fn default() -> Self {
        Self {
            streams_open: Gauge::default(),
            streams: By::default(),
            stream_duration: Histogram::of(&names::EXTPROC_STREAM_DURATION),
            immediate_responses: By::default(),
        }
    }
}

impl ExtProcMetrics {
    fn write(&self, out: &mut Owned<'_, '_>) {
        out.gauge(&names::EXTPROC_STREAMS_OPEN, &self.streams_open);
        out.counters_by(&names::EXTPROC_STREAMS, &self.streams);
        out.histogram(&names::EXTPROC_STREAM_DURATION, &self.stream_duration);
        out.counters_by(&names::EXTPROC_IMMEDIATE_RESPONSES, &self.immediate_responses);
    }
}

/// Who was let in and who was not; part of [`names::GATEWAY`].
#[derive(Debug, Default)]
pub struct AuthMetrics {
    pub accepted: By<AuthMeans, Counter>,
    pub refused: By<AuthRefusal, Counter>,
    pub api_keys: Gauge,
    pub reloads: By<Reload, Counter>,
    pub jwks_fetches: By<JwksFetch, Counter>,
    pub jwks_age: Reading,
    pub jwks_failing: Gauge,
}

impl AuthMetrics {
    fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by(&names::AUTH_ACCEPTED, &self.accepted);
        out.counters_by(&names::AUTH_REFUSED, &self.refused);
        out.gauge(&names::AUTH_API_KEYS, &self.api_keys);
        out.counters_by(&names::AUTH_RELOADS, &self.reloads);
        out.counters_by(&names::AUTH_JWKS_FETCHES, &self.jwks_fetches);
        out.reading(&names::AUTH_JWKS_AGE, &self.jwks_age);
        out.gauge(&names::AUTH_JWKS_FAILING, &self.jwks_failing);
    }
}

/// What passes between this gateway and its peers; part of [`names::GATEWAY`].
#[derive(Debug, Default)]
pub struct PeerMetrics {
    pub live: Gauge,
    pub datagrams: By<Direction, Counter>,
    pub bytes: By<Direction, Counter>,
    pub prefix_blocks: By<Direction, Counter>,
    pub losses: By<PeerLoss, Counter>,
}

impl PeerMetrics {
    fn write(&self, out: &mut Owned<'_, '_>) {
        out.gauge(&names::PEERS, &self.live);
        out.counters_by(&names::PEER_DATAGRAMS, &self.datagrams);
        out.counters_by(&names::PEER_BYTES, &self.bytes);
        out.counters_by(&names::PEER_PREFIX_BLOCKS, &self.prefix_blocks);
        out.counters_by(&names::PEER_LOSSES, &self.losses);
    }
}

/// Help texts of the fields: [`names::POOL`].
#[derive(Debug)]
pub struct PoolMetrics {
    /// `requests.of(route).of(outcome)`.
    pub requests: By<Route, By<Outcome, Counter>>,
    pub responses: By<Code, Counter>,
    pub requests_in_flight: Gauge,
    pub request_duration: Histogram,
    pub request_ttft: Histogram,
    pub time_per_output_token: Histogram,
    pub stream_gap: Histogram,
    pub input_tokens: Counter,
    pub cached_input_tokens: Counter,
    pub output_tokens: Counter,
    pub request_input_tokens: Distribution,
    pub request_output_tokens: Distribution,
    pub retries: By<Retry, Counter>,
    pub requests_rejected: By<Rejection, Counter>,
    pub streams_aborted: By<Abort, Counter>,
    /// Where requests wait for the pool; without flow control there is nothing to show.
    pub flow: OnceLock<FlowMetrics>,
    pub saturation: Reading,
    pub endpoints: By<EndpointState, Gauge>,
    pub prefix_blocks_looked_up: Counter,
    pub prefix_blocks_matched: Counter,
    pub prefix_tokens_believed: Counter,
    pub prefix_tokens_found: Counter,
    pub prefix_regressions: Counter,
    pub prefix_regressions_open: Gauge,
    pub prefix_loss: Reading,
    pub gpu_seconds: By<Work, Seconds>,
    pub gpu_saved_seconds: Seconds,
    pub prediction_error: Distribution,
    pub prediction_error_seconds: Seconds,
    pub prediction_observed_seconds: Seconds,
    pub shadow_decisions: By<Shadow, Counter>,
    pub shadow_regret: Distribution,
}

impl Default for PoolMetrics {
    fn default() -> Self {
        let saturation = Reading::default();
        saturation.set(0.0);
        let prefix_loss = Reading::default();
        prefix_loss.set(0.0);
        Self {
            requests: By::default(),
            responses: By::default(),
            requests_in_flight: Gauge::default(),
            request_duration: Histogram::of(&names::REQUEST_DURATION),
            request_ttft: Histogram::of(&names::REQUEST_TTFT),
            time_per_output_token: Histogram::of(&names::TIME_PER_OUTPUT_TOKEN),
            stream_gap: Histogram::of(&names::STREAM_GAP),
            input_tokens: Counter::default(),
            cached_input_tokens: Counter::default(),
            output_tokens: Counter::default(),
            request_input_tokens: Distribution::of(&names::REQUEST_INPUT_TOKENS),
            request_output_tokens: Distribution::of(&names::REQUEST_OUTPUT_TOKENS),
            retries: By::default(),
            requests_rejected: By::default(),
            streams_aborted: By::default(),
            flow: OnceLock::new(),
            saturation,
            endpoints: By::default(),
            prefix_blocks_looked_up: Counter::default(),
            prefix_blocks_matched: Counter::default(),
            prefix_tokens_believed: Counter::default(),
            prefix_tokens_found: Counter::default(),
            prefix_regressions: Counter::default(),
            prefix_regressions_open: Gauge::default(),
            prefix_loss,
            gpu_seconds: By::default(),
            gpu_saved_seconds: Seconds::default(),
            prediction_error: Distribution::of(&names::PREDICTION_ERROR),
            prediction_error_seconds: Seconds::default(),
            prediction_observed_seconds: Seconds::default(),
            shadow_decisions: By::default(),
            shadow_regret: Distribution::of(&names::SHADOW_REGRET),
        }
    }
}

impl PoolMetrics {
    /// The histograms that name traces.
    pub(super) fn with_exemplars(&self) -> [(&'static names::Metric, &Histogram); 2] {
        [
            (&names::REQUEST_DURATION, &self.request_duration),
            (&names::REQUEST_TTFT, &self.request_ttft),
        ]
    }

    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by_two(&names::REQUESTS, &self.requests);
        out.counters_by(&names::RESPONSES, &self.responses);
        out.gauge(&names::REQUESTS_IN_FLIGHT, &self.requests_in_flight);
        out.histogram(&names::REQUEST_DURATION, &self.request_duration);
        out.histogram(&names::REQUEST_TTFT, &self.request_ttft);
        out.histogram(&names::TIME_PER_OUTPUT_TOKEN, &self.time_per_output_token);
        out.histogram(&names::STREAM_GAP, &self.stream_gap);
        out.counter(&names::INPUT_TOKENS, &self.input_tokens);
        out.counter(&names::CACHED_INPUT_TOKENS, &self.cached_input_tokens);
        out.counter(&names::OUTPUT_TOKENS, &self.output_tokens);
        out.distribution(&names::REQUEST_INPUT_TOKENS, &self.request_input_tokens);
        out.distribution(&names::REQUEST_OUTPUT_TOKENS, &self.request_output_tokens);
        out.counters_by(&names::RETRIES, &self.retries);
        out.counters_by(&names::REQUESTS_REJECTED, &self.requests_rejected);
        out.counters_by(&names::STREAMS_ABORTED, &self.streams_aborted);
        if let Some(flow) = self.flow.get() {
            flow.write(out);
        }
        out.reading(&names::POOL_SATURATION, &self.saturation);
        out.gauges_by(&names::POOL_ENDPOINTS, &self.endpoints);
        out.counter(&names::PREFIX_BLOCKS_LOOKED_UP, &self.prefix_blocks_looked_up);
        out.counter(&names::PREFIX_BLOCKS_MATCHED, &self.prefix_blocks_matched);
        out.counter(&names::PREFIX_TOKENS_BELIEVED, &self.prefix_tokens_believed);
        out.counter(&names::PREFIX_TOKENS_FOUND, &self.prefix_tokens_found);
        out.counter(&names::PREFIX_REGRESSIONS, &self.prefix_regressions);
        out.gauge(&names::PREFIX_REGRESSIONS_OPEN, &self.prefix_regressions_open);
        out.reading(&names::PREFIX_LOSS, &self.prefix_loss);
        out.seconds_by(&names::GPU_SECONDS, &self.gpu_seconds);
        out.seconds(&names::GPU_SAVED_SECONDS, &self.gpu_saved_seconds);
        out.distribution(&names::PREDICTION_ERROR, &self.prediction_error);
        out.seconds(&names::PREDICTION_ERROR_SECONDS, &self.prediction_error_seconds);
        out.seconds(&names::PREDICTION_OBSERVED_SECONDS, &self.prediction_observed_seconds);
        out.counters_by(&names::SHADOW_DECISIONS, &self.shadow_decisions);
        out.distribution(&names::SHADOW_REGRET, &self.shadow_regret);
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
    pub saturation: Reading,
    pub prefill_tokens: Gauge,
    pub prefill_speed: Reading,
    pub step: Reading,
    pub signal_age: By<Signal, Reading>,
    pub picks: Counter,
    pub ejections: Counter,
    pub scrape_age: Reading,
    pub scrapes: Counter,
    pub scrape_failures: By<ScrapeFailure, Counter>,
    pub scrape_anomalies: By<ScrapeAnomaly, Counter>,
}

impl EndpointGauges {
    /// The reading behind one of the gauges that engines report.
    pub(super) fn reported(&self, metric: &'static names::Metric) -> Option<f64> {
        [
            (&names::ENDPOINT_WAITING, &self.waiting),
            (&names::ENDPOINT_RUNNING, &self.running),
            (&names::ENDPOINT_KV_USAGE, &self.kv_usage),
        ]
        .into_iter()
        .find(|(known, _)| std::ptr::eq(*known, metric))
        .and_then(|(_, reading)| reading.get())
    }

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
        out.reading(&names::ENDPOINT_SATURATION, &self.saturation);
        out.gauge(&names::ENDPOINT_PREFILL_TOKENS, &self.prefill_tokens);
        out.reading(&names::ENDPOINT_PREFILL_SPEED, &self.prefill_speed);
        out.reading(&names::ENDPOINT_STEP, &self.step);
        out.readings_by(&names::ENDPOINT_SIGNAL_AGE, &self.signal_age);
        out.counter(&names::ENDPOINT_PICKS, &self.picks);
        out.counter(&names::ENDPOINT_EJECTIONS, &self.ejections);
        out.reading(&names::ENDPOINT_SCRAPE_AGE, &self.scrape_age);
        out.counter(&names::ENDPOINT_SCRAPES, &self.scrapes);
        out.counters_by(&names::ENDPOINT_SCRAPE_FAILURES, &self.scrape_failures);
        out.counters_by(&names::ENDPOINT_SCRAPE_ANOMALIES, &self.scrape_anomalies);
    }
}

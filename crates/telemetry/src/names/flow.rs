//! Requests that wait their turn, by pool and band.

use super::buckets::TTFT_SECONDS;
use super::{Kind, Metric, Unit, metric};

/// Of pools whose requests wait here when they are full.
pub static FLOW: &[&Metric] = &[
    &FLOW_QUEUE_REQUESTS,
    &FLOW_QUEUE_TOKENS,
    &FLOW_QUEUE_BYTES,
    &FLOW_QUEUE_DURATION,
    &FLOW_DISPATCHED,
    &FLOW_DISPATCHED_BEYOND,
    &FLOW_SHED,
    &FLOW_UNKNOWN_OBJECTIVES,
];

pub static FLOW_QUEUE_REQUESTS: Metric = metric(
    "wicketgate_flow_queue_requests",
    Kind::Gauge,
    Unit::Count,
    &["pool", "band"],
    "Requests that wait for room in the pool.",
);

pub static FLOW_QUEUE_TOKENS: Metric = metric(
    "wicketgate_flow_queue_tokens",
    Kind::Gauge,
    Unit::Count,
    &["pool", "band"],
    "Their work: tokens of prompts that are not cached, and those expected of answers.",
);

pub static FLOW_QUEUE_BYTES: Metric = metric(
    "wicketgate_flow_queue_bytes",
    Kind::Gauge,
    Unit::Bytes,
    &["pool", "band"],
    "Bytes of their bodies.",
);

pub static FLOW_QUEUE_DURATION: Metric = metric(
    "wicketgate_flow_queue_duration_seconds",
    Kind::Histogram(TTFT_SECONDS),
    Unit::Seconds,
    &["pool", "band"],
    "How long a dispatched request had waited; those that found room at once are counted with zero.",
);

pub static FLOW_DISPATCHED: Metric = metric(
    "wicketgate_flow_dispatched_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "band"],
    "Requests that flow control let go.",
);

pub static FLOW_DISPATCHED_BEYOND: Metric = metric(
    "wicketgate_flow_dispatched_beyond_part_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "band"],
    "Of these, those of flows that had more than an equal part of what was in flight; they leave headroom.",
);

pub static FLOW_UNKNOWN_OBJECTIVES: Metric = metric(
    "wicketgate_flow_unknown_objectives_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Requests that named an objective that is not there, and were served without one.",
);

pub static FLOW_SHED: Metric = metric(
    "wicketgate_flow_shed_total",
    Kind::Counter,
    Unit::Count,
    &["pool", "band", "reason"],
    "Requests that flow control refused or gave up, by reason.",
);

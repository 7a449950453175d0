//! Conversations with proxies.

use super::buckets::REQUEST_SECONDS;
use super::{Kind, Metric, Unit, metric};

pub static EXTPROC_STREAMS_OPEN: Metric = metric(
    "wicketgate_extproc_streams_open",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Requests for which a proxy has a stream to the picker open (ext_proc).",
);

pub static EXTPROC_STREAMS: Metric = metric(
    "wicketgate_extproc_streams_total",
    Kind::Counter,
    Unit::Count,
    &["end"],
    "Ended streams of proxies by how they ended.",
);

pub static EXTPROC_STREAM_DURATION: Metric = metric(
    "wicketgate_extproc_stream_duration_seconds",
    Kind::Histogram(REQUEST_SECONDS),
    Unit::Seconds,
    &[],
    "How long a proxy's stream was open.",
);

pub static EXTPROC_IMMEDIATE_RESPONSES: Metric = metric(
    "wicketgate_extproc_immediate_responses_total",
    Kind::Counter,
    Unit::Count,
    &["code"],
    "Answers that a proxy was told to give in the endpoint's place, by status.",
);

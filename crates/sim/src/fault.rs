//! Ways to misbehave, as an admin call or the header `x-sim-fault` asks for them.
//!
//! ```json
//! {"kind": "cut", "after_chunks": 3, "reset": true, "share": 0.5}
//! {"kind": "error", "status": 429, "retry_after": "2", "next": 4}
//! {"kind": "metrics_garbage", "what": "nan"}
//! ```

mod active;

use serde::{Deserialize, Serialize};

pub(crate) use active::Faults;

/// A way to misbehave, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// Share of the requests that it strikes, 0 to 1, drawn by the server's seed.
    #[serde(default = "always")]
    pub share: f64,
    /// Strikes this many requests, then never again. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
    /// Over after so many milliseconds. Absent: lasts until `DELETE /admin/fault`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Strikes only requests whose path begins so. Absent: every generating path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

fn always() -> f64 {
    1.0
}

/// What goes wrong. A *chunk* is one event with a token in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// Silence: before the head, or with `after_chunks` in the middle of the stream.
    Stall { after_chunks: Option<u32> },
    /// The connection ends: before the head, or with `after_chunks` in the middle of the stream
    /// (0: right after the head). With `reset` by RST, else by FIN.
    Cut {
        after_chunks: Option<u32>,
        #[serde(default)]
        reset: bool,
    },
    /// An error status instead of an answer.
    Error {
        status: u16,
        retry_after: Option<String>,
        /// Absent: the engine's own error object.
        body: Option<String>,
        content_type: Option<String>,
    },
    /// The head comes late; with `drip_ms` also a byte at a time.
    SlowHeaders {
        delay_ms: u64,
        #[serde(default)]
        drip_ms: u64,
    },
    /// The head comes at once, the first byte of the body late.
    SlowFirstByte { delay_ms: u64 },
    /// An error object within the 200 stream after so many chunks, then the end.
    ErrorEvent {
        #[serde(default)]
        after_chunks: u32,
        /// Whether `[DONE]` follows, as vLLM does it.
        #[serde(default)]
        done: bool,
    },
    /// A 200 stream that ends before its first event.
    EmptyStream,
    /// A stream that ends properly but without its terminal event.
    NoDone,
    /// Fewer body bytes than `Content-Length` says, then the end of the connection. Strikes
    /// answers that are not streamed.
    TruncatedBody { bytes: usize },
    /// `usage` holds texts, negative numbers and nulls.
    OddUsage,
    /// `usage` is absent even if asked for.
    NoUsage,
    /// Legal but rare ways to answer.
    Odd {
        /// 103 before the head.
        #[serde(default)]
        early_hints: bool,
        /// Trailers after a chunked body.
        #[serde(default)]
        trailers: bool,
        /// No `Content-Type`.
        #[serde(default)]
        no_content_type: bool,
        /// The body's end is the connection's end.
        #[serde(default)]
        until_close: bool,
        /// SSE comments between events.
        #[serde(default)]
        comments: bool,
        /// Each event is sent in pieces of so many bytes.
        #[serde(default)]
        split_bytes: Option<usize>,
    },
    /// The metrics page stays as it is now.
    MetricsFrozen,
    /// The metrics page is nonsense.
    MetricsGarbage { what: Garbage },
    /// The metrics page takes so long.
    MetricsSlow { delay_ms: u64 },
    /// The metrics page is an error.
    MetricsError { status: u16 },
    /// The listener and all connections are closed; the engine keeps its caches.
    Refuse,
    /// The process ends and comes back with cold caches and counters at 0.
    Restart {
        #[serde(default)]
        down_ms: u64,
    },
    /// A request whose body holds `marker` ends the process as [`FaultKind::Restart`] does.
    Poison {
        marker: String,
        #[serde(default)]
        down_ms: u64,
    },
    /// The adapter is gone, and nobody was told.
    UnloadAdapter { adapter: String },
}

/// Kinds of nonsense on a metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Garbage {
    Nan,
    Infinity,
    Negative,
    /// 1e308.
    Huge,
    /// A word where a number belongs.
    Text,
    /// Every line twice, the second time with another value.
    Duplicate,
    /// Bytes that are no UTF-8.
    Binary,
    Empty,
    /// 50 MB of comments before the first value.
    Giant,
    /// The page stops in the middle of a line.
    Truncated,
}

impl FaultKind {
    pub(crate) fn strikes_metrics(&self) -> bool {
        matches!(
            self,
            Self::MetricsFrozen
                | Self::MetricsGarbage { .. }
                | Self::MetricsSlow { .. }
                | Self::MetricsError { .. }
        )
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self { kind, share: 1.0, next: None, duration_ms: None, path: None }
    }
}

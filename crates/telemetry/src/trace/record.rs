//! One request as a trace shows it: numbers, times, and names from the configuration. Never text of a
//! prompt or an answer; there is no field that could hold it.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use types::{ModelName, PoolName, Priority, TenantName, Timestamp};

use super::{SpanId, TraceId};
use crate::access_log::ClosedBy;
use crate::metrics::labels::{Outcome, Route};

/// A part of a request's life before an endpoint gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Who sends it is found out.
    Auth,
    /// The body arrives.
    Read,
    /// Limits are held against it.
    Limits,
    /// It waits for its pool.
    Queue,
    /// An endpoint is chosen.
    Pick,
}

impl Step {
    /// Name of its span and of its entry in `server-timing`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Read => "read",
            Self::Limits => "limits",
            Self::Queue => "queue",
            Self::Pick => "pick",
        }
    }
}

/// One endpoint tried.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// What the endpoint was told as its parent.
    pub span: SpanId,
    /// `host:port`.
    pub endpoint: Box<str>,
    /// `vllm`, `sglang`, … or `unknown`.
    pub engine: &'static str,
    pub begun: Timestamp,
    /// A new connection: from when to when. `None`: one that was open.
    pub connect: Option<(Timestamp, Timestamp)>,
    /// The head of its answer.
    pub answered: Option<Timestamp>,
    pub first_payload: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// 0: it did not answer.
    pub status: u16,
    /// Why another was tried, or none; a word of ours.
    pub failure: Option<&'static str>,
}

/// What [`super::Tracer`] gets of a request that has ended and is kept.
#[derive(Clone, Debug)]
pub struct TraceRecord {
    pub trace: TraceId,
    /// The span of the whole request.
    pub span: SpanId,
    /// The caller's span.
    pub parent: Option<SpanId>,
    /// What callers and endpoints were told; a trace that failed is kept all the same.
    pub sampled: bool,
    pub received: Timestamp,
    pub ended: Timestamp,
    /// Wall time of [`Self::ended`].
    pub ended_wall: SystemTime,
    pub steps: Vec<(Step, Timestamp, Timestamp)>,
    pub attempts: Vec<AttemptRecord>,
    pub request_id: Box<str>,
    pub method: Box<str>,
    pub route: Route,
    /// The route's path as it is documented, not as it was sent.
    pub path: &'static str,
    pub client: SocketAddr,
    pub tenant: TenantName,
    pub priority: Option<Priority>,
    /// The configured objective that held for it.
    pub objective: Option<Box<str>>,
    pub model: Option<ModelName>,
    pub pool: Option<PoolName>,
    pub stream: bool,
    pub status: u16,
    pub outcome: Outcome,
    pub closed_by: ClosedBy,
    /// Who failed, and how.
    pub error: Option<(&'static str, &'static str)>,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    /// As the gateway estimates them.
    pub estimated_tokens: u32,
    pub prompt_blocks: u32,
    pub matched_blocks: u32,
    pub ttft: Option<Duration>,
    pub predicted: Option<Duration>,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

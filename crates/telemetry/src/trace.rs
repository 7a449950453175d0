//! What a trace knows of a request, gathered without a lock and handed over when the request has ended.
//!
//! Requests book times; spans are made of them by whoever exports, on a thread of its own. So a request
//! that is not sampled pays for an id and a handful of instants.

mod context;
mod record;
mod sampling;
mod tracer;

pub use context::{Baggage, SpanId, TraceContext, TraceId};
pub use record::{AttemptRecord, Step, TraceRecord};
pub use sampling::Sampling;
pub use tracer::{QUEUE_RECORDS_MAX, Queued, Tracer};

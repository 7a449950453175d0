//! Sends metrics of a cluster or, from a router, of a fleet to Amazon CloudWatch, on a thread of its own.
//!
//! Either as lines of the embedded metric format, which an agent sends on, or by `PutMetricData`. A report that
//! does not arrive is counted, said once, and forgotten; nothing waits for it.

mod api;
mod credentials;
mod emf;
mod fleet;
mod put;
mod report;
mod reporter;

pub use fleet::{FleetLevels, MemberLevels};
pub use report::{Group, Report, Value};
pub use reporter::{Reporter, Source};

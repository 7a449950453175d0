//! The vocabulary that every other crate shares: ids, time, units, endpoints and what they report.
//!
//! No I/O, no async, no clock: an instant is always an argument.

mod adapter;
mod endpoint;
mod ids;
mod metrics;
mod time;
mod units;

pub use adapter::AdapterId;
pub use endpoint::{AddressError, Endpoint, EndpointAddress, EngineKind};
pub use ids::{EndpointId, ModelName, PoolName, Slot};
pub use metrics::{EndpointMetrics, LoraMetrics};
pub use time::Timestamp;
pub use units::{Ratio, RatioError};

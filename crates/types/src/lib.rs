//! The vocabulary that every other crate shares: ids, time, units, endpoints and what they report.
//!
//! No I/O, no async, no clock: an instant is always an argument.

mod adapter;
mod endpoint;
mod entitlement;
mod ids;
mod metrics;
mod standing;
mod time;
mod units;

pub use adapter::AdapterId;
pub use endpoint::{AddressError, Endpoint, EndpointAddress, EngineKind};
pub use entitlement::Priority;
pub use ids::{
    EndpointId, Label, MemberName, ModelName, ObjectiveName, PoolName, Region, Slot, TenantName,
};
pub use metrics::{EndpointMetrics, LoraMetrics};
pub use standing::{Saturation, Standing};
pub use time::Timestamp;
pub use units::{Ratio, RatioError};

//! What model servers say: their metric pages and model lists, and when to ask again.
//!
//! Pure: bytes and times go in, values come out. Fetching is the gateway's.

pub mod cadence;
mod dialect;
pub mod exposition;
pub mod models;
mod page;

pub use dialect::{METRICS_PATHS, detect, metrics_paths};
pub use page::{Anomalies, PAGE_BYTES_MAX, Page, PageError, parse};

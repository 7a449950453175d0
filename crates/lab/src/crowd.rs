//! Flow control in the laboratory: tenants and priorities before a fleet that may be too small.
//!
//! [`Crowd`] is who comes; [`Crowd::play`] sends them through the production queue (`flow::Queue`) and
//! the production picker to simulated engines. [`claims`] holds what is claimed of flow control, each
//! with the runs that show it; [`ceilings`] compares how full an engine's own queue should be kept.

pub mod ceilings;
pub mod claims;
mod guests;
mod play;
#[cfg(test)]
mod tests;

pub(crate) use guests::{Guests, Patience};
pub use guests::{Wait, Waits};
pub use play::{Class, Crowd, Played};

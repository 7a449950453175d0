//! Limits that several routers share: who may spend how much of them, for the next two seconds.
//!
//! One [`Authority`] knows what each holder is asked for and divides each limit; a [`Holder`] spends its part without
//! asking anybody. What an authority grants holds only for a while, so a holder that dies, or a store that is gone,
//! loses at most one lease. The parts that are out at any time never sum to more than the whole, also while messages
//! are lost: an old part counts until it has ended.
//!
//! ```text
//! limits::Limiter ─demands─▶ Holder ─Ask─▶ (wire) ─▶ Authority ─Grant─▶ (wire) ─▶ Holder ─Allowance─▶ limits::Limiter
//! ```

mod authority;
mod division;
mod holder;

pub use authority::{Answer, Ask, Authority, Grant, Want};
pub use holder::{Holder, Key, Outage};

use std::time::Duration;

/// How long a lease holds.
pub const LEASE: Duration = Duration::from_secs(2);
/// How often a holder asks: one message may be lost before it is cut off.
pub const REFRESH: Duration = Duration::from_millis(666);

//! Holds requests while a pool is saturated, decides who goes next, and says honestly when to come back.
//!
//! Does no I/O, reads no clock and draws no randomness: every instant is an argument. Hence the
//! gateway and the laboratory run the very same decisions.
//!
//! One [`Queue`] for each pool. A request that nothing stands in front of takes the short way
//! ([`Queue::pass`]); any other is [`Queue::offer`]ed and either waits or is [`Refused`] with the
//! time to come back. Whenever capacity frees, [`Queue::next`] names who may go:
//!
//! 1. *between bands* strict priority, save that a band with a reserved share gets that share;
//! 2. *between the flows of a band* fairness by tokens of work ([`Fairness`]);
//! 3. *inside a flow* one order ([`Ordering`]).
//!
//! ```text
//! offer ─▶ room? ─no─▶ evict lower band, or the longest flow of its own ─▶ else Refused + promise
//!            │yes                                                            (place in Promises)
//!            ▼
//!        Band ─▶ flow ─▶ items      next ─▶ best band below its ceiling ─▶ fairest flow ─▶ its first
//! ```
//!
//! What was dispatched and has not answered yet can be looked up for revocation in [`Dispatched`].
//!
//! **Times out of order are harmless**: one that lies before an earlier one counts as no time gone by.

mod band;
mod config;
mod dispatched;
mod flows;
mod held;
mod lately;
mod outcome;
mod promises;
mod queue;
mod rates;
mod store;
mod work;

pub use config::{BandConfig, Config, Fairness, Limits, NoEndpoint, OnSaturation, Ordering};
pub use dispatched::{DispatchId, Dispatched, REVOKED_AT_ONCE_MAX};
pub use outcome::{Bound, Ended, Evicted, Expiry, Reason, Refused, Scope, Victim};
pub use queue::{BandStats, Dispatch, Forecast, Preview, Queue};
pub use work::{FlowKey, TOKENS_MAX, Ticket, Work};

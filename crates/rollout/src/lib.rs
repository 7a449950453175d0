//! How requests for one model name are split over several targets, and when a target is taken back.
//!
//! A [`Rollout`] belongs to one rule of the document. It deals requests out so that every stretch of
//! them keeps the weights ([`Sequence`]), or by a key so that a session stays where it is
//! ([`Weights::for_key`]); it keeps a bounded window of how each target does ([`Window`]) and takes a
//! target's traffic away when it does worse than the stable one ([`judge`]).
//!
//! No I/O, no clock, no randomness: instants and seeds are arguments.

mod judge;
mod rollout;
mod sequence;
mod sketch;
mod status;
mod weights;
mod window;

pub use judge::{Breach, Guard, judge};
pub use rollout::{Plan, Reason, Refused, RollBack, Rollout, Sample, Target};
pub use sequence::Sequence;
pub use sketch::Sketch;
pub use status::{Phase, Status, TargetStatus};
pub use weights::{WEIGHT_MAX, Weights};
pub use window::{Summary, Window};

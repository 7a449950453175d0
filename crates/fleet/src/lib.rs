//! Decisions of the tier over many clusters: who is alive, who gets a request, who may spend how much.
//!
//! A [`Member`] is a cluster's gateway. It tells of itself in [`Heartbeat`]s; what requests meet there is
//! told by [`Outcome`]s. A [`Fleet`] makes of both each member's [`Condition`] and its [`Ramp`], and
//! [`Fleet::choose`] an ordered [`Choice`] of at most two members. [`lease`] divides limits over several
//! routers, [`shaping`] knows prices.
//!
//! No I/O, no async, no clock, no randomness: instants and the random generator are arguments.
//!
//! ```text
//! Heartbeat ─▶ heard ──┐
//! Outcome ──▶ outcome ─┼─▶ Vitals, Ramp ─▶ published View ─▶ choose ─▶ Choice ─▶ Booking (until dropped)
//! time ─────▶ tick ────┘
//! ```

pub mod lease;
pub mod shaping;

mod choice;
mod choose;
mod cost;
mod event;
mod fleet;
mod heartbeat;
mod ledger;
mod member;
mod outcome;
mod ramp;
mod report;
mod request;
mod settings;
mod sketch;
mod status;
mod vitals;
mod weights;

pub use choice::{Candidate, Choice, Pick, Reason, Refusal};
pub use choose::Scratch;
pub use event::{Cause, Event};
pub use fleet::Fleet;
pub use heartbeat::{Adapter, Heartbeat, HeartbeatError, ModelLoad, Rejected};
pub use ledger::{Booking, Slot};
pub use member::{Labels, Member, MemberId};
pub use outcome::Outcome;
pub use ramp::Ramp;
pub use report::Report;
pub use request::{Aim, Request};
pub use settings::{Mode, Settings};
pub use sketch::Sketch;
pub use status::{MemberStatus, ModelStatus, Status};
pub use types::{Label, MemberName, Region};
pub use vitals::Condition;
pub use weights::{Weights, WeightsError};

//! Gateways of one deployment tell each other what they send where.
//!
//! Without that, each of them sees the others' requests only on the next metrics page, and a
//! conversation that reaches another gateway finds its prefix by luck. Two things are shared: what
//! each has in flight on each endpoint ([`sched::Credit`]), and which prompt blocks it sent there.
//!
//! Who is there is `chitchat`'s affair: a gossip with seeds, failure detection and forgetting. What
//! is shared goes straight to every live peer in datagrams that fit any path, fifty times a
//! second: a credit is a state, sent again until it is heard, and a lost prompt costs one cache
//! hit. Nobody leads, nobody is asked, and no request waits for a peer. A gateway that hears nobody
//! works as one that is alone.
//!
//! Reading order: [`Sharing`] is all that is decided, without I/O; [`Peers`] carries it over UDP.

mod books;
mod chains;
mod keys;
mod message;
mod peers;
mod seal;
mod seeds;
mod settings;
mod sharing;
#[cfg(test)]
mod testing;
mod wire;

pub use keys::Key;
pub use message::MESSAGE_BYTES_MAX;
pub use peers::{OpenError, Peers};
pub use settings::Settings;
pub use sharing::Sharing;

//! Resources of the Gateway API (a Gateway and its routes) and its Inference Extension (pools, objectives, rewrites).
//!
//! Everything that was seen is a [`World`]; [`resolve`] makes of it what a gateway adds to its document, and
//! what the resources are told in their status. It is a function of the world alone, so the order in which
//! events came cannot matter.

mod attach;
mod backends;
mod conditions;
mod follow;
mod gateways;
mod kind;
mod listeners;
mod object;
mod objectives;
mod pools;
mod resolve;
mod resources;
mod rewrites;
mod served;
#[cfg(test)]
mod tests;
mod world;
mod writer;

pub use follow::follow;
pub use object::{Key, KeyError};
pub use pools::Pools;
pub use served::{Served, ServedGateway};

//! The laboratory of the tier over clusters: production decisions of `fleet` over modelled clusters, in virtual time.
//!
//! A [`World`] is regions, clusters and the round trips between them; a [`Scenario`] what happens to it; [`play`] runs
//! it under a [`Policy`] and gives an [`Outcome`] with the [`Verdict`]s on what must always hold.
//!
//! What decides is the product's own code: each region has a router with a `fleet::Fleet` of its own, fed by
//! heartbeats that arrive late, and by what its requests and probes meet; limits are `limits::Limiter`s with
//! `fleet::lease`. What is modelled: a cluster is for each model a number of places with a queue before them
//! ([`cluster`]), and networks have the speed of light.

mod cluster;
mod leases;
mod measure;
mod play;
mod policy;
mod router;
mod scenario;
#[cfg(test)]
mod tests;
mod verdict;
mod world;

pub use measure::Outcome;
pub use play::{Settings, play};
pub use policy::{Policy, UnknownPolicy};
pub use scenario::{SCENARIOS, Scenario, UnknownScenario};
pub use verdict::{Verdict, judge};
pub use world::World;

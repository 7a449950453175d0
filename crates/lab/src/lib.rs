//! The routing laboratory: the production decision code against simulated engines, in virtual time.
//!
//! A [`Scenario`] is a fleet and a kind of traffic. [`Plan::new`] computes what the fleet can do at
//! most, so that a load is always a share of it. [`Plan::run`] plays one [`Policy`] under one load
//! and seed and gives a [`Run`], whose [`Plan::result`] is one line of the report.
//!
//! ```text
//! Workload ──request──► Gateway ──network──► Endpoint (sim::engine) ──tokens──► Run
//!                        ▲  sched: observe, pick, reserve         │
//!                        │  prefix: matches, record               │
//!                        └──────────── scrapes, late ─────────────┘
//! ```
//!
//! What decides is the product's own code: `sched::EndpointState` with its ledger, `sched::Profile`,
//! `prefix::PrefixIndex`, `engines::Cadence`. It learns what a gateway can learn: prompts, first
//! tokens, ends, and scrapes that are as old as in life. Only the policy `oracle-ttft` looks into
//! the engines. A run has no clock, no I/O and no thread; equal arguments give equal results.
//!
//! A seed fixes arrivals, lengths and sharing; every policy sees the same requests.

pub mod capacity;

mod arrivals;
mod change;
mod endpoint;
mod gateway;
mod lengths;
mod measure;
mod plan;
mod policy;
mod prompt;
mod scenario;
mod simulation;
mod workload;

pub use change::Change;
pub use measure::{EndpointBooks, Percentiles, Record, Run, RunResult};
pub use plan::{Plan, PlanError, Settings, Traffic};
pub use policy::{Policy, UnknownPolicy};
pub use prompt::{Segment, block_hashes};
pub use scenario::{Group, SCENARIOS, Scenario, Slo, UnknownScenario};
pub use workload::{Request, Workload};

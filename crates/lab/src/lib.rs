//! The routing laboratory: the production decision code against simulated engines, in virtual time.
//!
//! A [`Scenario`] is a fleet, a kind of traffic and perhaps [`Fault`]s. [`Plan::new`] computes what
//! the fleet can do at most, so that a load is always a share of it. [`Plan::run`] plays one
//! [`Policy`] under one load and seed and gives a [`Run`], whose [`Plan::result`] is one line of the
//! report.
//!
//! ```text
//! Workload ──request──► Gateway ──network──► Endpoint (sim::engine) ──tokens──► Run
//!                        ▲  sched: observe, pick, reserve         │
//!                        │  prefix: matches, record               │
//!                        └──────────── scrapes, late ─────────────┘
//! ```
//!
//! What decides is the product's own code: `sched::EndpointState` with its ledger and ejection,
//! `sched::Profile`, `sched::RetryBudget`, `prefix::PrefixIndex`, `engines::Cadence`. It learns what
//! a gateway can learn: prompts, first tokens, ends, failures, and scrapes that are as old as in
//! life. Only the policies named `oracle` look into the engines. A run has no clock and no I/O; equal
//! arguments give equal results, also where pools that share nothing are played by several threads.
//!
//! A seed fixes arrivals, lengths, sharing, adapters and the engines' jitter; every policy sees the
//! same requests. Engines are played in runs of steps (`Engine::begin_run`), which is the same as
//! step by step; a test plays both.

pub mod capacity;
pub mod statistics;

mod arrivals;
mod change;
pub mod crowd;
mod endpoint;
mod fault;
mod gateway;
pub mod globe;
mod lengths;
mod measure;
mod plan;
mod policy;
mod prompt;
mod replay;
mod scenario;
mod simulation;
mod trace;
mod workload;

pub use change::Change;
pub use fault::{Fault, FaultKind};
pub use measure::{EndpointBooks, Fate, FaultResult, Percentiles, Record, Run, RunResult, Sample};
pub use plan::{Plan, PlanError, Settings, Traffic};
pub use policy::{Policy, UnknownPolicy};
pub use prompt::{Segment, block_hashes};
pub use replay::{LearnedEngine, Replay, Speed, Weights, policy_of};
pub use scenario::{Group, Lora, Pool, SCENARIOS, Scenario, Slo, UnknownScenario};
pub use workload::{Request, Workload};

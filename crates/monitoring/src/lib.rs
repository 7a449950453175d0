//! What watches a gateway from outside: recording rules, alerts with their runbook, dashboards.
//!
//! All of it is data here and files under `deploy/` and `docs/runbook.md`, written by `cargo xtask docs`.
//! Not part of the binary. Tests hold every query against the closed list of metrics; `cargo xtask test`
//! (part `prometheus`) asks a real Prometheus every one of them.

pub mod alerts;
pub mod dashboards;
mod files;
mod grafana;
pub mod layout;
mod prometheus;
pub mod queries;
pub mod rules;
mod runbook;
mod yaml;

pub use files::{File, files};

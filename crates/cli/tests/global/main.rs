//! `wicketgate global` in front of real clusters: each a `serve` before simulated engines, all of them processes.
//!
//! What needs a Redis or network namespaces is ignored unless asked for: `cargo xtask test --only global`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod blackholes;
mod choice;
mod drains;
mod failures;
mod faults;
mod heartbeats;
#[path = "../e2e/http.rs"]
#[allow(dead_code, reason = "shared with the tests of one cluster, which use all of it")]
mod http;
mod limits;
mod load;
mod money;
mod process;
mod redis;
mod relay;
mod shown;
mod stand;

/// What the shared client takes from the stand that it was made for.
mod gateway {
    pub(crate) use crate::process::PATIENCE;
}

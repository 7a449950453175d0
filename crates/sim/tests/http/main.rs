//! The simulated servers over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail as tests do"
)]

mod client;
mod dialects;
mod engines_view;
mod faults;
mod lifecycle;
mod metrics_faults;

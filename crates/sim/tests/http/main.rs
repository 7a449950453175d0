//! The simulated servers over real sockets.

mod client;
mod dialects;
mod engines_view;
mod faults;
mod lifecycle;
mod metrics_faults;

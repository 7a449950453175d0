//! The services over real connections, with a client that says what no proxy would.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod client;
mod drain;
mod health;
mod server;
mod streams;
mod tls;

//! `wicketgate serve` from outside: the built binary between raw clients and simulated endpoints.
//!
//! One test binary, so that it links once. Each test has a gateway process and a fleet of its own;
//! clients are plain sockets, so that every byte on the wire is the test's own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod accounting;
mod auth;
mod bodies;
mod bodies_any;
mod canaries;
mod clients;
mod collector;
mod commands;
mod console;
mod drain;
mod failures;
mod flow;
mod front;
mod gate;
mod gateway;
mod h2c;
mod headers;
mod http;
mod http2;
mod lora;
mod malformed;
mod manners;
mod page;
mod paths;
mod peers;
mod rate_limits;
mod recording;
mod reload;
mod rewriting;
mod rollouts;
mod routing;
mod scenarios;
mod scripted;
mod seen;
mod signals;
mod sims;
mod streams;
mod tls;
mod traces;

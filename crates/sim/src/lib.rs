//! Simulated model servers: from outside vLLM, SGLang, TGI or TensorRT-LLM, inside a model of the
//! engine with the step times of a named model on a named GPU.
//!
//! Two halves. [`engine`] has no clock and no I/O, so that it runs in virtual time as well as
//! behind HTTP. [`Fleet`] puts engines behind HTTP on the loopback in real time, with faults that
//! can be switched on by an admin call; [`Args`] and [`run`] are `wicketgate sim`.
//!
//! The servers speak HTTP/1.1 through their own small writer (`wire`), because half of their use
//! is to misbehave in ways that a proper HTTP library does not allow.

mod args;
mod dialect;
pub mod engine;
mod fault;
mod fleet;
mod metrics;
mod quirks;
mod server;
mod tokens;
mod wire;
mod words;

pub use args::{Args, Group, GroupError, RunError, run};
pub use fault::{Fault, FaultKind, Garbage};
pub use fleet::{Fleet, ServerHandle, ServerSpec, StartError};
pub use quirks::Quirks;
pub use server::{LogPage, LoggedRequest, Outcome};

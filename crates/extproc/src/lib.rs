//! The Envoy data path: the picker and the body-based router behind `ext_proc`.
//!
//! Envoy (or Istio, Envoy Gateway, agentgateway, …) carries the bytes and opens one gRPC stream for
//! each request. A [`Conversation`] is such a stream as a function of messages to messages; it drives the same
//! [`gateway::Exchange`] as the built-in proxy, so the two cannot decide differently. Around it: the
//! gRPC service, health, TLS.

mod codec;
mod conversation;
mod credentials;
mod destinations;
mod grpc;
mod head;
mod health;
mod names;
mod refusal;
mod replies;
mod server;
mod settings;
mod tally;
#[cfg(test)]
mod testing;
mod trace;
pub mod wire;

pub use conversation::{Conversation, Next, Violation};
pub use destinations::Destinations;
pub use server::{Listeners, PROTOCOLS, Phase, ServeError, listen, serve};
pub use settings::{DESTINATIONS_MAX, Paths, Picker, Role, Settings};

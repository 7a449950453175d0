//! The built-in data path: HTTP from clients, HTTP to endpoints.
//!
//! One thread for each core, each with its own connections and its own event loop, so that a
//! request is served from its first byte to its last without a lock, a hand-over or a wake-up on
//! another core.

mod admin;
mod answer;
mod drain;
mod fetch;
mod fields;
mod forward;
mod h1;
mod h2;
mod handler;
mod head;
mod https;
mod process;
mod relay;
mod rewrite;
mod scratch;
mod serve;
mod settings;
mod sniff;
mod timer;
mod tracing;
mod upstream;

pub use drain::Phase;
pub use fetch::Fetcher;
pub use https::KeysFetcher;
pub use serve::{Listeners, Options, PROTOCOLS, Server, administer, listen};
pub use upstream::UpstreamTls;

//! Kubernetes: the resources, and pods as endpoints. The only crate that knows the cluster's API.
//!
//! What is decided stays elsewhere: a resource becomes the very document that a file would be
//! ([`config::parse`]), pods become endpoints ([`gateway::Found`]), and from there on nobody can tell
//! where they came from.

mod client;
pub mod crd;
mod discovery;
mod fleet;
mod pod;
mod selector;
mod watching;

pub use client::{Cluster, ConnectError, connect, is_inside_cluster};
pub use discovery::discover;

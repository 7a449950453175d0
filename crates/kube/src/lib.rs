//! Kubernetes: the resources, and pods as endpoints. The only crate that knows the cluster's API.
//!
//! What is decided stays elsewhere: a resource becomes the very document that a file would be
//! ([`config::parse`]), pods become endpoints ([`gateway::Found`]), and from there on nobody can tell
//! where they came from.

mod client;
mod controller;
pub mod crd;
mod discovery;
mod document;
mod fleet;
pub mod gateway_api;
pub mod gateways;
mod pod;
mod resource;
mod selector;
mod tunnel;
mod watching;

pub use client::{Cluster, ConnectError, connect, connect_as_user, is_inside_cluster};
pub use controller::{ControllerSettings, Images, LostLease, Timing, control};
pub use discovery::discover;
pub use document::DocumentError;
pub use resource::{Latest, ResourceName, follow};
pub use tunnel::{Tunnel, TunnelError};

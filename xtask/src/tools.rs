//! What the tests need from outside, each installed once by version.

pub(crate) mod cargo_deny;
pub(crate) mod collector;
pub(crate) mod control_plane;
pub(crate) mod debian;
pub(crate) mod envoy;
pub(crate) mod manifests;
pub(crate) mod moto;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod vllm;

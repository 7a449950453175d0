//! What the tests need from outside, each installed once by version.

pub(crate) mod cargo_deny;
pub(crate) mod debian;
pub(crate) mod node;
pub(crate) mod python;
pub(crate) mod vllm;

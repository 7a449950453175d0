//! `wicketgate epp` behind a real Envoy, configured as `docs/envoy.md` says.
//!
//! Each test has an Envoy, a picker and three scripted endpoints of its own. Needs Envoy, whose path
//! `WICKETGATE_TEST_ENVOY` names; hence ignored unless asked for: `cargo xtask test --only envoy`. Only the
//! documents for programs that are not here are checked without it, against what those programs publish.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod bodies;
mod documents;
mod failures;
#[path = "../e2e/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the built-in proxy, which use all of it")]
mod http;
mod queue;
mod routing;
mod schema;
mod stand;
mod streams;
mod upstream;

/// What the shared client takes from the stand that it was made for.
mod gateway {
    pub(crate) use crate::stand::PATIENCE;
}

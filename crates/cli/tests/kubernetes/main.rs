//! Resources and pods on a real Kubernetes API server.
//!
//! One control plane (`kube-apiserver` with `etcd`, from `KUBEBUILDER_ASSETS`) serves all tests of a run, each in
//! a namespace of its own; a small kubelet turns pods into local processes. Hence ignored unless asked
//! for: `cargo xtask test --only kubernetes`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod cable;
mod control_plane;
mod controller;
mod crd;
mod discovery;
mod figures;
#[path = "../e2e/gateway.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
mod gateway;
mod gateways;
mod helm;
#[path = "../e2e/http.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
mod http;
mod igwc;
mod kubelet;
mod leash;
mod namespace;
mod plugin;
mod pools;
mod process;
mod release;
mod resource;
mod rights;
mod scaling;

//! The parts of a test run, in the order in which they are worth waiting for.

mod cargo;
mod chart;
mod cloudwatch;
mod deny;
mod envoy;
mod fleet;
mod global;
mod kubernetes;
mod otel;
mod page;
mod prometheus;
mod real_engine;
mod sdk;
mod terminal;

use anyhow::Result;
use clap::ValueEnum;

use crate::report::Outcome;
use crate::workspace::Workspace;
use crate::{docs, tidy};
pub(crate) use fleet::{ADAPTERS, MODEL};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// `cargo fmt --check`, all workspaces of the repository.
    Fmt,
    /// Checks of our own: layers, links, paths.
    Tidy,
    /// `cargo clippy`, warnings refused.
    Clippy,
    /// Builds the product and all tests, once for every later part.
    Build,
    /// Unit, property, integration and documentation tests.
    Tests,
    /// Generated documents are current.
    Docs,
    /// Licences, bans, sources and advisories of the dependencies.
    Deny,
    /// Benchmarks and fuzz targets, workspaces of their own, still compile without warnings.
    Extras,
    /// The official Python clients against `serve` in front of `sim`.
    SdkPython,
    /// The official Node client against `serve` in front of `sim`.
    SdkNode,
    /// The live page in a real Chromium.
    Page,
    /// `epp` behind a real Envoy.
    Envoy,
    /// `top` in a real terminal.
    Terminal,
    /// `global` with a real Redis and network namespaces.
    Global,
    /// A real Prometheus: rules, alerts and every query of every dashboard.
    Prometheus,
    /// Reports to a stand-in for CloudWatch (moto).
    CloudWatch,
    /// Traces to a collector of OpenTelemetry's own messages; `/metrics` by Prometheus' parsers.
    Otel,
    /// Chart and manifests: Helm's own lint, golden files, kubeconform, kustomize.
    Chart,
    /// Pods and resources on a real Kubernetes API server.
    Kubernetes,
    /// A real vLLM behind `serve`; only when asked for.
    RealEngine,
}

impl Part {
    pub(crate) const ALL: &[Self] = &[
        Self::Fmt,
        Self::Tidy,
        Self::Clippy,
        Self::Build,
        Self::Tests,
        Self::Docs,
        Self::Deny,
        Self::Extras,
        Self::SdkPython,
        Self::SdkNode,
        Self::Page,
        Self::Envoy,
        Self::Terminal,
        Self::Global,
        Self::Prometheus,
        Self::CloudWatch,
        Self::Otel,
        Self::Chart,
        Self::Kubernetes,
        Self::RealEngine,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Clippy => "clippy",
            Self::Build => "build",
            Self::Tests => "tests",
            Self::Docs => "docs",
            Self::Deny => "deny",
            Self::Extras => "extras",
            Self::SdkPython => "sdk-python",
            Self::SdkNode => "sdk-node",
            Self::Page => "page",
            Self::Envoy => "envoy",
            Self::Terminal => "terminal",
            Self::Global => "global",
            Self::Prometheus => "prometheus",
            Self::CloudWatch => "cloud-watch",
            Self::Otel => "otel",
            Self::Chart => "chart",
            Self::Kubernetes => "kubernetes",
            Self::RealEngine => "real-engine",
        }
    }

    /// Whether `--quick` leaves it out, because it installs or compiles more.
    pub(crate) fn is_slow(self) -> bool {
        matches!(
            self,
            Self::Deny
                | Self::Extras
                | Self::SdkPython
                | Self::SdkNode
                | Self::Page
                | Self::Envoy
                | Self::Terminal
                | Self::Global
                | Self::Prometheus
                | Self::CloudWatch
                | Self::Otel
                | Self::Chart
                | Self::Kubernetes
                | Self::RealEngine
        )
    }

    /// Whether it runs only when asked for by a flag of its own.
    pub(crate) fn is_asked_for(self) -> bool {
        self == Self::RealEngine
    }

    /// Whether it drives programs that are not ours and is run by their test runners: such a part is run once
    /// more when little of it failed, as [`crate::libtest`] does with single Rust tests.
    pub(crate) fn is_tried_again(self) -> bool {
        matches!(
            self,
            Self::SdkPython
                | Self::SdkNode
                | Self::Page
                | Self::Prometheus
                | Self::CloudWatch
                | Self::Otel
        )
    }

    /// Whether it runs what [`Part::Build`] made.
    pub(crate) fn needs_build(self) -> bool {
        matches!(
            self,
            Self::Tests
                | Self::Docs
                | Self::SdkPython
                | Self::SdkNode
                | Self::Page
                | Self::Envoy
                | Self::Terminal
                | Self::Global
                | Self::Prometheus
                | Self::CloudWatch
                | Self::Otel
                | Self::Chart
                | Self::Kubernetes
                | Self::RealEngine
        )
    }

    pub(crate) fn run(self, workspace: &Workspace) -> Result<Outcome> {
        match self {
            Self::Fmt => cargo::fmt(workspace),
            Self::Tidy => tidy::run(workspace),
            Self::Clippy => cargo::clippy(workspace),
            Self::Build => cargo::build(workspace),
            Self::Tests => cargo::tests(workspace),
            Self::Docs => docs::check(workspace),
            Self::Deny => deny::run(workspace),
            Self::Extras => cargo::extras(workspace),
            Self::SdkPython => sdk::python(workspace),
            Self::SdkNode => sdk::node(workspace),
            Self::Page => page::run(workspace),
            Self::Envoy => envoy::run(workspace),
            Self::Terminal => terminal::run(workspace),
            Self::Global => global::run(workspace),
            Self::Prometheus => prometheus::run(workspace),
            Self::CloudWatch => cloudwatch::run(workspace),
            Self::Otel => otel::run(workspace),
            Self::Chart => chart::run(workspace),
            Self::Kubernetes => kubernetes::run(workspace),
            Self::RealEngine => real_engine::run(workspace),
        }
    }
}

//! The parts of a test run, in the order in which they are worth waiting for.

mod cargo;
mod deny;
mod fleet;
mod real_engine;
mod sdk;

use anyhow::Result;
use clap::ValueEnum;

use crate::report::Outcome;
use crate::workspace::Workspace;
use crate::{docs, tidy};

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
    /// A real vLLM behind `serve`; only when asked for.
    RealEngine,
}

impl Part {
    pub(crate) const ALL: [Self; 11] = [
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
            Self::RealEngine => "real-engine",
        }
    }

    /// Whether `--quick` leaves it out, because it installs or compiles more.
    pub(crate) fn is_slow(self) -> bool {
        matches!(
            self,
            Self::Deny | Self::Extras | Self::SdkPython | Self::SdkNode | Self::RealEngine
        )
    }

    /// Whether it runs what [`Part::Build`] made.
    pub(crate) fn needs_build(self) -> bool {
        matches!(
            self,
            Self::Tests | Self::Docs | Self::SdkPython | Self::SdkNode | Self::RealEngine
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
            Self::RealEngine => real_engine::run(workspace),
        }
    }
}

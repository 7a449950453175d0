//! What was seen, before anyone judges it.

use std::time::Duration;

use engines::Page as EnginePage;
use engines::models::ServedModel;
use gateway::{EndpointView, PoolSettingsView, SettingsView};
use serde::Deserialize;

use crate::scrape::Page;

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// `None`: only a document was looked at.
    pub(super) gateway: Option<GatewayFacts>,
    pub(super) settings: SettingsView,
    /// One for each endpoint of each pool.
    pub(super) endpoints: Vec<EndpointFacts>,
}

/// A running gateway.
#[derive(Clone, Debug, Default)]
pub(super) struct GatewayFacts {
    /// `host:port` at which it was asked.
    pub(super) admin: String,
    pub(super) is_ready: bool,
    /// What `/readyz` says.
    pub(super) readiness: String,
    /// It answers `/debug/settings`.
    pub(super) tells_settings: bool,
    /// It answers without the token that was given.
    pub(super) is_open: bool,
    pub(super) process: Process,
    /// `/metrics`, read twice, some seconds apart.
    pub(super) before: Page,
    pub(super) after: Page,
}

/// What the operating system allows the gateway's process.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Process {
    pub(super) descriptors_max: Option<u64>,
    pub(super) descriptors_open: Option<u64>,
}

/// One endpoint in one pool.
#[derive(Clone, Debug, Default)]
pub(super) struct EndpointFacts {
    /// Place in [`SettingsView::pools`].
    pub(super) pool: usize,
    /// `host:port`.
    pub(super) endpoint: String,
    /// What the gateway knows of it.
    pub(super) view: Option<EndpointView>,
    pub(super) seen: Seen,
}

/// What the endpoint itself said.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Why it cannot be reached from here; everything else is then empty.
    pub(super) unreachable: Option<String>,
    /// Its metrics, or why they cannot be read.
    pub(super) metrics: Option<Result<EngineFacts, String>>,
    pub(super) models: Option<Result<Vec<ServedModel>, String>>,
    pub(super) version: Option<String>,
    /// Its clock less ours, in whole seconds; `None`: it sends no `Date`.
    pub(super) clock_ahead_s: Option<i64>,
    pub(super) keep_alive: KeepAlive,
}

/// One good page of metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct EngineFacts {
    pub(super) page: EnginePage,
    /// By vLLM's own word; `None`: it does not say.
    pub(super) prefix_caching: Option<bool>,
    /// It has a metric for adapters, even if there was no request with one yet.
    pub(super) says_adapters: bool,
}

/// How long an idle connection is left open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KeepAlive {
    #[default]
    NotLooked,
    /// Closed behind each answer.
    Never,
    ClosedAfter(Duration),
    /// Still open when we stopped waiting.
    OpenAfter(Duration),
}

impl Facts {
    pub(super) fn pool_of(&self, endpoint: &EndpointFacts) -> Option<&PoolSettingsView> {
        self.settings.pools.get(endpoint.pool)
    }

    /// The endpoints of a pool, by its place.
    pub(super) fn members(&self, pool: usize) -> impl Iterator<Item = &EndpointFacts> {
        self.endpoints.iter().filter(move |endpoint| endpoint.pool == pool)
    }
}

impl EndpointFacts {
    pub(super) fn metrics(&self) -> Option<&EngineFacts> {
        self.seen.metrics.as_ref()?.as_ref().ok()
    }

    pub(super) fn models(&self) -> Option<&[ServedModel]> {
        Some(self.seen.models.as_ref()?.as_ref().ok()?)
    }
}

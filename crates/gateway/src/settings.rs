//! The settings in force that bear on endpoints, for tools that look at a running gateway.

use config::{AppProtocol, Document, EndpointSpec, SchedulerSpec, Spec};
use serde::{Deserialize, Serialize};

use crate::Gateway;
use crate::explain::ScorerView;

/// What a gateway was told, as far as it can be wrong for its endpoints. No secret is in it. The names
/// of the fields are stable.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsView {
    pub version: String,
    /// Where clients connect without TLS.
    pub listen: String,
    pub admin: String,
    /// Whether clients must say who they are before they can use a model.
    pub auth: bool,
    /// An idle connection to an endpoint is kept so long, milliseconds.
    pub endpoint_idle_ms: u64,
    pub request_body_bytes_max: u64,
    /// Client connections that the document asks for.
    pub connections_max: u32,
    pub scrape_timeout_ms: u64,
    /// In the document's order, then those that were found.
    pub pools: Vec<PoolSettingsView>,
}

/// One pool's part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolSettingsView {
    pub pool: String,
    /// The base model's name; empty where it is still to be found out.
    pub model: String,
    /// Adapters that the document names.
    pub adapters: Vec<String>,
    pub scorers: Vec<ScorerView>,
    /// Endpoints speak HTTP/2 without TLS.
    pub h2c: bool,
    pub endpoints: Vec<EndpointSettingsView>,
}

/// Where an endpoint is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointSettingsView {
    /// `host:port`, as in metrics and decisions.
    pub endpoint: String,
    pub url: String,
    pub metrics_path: String,
}

impl SettingsView {
    /// The same from a document alone, without a gateway: one pool for each scheduler, and one
    /// without a name for endpoints whose models are still to be found out.
    pub fn of(document: &Document) -> Self {
        let spec = &document.spec;
        let mut pools: Vec<_> = spec.schedulers.iter().map(scheduler_view).collect();
        if !spec.discover.is_empty() {
            pools.push(PoolSettingsView {
                scorers: weights_view(&config::Weights::default()),
                endpoints: spec.discover.iter().map(|at| endpoint_view(at, "/metrics")).collect(),
                ..PoolSettingsView::default()
            });
        }
        Self { pools, ..general(spec) }
    }
}

impl Gateway {
    /// The settings in force, with the pools as they stand.
    pub fn settings(&self) -> SettingsView {
        let spec = self.spec();
        let declared =
            |pool: &str| spec.schedulers.iter().find(|scheduler| scheduler.name.as_str() == pool);
        let catalog = self.catalog();
        let pools = catalog.pools.iter().map(|pool| PoolSettingsView {
            pool: pool.name.as_str().to_owned(),
            model: pool.model.as_str().to_owned(),
            adapters: declared(pool.name.as_str()).map(adapters).unwrap_or_default(),
            scorers: pool
                .profile
                .scorers
                .iter()
                .map(|scorer| ScorerView {
                    name: scorer.scorer.name().to_owned(),
                    weight: scorer.weight,
                })
                .collect(),
            h2c: pool.settings.h2c,
            endpoints: pool
                .members
                .iter()
                .map(|member| EndpointSettingsView {
                    endpoint: member.member.authority.clone(),
                    url: member.member.endpoint.address.to_string(),
                    metrics_path: member.member.metrics_path.clone(),
                })
                .collect(),
        });
        SettingsView { pools: pools.collect(), ..general(&spec) }
    }
}

fn general(spec: &Spec) -> SettingsView {
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    SettingsView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listen: spec.listener.address.to_string(),
        admin: spec.admin.address.to_string(),
        auth: !spec.serves_strangers(),
        endpoint_idle_ms: millis(spec.timeouts.endpoint_idle),
        request_body_bytes_max: spec.limits.request_body_bytes_max,
        connections_max: spec.limits.connections_max,
        scrape_timeout_ms: millis(spec.scrape.timeout),
        pools: Vec::new(),
    }
}

fn scheduler_view(scheduler: &SchedulerSpec) -> PoolSettingsView {
    let picker = scheduler.picker_config.as_ref();
    PoolSettingsView {
        pool: scheduler.name.as_str().to_owned(),
        model: scheduler.model_name.as_str().to_owned(),
        adapters: adapters(scheduler),
        // What a picker's document makes of its plugins is known once a pool is made of it.
        scorers: picker.map_or_else(|| weights_view(&scheduler.weights), |_| Vec::new()),
        h2c: scheduler.app_protocol == AppProtocol::H2c,
        endpoints: scheduler
            .endpoints
            .iter()
            .map(|endpoint| endpoint_view(endpoint, &scheduler.metrics_path))
            .collect(),
    }
}

fn adapters(scheduler: &SchedulerSpec) -> Vec<String> {
    scheduler.lora_adapters.iter().map(|adapter| adapter.as_str().to_owned()).collect()
}

fn weights_view(weights: &config::Weights) -> Vec<ScorerView> {
    let view =
        |(name, weight): (&str, u32)| ScorerView { name: name.to_owned(), weight: weight as f32 };
    weights.scorers().map(view).collect()
}

fn endpoint_view(endpoint: &EndpointSpec, metrics_path: &str) -> EndpointSettingsView {
    EndpointSettingsView {
        endpoint: endpoint.url.authority(),
        url: endpoint.url.to_string(),
        metrics_path: metrics_path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::document;

    #[test]
    fn a_gateway_that_serves_strangers_beside_those_with_keys_does_not_ask_who_they_are() {
        let auth = |anonymous: &str| {
            let pool =
                "  schedulers: [{ name: a, modelName: m, endpoints: [{ url: 'http://a' }] }]";
            let auth = format!("  auth: {{ apiKeys: {{ file: keys }}, anonymous: {anonymous} }}");
            SettingsView::of(&document(&format!("{pool}\n{auth}\n"))).auth
        };
        assert_eq!([auth("allow"), auth("modelsOnly"), auth("deny")], [false, true, true]);
    }
}

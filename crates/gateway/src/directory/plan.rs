//! Pools to be: what the document, discovery and the endpoints themselves ask for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use config::{RouteTimeout, Spec};
use engines::models::ServedModel;
use sched::saturation;
use types::{EndpointAddress, ModelName, PoolName};

use super::found::FoundEndpoints;
use super::{Authorization, Found, picker};
use crate::pool::PoolSettings;

/// A pool to be.
pub(super) struct Plan {
    pub(super) name: PoolName,
    /// The first of the base models.
    pub(super) model: ModelName,
    /// Other names of the base model, or other base models on the same endpoints.
    pub(super) further_models: Vec<ModelName>,
    /// `model` is not known yet: its endpoints have not told.
    pub(super) is_nameless: bool,
    pub(super) adapters: Vec<ModelName>,
    pub(super) addresses: Vec<EndpointAddress>,
    pub(super) policy: config::Policy,
    pub(super) weights: config::Weights,
    /// Goes before `policy` and `weights`.
    pub(super) picker: Option<config::PickerConfig>,
    pub(super) shadow: Option<config::Shadow>,
    pub(super) settings: PoolSettings,
}

/// Those that the document names, then those that were found.
pub(super) fn endpoints_of<'a>(
    scheduler: &'a config::SchedulerSpec,
    found: &'a FoundEndpoints,
) -> impl Iterator<Item = &'a config::EndpointSpec> {
    let named = &scheduler.endpoints;
    let is_new = |one: &&Found| named.iter().all(|endpoint| endpoint.url != one.endpoint.url);
    let found = found.of(&scheduler.name).iter().filter(is_new);
    named.iter().chain(found.map(|one| &one.endpoint))
}

pub(super) fn planned_by_schedulers(
    spec: &Spec,
    found: &FoundEndpoints,
    served: &HashMap<EndpointAddress, Vec<ServedModel>>,
    authorization: Authorization<'_>,
) -> Vec<Plan> {
    let planned = |scheduler: &config::SchedulerSpec| {
        let addresses: Vec<_> =
            endpoints_of(scheduler, found).map(|endpoint| endpoint.url.clone()).collect();
        let mut models =
            if scheduler.learns_models { base_models(&addresses, served) } else { Vec::new() };
        let is_nameless = scheduler.learns_models && models.is_empty();
        let model = match models.is_empty() {
            true => scheduler.model_name.clone(),
            false => models.remove(0),
        };
        Plan {
            name: scheduler.name.clone(),
            model,
            further_models: models,
            is_nameless,
            adapters: scheduler.lora_adapters.clone(),
            addresses,
            policy: scheduler.policy,
            weights: scheduler.weights,
            picker: scheduler.picker_config.clone(),
            shadow: scheduler.shadow,
            settings: PoolSettings {
                saturation: saturation_of(
                    scheduler.picker_config.as_ref(),
                    saturation_config(&scheduler.saturation, spec.flow_control.as_ref()),
                ),
                h2c: scheduler.app_protocol == config::AppProtocol::H2c,
                authorization: authorization(scheduler.endpoint_api_key.as_ref()),
                route_timeout: match scheduler.route_timeout {
                    RouteTimeout::After(duration) => Some(duration),
                    _ => None,
                },
            },
        }
    };
    spec.schedulers.iter().map(planned).collect()
}

/// What the endpoints serve beside adapters, by name.
fn base_models(
    addresses: &[EndpointAddress],
    served: &HashMap<EndpointAddress, Vec<ServedModel>>,
) -> Vec<ModelName> {
    let served = addresses.iter().filter_map(|address| served.get(address)).flatten();
    let bases = served.filter(|model| model.parent.is_none() && openai::is_model_name(&model.id));
    let names: BTreeSet<&str> = bases.map(|model| model.id.as_str()).collect();
    names.into_iter().map(ModelName::new).collect()
}

/// Pools of endpoints that were named without a model: one for each base model they serve.
pub(super) fn planned_by_discovery(
    spec: &Spec,
    served: &HashMap<EndpointAddress, Vec<ServedModel>>,
) -> Vec<Plan> {
    let mut by_model: BTreeMap<&str, Vec<EndpointAddress>> = BTreeMap::new();
    for endpoint in &spec.discover {
        for model in served.get(&endpoint.url).into_iter().flatten() {
            let addresses = by_model.entry(&model.id).or_default();
            if model.parent.is_none() && !addresses.contains(&endpoint.url) {
                addresses.push(endpoint.url.clone());
            }
        }
    }
    by_model
        .into_iter()
        .filter(|(model, addresses)| !addresses.is_empty() && openai::is_model_name(model))
        .map(|(model, addresses)| Plan {
            name: PoolName::new(model),
            model: ModelName::new(model),
            further_models: Vec::new(),
            is_nameless: false,
            adapters: Vec::new(),
            addresses,
            policy: config::Policy::default(),
            weights: config::Weights::default(),
            picker: spec.discover_picker.clone(),
            shadow: None,
            settings: PoolSettings {
                saturation: saturation_of(
                    spec.discover_picker.as_ref(),
                    saturation_config(
                        &config::Saturation::unless_said(spec.flow_control.is_some()),
                        spec.flow_control.as_ref(),
                    ),
                ),
                h2c: false,
                route_timeout: None,
                authorization: None,
            },
        })
        .collect()
}

/// What a picker's document says of full endpoints goes before what the gateway's says.
fn saturation_of(
    picker: Option<&config::PickerConfig>,
    otherwise: saturation::Config,
) -> saturation::Config {
    let said = picker.and_then(picker::saturation).unwrap_or(otherwise);
    saturation::Config { reserve: otherwise.reserve, ..said }
}

fn saturation_config(
    spec: &config::Saturation,
    flow: Option<&config::FlowControl>,
) -> saturation::Config {
    let headroom = flow.map(|flow| flow.headroom).filter(|headroom| headroom.enabled);
    saturation::Config {
        reserve: headroom.map(|headroom| saturation::Reserve {
            stretch: headroom.stretch,
            share: headroom.share.get(),
        }),
        queue_depth: spec.queue_depth.get(),
        kv_usage: spec.kv_cache_usage.map(types::Ratio::get),
        in_flight: spec.concurrency.map(Into::into),
    }
}

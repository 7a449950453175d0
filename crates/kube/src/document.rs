//! A resource and what it refers to become the document that a file would be.
//!
//! Pure: the resource and the ConfigMaps of its namespace go in. A picker's document
//! (`schedulers[].configMapRef`) and LoRA adapters by the field's labels come from ConfigMaps.

mod adapters;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use config::{Document, PickerConfig};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use serde_json::json;

pub(crate) use adapters::is_adapters;

/// ConfigMaps by name.
pub(crate) type Maps = BTreeMap<String, ConfigMap>;

/// A document, and what was left out of it.
#[derive(Clone, Debug)]
pub(crate) struct Composed {
    pub document: Document,
    /// Things that a person should look at; the document holds without them.
    pub notes: Vec<String>,
}

/// Why a resource is no document.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("{0}")]
    Invalid(config::Errors),
    #[error(
        "scheduler `{scheduler}`: there is no ConfigMap `{name}` with the key `{key}`; make it, or mend `configMapRef`"
    )]
    NoPicker { scheduler: String, name: String, key: String },
    #[error(
        "scheduler `{scheduler}`: the picker's document of `configMapRef` is not valid\n{errors}"
    )]
    Picker { scheduler: String, errors: config::Errors },
}

/// The text that is checked: what its author wrote, without what the API server added.
pub(crate) fn text(resource: &DynamicObject) -> String {
    let types = resource.types.clone().unwrap_or_default();
    let object = json!({
        "apiVersion": types.api_version,
        "kind": types.kind,
        "metadata": { "name": resource.metadata.name, "namespace": resource.metadata.namespace },
        "spec": resource.data.get("spec"),
    });
    serde_json::to_string_pretty(&object).unwrap_or_default()
}

/// What findings call the resource.
pub(crate) fn source(resource: &DynamicObject) -> String {
    let of = |name: &Option<String>| name.clone().unwrap_or_default();
    format!("{}/{}", of(&resource.metadata.namespace), of(&resource.metadata.name))
}

/// Makes the document.
///
/// # Errors
/// The resource is not valid, or a picker's document is missing or not valid.
pub(crate) fn compose(resource: &DynamicObject, maps: &Maps) -> Result<Composed, DocumentError> {
    let parsed = config::parse(&text(resource), &source(resource));
    let mut document = parsed.map_err(DocumentError::Invalid)?;
    for scheduler in &mut document.spec.schedulers {
        let Some(reference) = &scheduler.config_map_ref else { continue };
        let named = || DocumentError::NoPicker {
            scheduler: scheduler.name.as_str().to_owned(),
            name: reference.name.clone(),
            key: reference.key.clone(),
        };
        let map = maps.get(&reference.name).ok_or_else(named)?;
        let data = map.data.as_ref().and_then(|data| data.get(&reference.key));
        let picker = data.ok_or_else(named)?;
        let mut picker = PickerConfig::parse(picker, &format!("ConfigMap {}", reference.name))
            .map_err(|errors| DocumentError::Picker {
                scheduler: scheduler.name.as_str().to_owned(),
                errors,
            })?;
        document.warnings.append(&mut picker.warnings);
        scheduler.picker_config = Some(picker);
    }
    // They stand for something here, whatever a file would be told of them.
    document.warnings.retain(|warning| !CLUSTER_KEYS.iter().any(|key| warning.path.ends_with(key)));
    let notes = adapters::add(&mut document.spec, maps);
    Ok(Composed { document, notes })
}

/// Fields that mean something in a cluster only.
const CLUSTER_KEYS: [&str; 8] = [
    "modelSelector",
    "targetPort",
    "configMapRef",
    "podDefaults",
    "replicas",
    "env",
    "envFrom",
    "observability.metrics",
];

/// Names of the ConfigMaps that the schedulers of a resource refer to.
pub(crate) fn referred(resource: &DynamicObject) -> BTreeSet<String> {
    let schedulers = resource.data.pointer("/spec/schedulers").and_then(|list| list.as_array());
    let names = schedulers.into_iter().flatten().filter_map(|scheduler| {
        scheduler.pointer("/configMapRef/name").and_then(|name| name.as_str())
    });
    names.map(str::to_owned).collect()
}

//! LoRA adapters from ConfigMaps, as the field's body-based routers read them.
//!
//! A ConfigMap with one of the labels names a base model and a list of adapters. A map that goes takes its
//! adapters with it.

use std::collections::BTreeSet;

use config::Spec;
use k8s_openapi::api::core::v1::ConfigMap;
use types::ModelName;

use super::Maps;

/// The label of today and that of the Inference Extension's time; either must be `true`.
const LABELS: [&str; 2] =
    ["inference.llm-d.ai/ipp-managed", "inference.networking.k8s.io/bbr-managed"];

/// Whether the map is one of those that name adapters.
pub(crate) fn is_adapters(map: &ConfigMap) -> bool {
    let labels = map.metadata.labels.as_ref();
    labels.is_some_and(|labels| {
        LABELS.iter().any(|label| labels.get(*label).is_some_and(|value| value == "true"))
    })
}

/// Adds the adapters of all maps to the schedulers that serve their base models. Returns what was left
/// out, and why.
///
/// Names that mean something already go before: the document's own, then maps in the order of their names.
pub(super) fn add(spec: &mut Spec, maps: &Maps) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, map) in maps.iter().filter(|(_, map)| is_adapters(map)) {
        let (base, adapters) = match read(map) {
            Ok(read) => read,
            Err(why) => {
                notes.push(format!("ConfigMap `{name}`: {why}; its adapters are not served"));
                continue;
            }
        };
        let mut taken: BTreeSet<ModelName> = spec
            .schedulers
            .iter()
            .flat_map(|one| std::iter::once(&one.model_name).chain(&one.lora_adapters))
            .cloned()
            .collect();
        let of_base = |one: &&mut config::SchedulerSpec| one.model_name.as_str() == base;
        // Another gateway of the namespace may serve it.
        let Some(scheduler) = spec.schedulers.iter_mut().find(of_base) else { continue };
        for adapter in adapters {
            let adapter = ModelName::from(adapter.as_str());
            if scheduler.lora_adapters.contains(&adapter) {
                continue;
            }
            if taken.insert(adapter.clone()) {
                scheduler.lora_adapters.push(adapter);
            } else {
                let adapter = adapter.as_str();
                notes.push(format!(
                    "ConfigMap `{name}`: `{adapter}` means another model already; it is left out"
                ));
            }
        }
    }
    notes
}

/// The base model and the adapters that a map names.
fn read(map: &ConfigMap) -> Result<(&str, Vec<String>), String> {
    let value = |key: &str| map.data.as_ref().and_then(|data| data.get(key));
    let base = value("baseModel").map(|base| base.trim()).filter(|base| !base.is_empty());
    let base = base.ok_or("there is no `baseModel`")?;
    let adapters = match value("adapters").map(|list| list.trim()) {
        None | Some("") => Vec::new(),
        // An adapter may be called `off`.
        Some(list) => serde_saphyr::from_str_with_options(
            list,
            serde_saphyr::options! { strict_booleans: true },
        )
        .map_err(|_| "`adapters` is no YAML list of names".to_owned())?,
    };
    Ok((base, adapters))
}

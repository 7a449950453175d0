//! Which models exist for a caller.
//!
//! A name that a caller may not use is not found, as if nobody served it: 403 would tell that it exists.

use openai::{Body, ModelCard};
use telemetry::metrics::labels;

use super::Exchange;
use super::placement::no_pools;
use crate::catalog::{Catalog, Target};
use crate::refusal::{Component, Refusal};
use crate::{Caller, ModelAccess};

/// The models that a caller may name, for its list.
pub fn cards(catalog: &Catalog, caller: &Caller) -> Vec<ModelCard> {
    let cards = catalog.cards.iter();
    cards
        .filter(|(name, _)| caller.models.allows(name.as_str()))
        .map(|(_, card)| card.clone())
        .collect()
}

/// One model, if it exists for the caller.
pub fn card<'a>(
    catalog: &'a Catalog,
    caller: &Caller,
    name: &str,
) -> Result<&'a ModelCard, Refusal> {
    let card = catalog.cards.get(name).filter(|_| caller.models.allows(name));
    card.ok_or_else(|| model_not_found(catalog, caller, name))
}

/// Whether a caller may use what a body names. What names nothing is for whoever may use everything.
pub fn may_name(caller: &Caller, said: &Body) -> bool {
    match (&caller.models, &said.model) {
        (ModelAccess::All, _) => true,
        (models, Some(model)) => models.allows(&model.name),
        (ModelAccess::Only(_), None) => false,
    }
}

/// The error for a name that nobody serves, as far as the caller may know.
pub fn model_not_found(catalog: &Catalog, caller: &Caller, name: &str) -> Refusal {
    if catalog.pools.is_empty() {
        return no_pools();
    }
    let mut near = catalog.near(name);
    near.retain(|near| near != name && caller.models.allows(near));
    let hint = if near.is_empty() {
        "GET /v1/models lists what is served".to_owned()
    } else {
        format!(
            "did you mean {}?",
            near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
        )
    };
    Refusal::new(
        404,
        "model_not_found",
        Component::Edge,
        labels::Refusal::ModelNotFound,
        format!("the model `{name}` is not served here; {hint}"),
    )
    .with_param(Some("model"))
}

impl Exchange {
    /// Refuses a name that does not exist for the caller. To be called on what the client asked for,
    /// before anything puts another name in its place.
    pub fn check_named(&self, said: &Body) -> Result<(), Refusal> {
        let caller = &self.meta.caller;
        match &said.model {
            Some(model) if !caller.models.allows(&model.name) => {
                Err(model_not_found(&self.gateway.catalog(), caller, &model.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what a body that names nothing came to, where that does not exist for the caller.
    pub(super) fn check_unnamed(&self, target: &Target, said: &Body) -> Result<(), Refusal> {
        let caller = &self.meta.caller;
        let target = target.name.as_str();
        if said.model.is_some() || caller.models.allows(target) {
            return Ok(());
        }
        Err(model_not_found(&self.gateway.catalog(), caller, target))
    }
}

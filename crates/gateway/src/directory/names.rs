//! Which names lead to which pool.

use std::sync::Arc;

use engines::models::ServedModel;
use openai::ModelCard;
use types::{AdapterId, ModelName};

use super::Directory;
use super::plan::Plan;
use crate::catalog::{Catalog, Target};
use crate::pool::Pool;

impl Directory {
    /// Gives a pool its names: the model, declared adapters, and adapters found on its endpoints.
    ///
    /// * `is_routed`: pools are not found by name, so two may well have the same.
    pub(super) fn claim_names(
        &self,
        plan: &Plan,
        pool: &Arc<Pool>,
        is_routed: bool,
        catalog: &mut Catalog,
        warnings: &mut Vec<String>,
    ) {
        let mut max_model_len = None;
        let mut found: Vec<&str> = Vec::new();
        for address in &plan.addresses {
            let served = self.served.get(address).map(Vec::as_slice);
            let mut adapters: Vec<AdapterId> = Vec::new();
            for model in served.unwrap_or_default() {
                match &model.parent {
                    None => max_model_len = max_model_len.max(model.max_model_len),
                    Some(parent) if self.is_base(served.unwrap_or_default(), parent, plan) => {
                        adapters.push(AdapterId::of(&model.id));
                        found.push(&model.id);
                    }
                    Some(_) => {}
                }
            }
            if let (Some(_), Some(member)) = (served, self.members.get(address)) {
                member.state.set_served_adapters(&adapters);
            }
        }
        let mut claim = |name: &ModelName, adapter: Option<AdapterId>| {
            let card = ModelCard {
                id: name.as_str().to_owned(),
                owned_by: "wicketgate".to_owned(),
                parent: adapter.map(|_| plan.model.as_str().to_owned()),
                max_model_len,
                created: 0,
            };
            let target = Target { pool: pool.clone(), name: name.clone(), adapter };
            catalog.own(target.clone());
            if !catalog.claim(target, card) {
                let held = catalog.get(name.as_str());
                let same = held.is_some_and(|held| held.pool.name == plan.name);
                if !same && !is_routed {
                    warnings.push(format!(
                        "`{name}` is served by more than one pool; `{}` does not get it",
                        plan.name
                    ));
                }
            }
        };
        if !plan.is_nameless {
            claim(&plan.model, None);
        }
        for model in &plan.further_models {
            claim(model, None);
        }
        for adapter in &plan.adapters {
            claim(adapter, Some(AdapterId::of(adapter.as_str())));
        }
        found.sort_unstable();
        found.dedup();
        for adapter in found.into_iter().filter(|adapter| openai::is_model_name(adapter)) {
            claim(&ModelName::new(adapter), Some(AdapterId::of(adapter)));
        }
    }

    /// Whether `parent` means the pool's base model: by name, or as another name of it on a server
    /// that has a single base model.
    fn is_base(&self, served: &[ServedModel], parent: &str, plan: &Plan) -> bool {
        parent == plan.model.as_str()
            || plan.further_models.iter().any(|model| model.as_str() == parent)
            || served.iter().all(|model| model.parent.is_some() || model.id == plan.model.as_str())
    }
}

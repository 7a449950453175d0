//! What resources of a cluster add to a document.

use super::{ModelRewrite, Objective, Routes, SchedulerSpec, Spec};

/// Pools, objectives and rewrites beside those that the document has; in their order of precedence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Additions {
    pub schedulers: Vec<SchedulerSpec>,
    pub objectives: Vec<Objective>,
    pub model_rewrites: Vec<ModelRewrite>,
    /// The first pool gets what names no model that is served. Only where the document has no pool.
    pub catches_all: bool,
    /// The pool is found by these instead of by `model`.
    pub routes: Option<Routes>,
}

impl Spec {
    /// The document with additions. Where both have a scheduler of one name, the document's stays.
    #[must_use]
    pub fn with(&self, additions: &Additions) -> Self {
        let mut spec = self.clone();
        if additions.catches_all && spec.schedulers.is_empty() && spec.discover.is_empty() {
            spec.bbr.enabled = false;
        }
        for scheduler in &additions.schedulers {
            if self.schedulers.iter().all(|own| own.name != scheduler.name) {
                let picker_config = scheduler.picker_config.clone();
                let picker_config = picker_config.or_else(|| self.discover_picker.clone());
                spec.schedulers.push(SchedulerSpec { picker_config, ..scheduler.clone() });
            }
        }
        spec.objectives.extend(additions.objectives.iter().cloned());
        spec.model_rewrites.extend(additions.model_rewrites.iter().cloned());
        spec.routes.clone_from(&additions.routes);
        spec
    }
}

#[cfg(test)]
mod tests {
    use types::{ModelName, PoolName};

    use super::*;

    fn scheduler(name: &str, model: &str) -> SchedulerSpec {
        SchedulerSpec::new(PoolName::new(name), ModelName::new(model))
    }

    fn models(spec: &Spec) -> Vec<&str> {
        spec.schedulers.iter().map(|scheduler| scheduler.model_name.as_str()).collect()
    }

    #[test]
    fn the_documents_scheduler_stays_before_one_of_the_same_name() {
        let document = Spec { schedulers: vec![scheduler("a", "own")], ..Spec::default() };
        let added = vec![scheduler("a", "other"), scheduler("b", "second")];
        let additions = Additions { schedulers: added, ..Additions::default() };
        assert_eq!(models(&document.with(&additions)), ["own", "second"]);
        assert_eq!(document.with(&Additions::default()), document);
    }

    #[test]
    fn one_pool_catches_all_only_where_the_document_has_none() {
        let additions = Additions {
            schedulers: vec![scheduler("b", "second")],
            catches_all: true,
            ..Additions::default()
        };
        assert!(!Spec::default().with(&additions).bbr.enabled);
        let document = Spec { schedulers: vec![scheduler("a", "own")], ..Spec::default() };
        assert!(document.with(&additions).bbr.enabled);
    }
}

//! The fields that we read of each resource. The API server has checked them against its definitions;
//! what we do not read may be anything.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::kind::INFERENCE;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolSpec {
    pub(super) selector: MatchLabels,
    /// Each port of each pod is an endpoint.
    pub(super) target_ports: Vec<Port>,
    /// Default `http`.
    pub(super) app_protocol: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MatchLabels {
    pub(super) match_labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Port {
    pub(super) number: u16,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectiveSpec {
    /// Higher goes first.
    #[serde(default)]
    pub(super) priority: i32,
    pub(super) pool_ref: PoolRef,
}

/// A pool in the namespace of who names it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct PoolRef {
    #[serde(default = "PoolRef::default_group")]
    pub(super) group: String,
    #[serde(default = "PoolRef::default_kind")]
    pub(super) kind: String,
    pub(super) name: String,
}

impl PoolRef {
    fn default_group() -> String {
        INFERENCE.to_owned()
    }

    fn default_kind() -> String {
        "InferencePool".to_owned()
    }

    pub(super) fn is_pool(&self) -> bool {
        self.group == INFERENCE && self.kind == "InferencePool"
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RewriteSpec {
    pub(super) pool_ref: PoolRef,
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Rule {
    /// Any of them; empty: everything.
    #[serde(default)]
    pub(super) matches: Vec<Match>,
    #[serde(default)]
    pub(super) targets: Vec<Target>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Match {
    /// Not there: everything.
    pub(super) model: Option<ModelMatch>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct ModelMatch {
    pub(super) value: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    /// Not there among targets that have one: never chosen.
    #[serde(default)]
    pub(super) weight: u32,
    pub(super) model_rewrite: String,
}

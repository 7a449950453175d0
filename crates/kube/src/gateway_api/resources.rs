//! The fields that we read of each resource. The API server has checked them against its definitions;
//! what we do not read may be anything.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::kind::{GATEWAY, INFERENCE};

/// Group of a picker that is no object: the gateway's own.
const BUILT_IN: &str = "gateway.wicketgate.dev";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolSpec {
    pub(super) selector: MatchLabels,
    /// Each port of each pod is an endpoint.
    pub(super) target_ports: Vec<Port>,
    /// Default `http`.
    pub(super) app_protocol: Option<String>,
    /// Versions of the definition before 1.6 ask for one.
    pub(super) endpoint_picker_ref: Option<PickerRef>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct PickerRef {
    #[serde(default)]
    pub(super) group: String,
}

impl PoolSpec {
    /// Whether a picker of others is to be asked; one of our own group stands for the built-in one.
    pub(super) fn has_picker_of_others(&self) -> bool {
        let picker = self.endpoint_picker_ref.as_ref();
        picker.is_some_and(|picker| picker.group != BUILT_IN)
    }
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

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClassSpec {
    pub(super) controller_name: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewaySpec {
    pub(super) gateway_class_name: String,
    #[serde(default)]
    pub(super) listeners: Vec<Listener>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listener {
    pub(super) name: String,
    /// Empty: any.
    #[serde(default)]
    pub(super) hostname: String,
    pub(super) port: u16,
    pub(super) protocol: String,
    #[serde(default)]
    pub(super) allowed_routes: AllowedRoutes,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct AllowedRoutes {
    #[serde(default)]
    pub(super) namespaces: AllowedNamespaces,
    /// Empty: what the protocol carries.
    #[serde(default)]
    pub(super) kinds: Vec<RouteKind>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct AllowedNamespaces {
    /// `All`, `Selector`, `Same`; not there: `Same`.
    pub(super) from: Option<String>,
    pub(super) selector: Option<Selector>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Selector {
    #[serde(default)]
    pub(super) match_labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Requirement {
    pub(super) key: String,
    pub(super) operator: String,
    #[serde(default)]
    pub(super) values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct RouteKind {
    #[serde(default = "gateway_group")]
    pub(super) group: String,
    pub(super) kind: String,
}

fn gateway_group() -> String {
    GATEWAY.to_owned()
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RouteSpec {
    #[serde(default)]
    pub(super) parent_refs: Vec<ParentRef>,
    /// Empty: those of the listener.
    #[serde(default)]
    pub(super) hostnames: Vec<String>,
    #[serde(default)]
    pub(super) rules: Vec<HttpRule>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentRef {
    pub(super) group: Option<String>,
    pub(super) kind: Option<String>,
    /// Not there: that of the route.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// A listener's name; not there: all listeners.
    pub(super) section_name: Option<String>,
    pub(super) port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HttpRule {
    /// Any of them; empty: all paths.
    #[serde(default)]
    pub(super) matches: Vec<HttpMatch>,
    #[serde(default)]
    pub(super) filters: Vec<IgnoredAny>,
    #[serde(default)]
    pub(super) backend_refs: Vec<BackendRef>,
    pub(super) timeouts: Option<IgnoredAny>,
    pub(super) retry: Option<IgnoredAny>,
    pub(super) session_persistence: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HttpMatch {
    pub(super) path: Option<HttpPath>,
    #[serde(default)]
    pub(super) headers: Vec<NameValue>,
    #[serde(default)]
    pub(super) query_params: Vec<NameValue>,
    pub(super) method: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct HttpPath {
    /// `Exact`, `PathPrefix`, `RegularExpression`; not there: `PathPrefix`.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    /// Not there: `/`.
    pub(super) value: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct NameValue {
    /// `Exact`, `RegularExpression`; not there: `Exact`.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct BackendRef {
    #[serde(default)]
    pub(super) group: String,
    /// Not there: `Service`.
    pub(super) kind: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// Not there: 1.
    pub(super) weight: Option<u32>,
    #[serde(default)]
    pub(super) filters: Vec<IgnoredAny>,
}

/// Who may refer to what in the grant's namespace.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct GrantSpec {
    #[serde(default)]
    pub(super) from: Vec<GrantFrom>,
    #[serde(default)]
    pub(super) to: Vec<GrantTo>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct GrantFrom {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct GrantTo {
    pub(super) group: String,
    pub(super) kind: String,
    /// Not there: all of the kind.
    pub(super) name: Option<String>,
}

/// Only a namespace's labels are of interest.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct NamespaceSpec {}

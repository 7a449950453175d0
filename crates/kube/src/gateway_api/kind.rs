//! The kinds of resources that are read.

use kube::core::{ApiResource, GroupVersionKind};

/// Group of pools.
pub(super) const INFERENCE: &str = "inference.networking.k8s.io";

/// Group of gateways and routes.
pub(super) const GATEWAY: &str = "gateway.networking.k8s.io";

/// Groups of objectives and rewrites: two have them, with the same fields. The first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Group {
    LlmD,
    /// Where they were until 2026.
    Legacy,
}

impl Group {
    pub(super) const ALL: [Self; 2] = [Self::LlmD, Self::Legacy];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::LlmD => "llm-d.ai",
            Self::Legacy => "inference.networking.x-k8s.io",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Class,
    Gateway,
    Route,
    Grant,
    Namespace,
    Pool,
    Objective(Group),
    Rewrite(Group),
}

impl Kind {
    /// What gateways and their routes are made of.
    pub(super) const ROUTING: [Self; 5] =
        [Self::Class, Self::Gateway, Self::Route, Self::Grant, Self::Namespace];

    /// Pools and what belongs to them.
    pub(super) fn of_pools() -> impl Iterator<Item = Self> {
        let of_group = |group| [Self::Objective(group), Self::Rewrite(group)];
        std::iter::once(Self::Pool).chain(Group::ALL.into_iter().flat_map(of_group))
    }

    pub(super) fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Class => (GATEWAY, "v1", "GatewayClass", "gatewayclasses"),
            Self::Gateway => (GATEWAY, "v1", "Gateway", "gateways"),
            Self::Route => (GATEWAY, "v1", "HTTPRoute", "httproutes"),
            Self::Grant => (GATEWAY, "v1beta1", "ReferenceGrant", "referencegrants"),
            Self::Namespace => ("", "v1", "Namespace", "namespaces"),
            Self::Pool => (INFERENCE, "v1", "InferencePool", "inferencepools"),
            Self::Objective(group) => {
                (group.as_str(), "v1alpha2", "InferenceObjective", "inferenceobjectives")
            }
            Self::Rewrite(group) => {
                (group.as_str(), "v1alpha2", "InferenceModelRewrite", "inferencemodelrewrites")
            }
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }
}

//! How a gateway and its objects are told apart.

use std::fmt;
use std::sync::Arc;

use config::{ApiGroup, KIND};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};

use crate::crd;

/// Objects of one gateway are found by this label; its value is the gateway's name.
pub(crate) const GATEWAY_LABEL: &str = "gateway.wicketgate.dev/gateway";
/// What all our objects bear.
pub(crate) const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "wicketgate");

/// Which `InferenceGatewayConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub group: ApiGroup,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Key {
    pub(crate) fn of(object: &DynamicObject, group: ApiGroup) -> Option<Self> {
        let namespace = object.metadata.namespace.as_deref()?.into();
        Some(Self { group, namespace, name: object.metadata.name.as_deref()?.into() })
    }

    /// The gateway that an object belongs to, by the owner it names.
    pub(crate) fn of_owner(object: &DynamicObject) -> Option<(Self, &str)> {
        let owners = object.metadata.owner_references.iter().flatten();
        let owner =
            owners.filter(|owner| owner.controller == Some(true)).find(|o| o.kind == KIND)?;
        let group = [ApiGroup::Wicketgate, ApiGroup::Aws]
            .into_iter()
            .find(|group| group_of(&owner.api_version) == crd::group_name(*group))?;
        let namespace = object.metadata.namespace.as_deref()?.into();
        Some((Self { group, namespace, name: owner.name.as_str().into() }, &owner.uid))
    }

    /// What all its objects are called.
    pub(crate) fn object_name(&self) -> String {
        format!("{}-gateway", self.name)
    }
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Kinds of objects that a gateway is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    ServiceAccount,
    Role,
    RoleBinding,
    Service,
    Deployment,
    PodDisruptionBudget,
}

impl Kind {
    /// In the order in which they are made: who may, before who does.
    pub(crate) const ALL: [Self; 6] = [
        Self::ServiceAccount,
        Self::Role,
        Self::RoleBinding,
        Self::Service,
        Self::Deployment,
        Self::PodDisruptionBudget,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ServiceAccount => "ServiceAccount",
            Self::Role => "Role",
            Self::RoleBinding => "RoleBinding",
            Self::Service => "Service",
            Self::Deployment => "Deployment",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
        }
    }

    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::ServiceAccount | Self::Service => "",
            Self::Role | Self::RoleBinding => "rbac.authorization.k8s.io",
            Self::Deployment => "apps",
            Self::PodDisruptionBudget => "policy",
        }
    }

    pub(crate) fn plural(self) -> String {
        format!("{}s", self.name().to_lowercase())
    }

    pub(crate) fn resource(self) -> ApiResource {
        let kind = GroupVersionKind::gvk(self.group(), "v1", self.name());
        ApiResource::from_gvk_with_plural(&kind, &self.plural())
    }

    pub(crate) fn api_version(self) -> String {
        match self.group() {
            "" => "v1".to_owned(),
            group => format!("{group}/v1"),
        }
    }
}

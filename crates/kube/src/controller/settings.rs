//! What a controller is told when it starts.

use super::election::Timing;

/// What the pods of gateways run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    pub image: String,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: String,
}

#[derive(Clone, Debug)]
pub struct ControllerSettings {
    /// Tells this process from others that could lead; a pod's name.
    pub identity: String,
    /// Where the lease is.
    pub lease_namespace: String,
    pub lease_name: String,
    pub timing: Timing,
    /// `None`: resources of all namespaces.
    pub namespace: Option<String>,
    /// AWS's group as well as ours.
    pub is_for_aws: bool,
    pub images: Images,
}

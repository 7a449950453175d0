//! The document as a whole, and what may be laid over it.

use std::net::SocketAddr;

use crate::finding::Finding;
use crate::picker_config::PickerConfig;
use crate::spec::{AccessLogTarget, EndpointSpec, Spec};

/// A valid `InferenceGatewayConfig`.
#[derive(Clone, Debug)]
pub struct Document {
    pub api_group: ApiGroup,
    /// `metadata.name`.
    pub name: String,
    pub namespace: Option<String>,
    pub spec: Spec,
    /// Accepted, but perhaps not what was meant. In document order.
    pub warnings: Vec<Finding>,
}

/// Whose rules a document follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ApiGroup {
    /// `gateway.wicketgate.dev`: AWS's fields, some of them optional, and ours.
    Wicketgate,
    /// `inference.sagemaker.aws.amazon.com`: exactly AWS's fields and defaults.
    Aws,
}

impl ApiGroup {
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Wicketgate => "gateway.wicketgate.dev/v1alpha1",
            Self::Aws => "inference.sagemaker.aws.amazon.com/v1alpha1",
        }
    }
}

/// The only kind of document so far.
pub const KIND: &str = "InferenceGatewayConfig";

/// Settings from flags or the environment, which go before the document's.
///
/// The order is flag, environment, file, default: build one `Overrides` of the flags, fill its
/// gaps with [`Overrides::or`], and lay it over the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub listen: Option<SocketAddr>,
    pub admin: Option<SocketAddr>,
    pub access_log: Option<AccessLogTarget>,
    /// Added to the document's endpoints, not put in their place.
    pub endpoints: Vec<EndpointSpec>,
}

impl Overrides {
    /// `self` where it says something, else `lower`.
    #[must_use]
    pub fn or(self, lower: Self) -> Self {
        Self {
            listen: self.listen.or(lower.listen),
            admin: self.admin.or(lower.admin),
            access_log: self.access_log.or(lower.access_log),
            endpoints: if self.endpoints.is_empty() { lower.endpoints } else { self.endpoints },
        }
    }
}

impl Document {
    /// Makes a picker's document decide in every pool, whatever this one says of policy and weights: it
    /// comes from a flag. Its warnings join this document's.
    pub fn use_picker(&mut self, mut picker: PickerConfig) {
        self.warnings.append(&mut picker.warnings);
        for scheduler in &mut self.spec.schedulers {
            scheduler.picker_config = Some(picker.clone());
        }
        self.spec.discover_picker = Some(picker);
    }

    pub fn apply(&mut self, overrides: &Overrides) {
        if let Some(address) = overrides.listen {
            self.spec.listener.address = address;
        }
        if let Some(address) = overrides.admin {
            self.spec.admin.address = address;
        }
        if let Some(target) = &overrides.access_log {
            self.spec.access_log.target = target.clone();
        }
        for endpoint in &overrides.endpoints {
            let known = &mut self.spec.discover;
            if known.iter().all(|other| other.url != endpoint.url) {
                known.push(endpoint.clone());
            }
        }
    }
}

//! Who sends a request and what that entitles it to.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use types::{ModelName, ObjectiveName, Priority, TenantName};

/// Whom a request comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Caller {
    /// Counted, limited and scheduled as one.
    pub tenant: TenantName,
    /// What operators call the key or token that it came with; never the secret itself.
    pub credential: Option<Arc<str>>,
    /// The highest priority that it may ask for.
    pub priority_max: Priority,
    /// What holds where the request names no objective.
    pub objective: Option<ObjectiveName>,
    /// Its flow within a band. `None`: the tenant is the flow.
    pub fairness_id: Option<Arc<str>>,
    pub models: ModelAccess,
}

/// Names that a caller may put into `model`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ModelAccess {
    #[default]
    All,
    Only(BTreeSet<ModelName>),
}

/// The tenant of requests without credentials.
const ANONYMOUS: &str = "anonymous";

impl Caller {
    /// Somebody without credentials, where the document allows that. May ask for any priority, as
    /// in the field.
    pub fn anonymous() -> Arc<Self> {
        static ANYBODY: LazyLock<Arc<Caller>> = LazyLock::new(|| {
            Arc::new(Caller {
                tenant: TenantName::new(ANONYMOUS),
                credential: None,
                priority_max: Priority(i32::MAX),
                objective: None,
                fairness_id: None,
                models: ModelAccess::All,
            })
        });
        ANYBODY.clone()
    }

    pub fn is_anonymous(&self) -> bool {
        self.credential.is_none()
    }
}

impl ModelAccess {
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(name),
        }
    }
}

//! As whom somebody asks for an explanation.

use std::sync::Arc;

use identity::Authenticator;
use telemetry::metrics::labels;

use crate::{Caller, Component, Gateway, Refusal, Wishes};

/// Who would send the request, and what it would wish for.
#[derive(Clone, Debug, Default)]
pub struct Asker {
    /// Name of one of the document's callers; `None`: somebody without credentials.
    pub caller: Option<String>,
    /// Name of the credential, for rules that tell keys apart.
    pub credential: Option<String>,
    pub wishes: Wishes,
}

impl Asker {
    pub(super) fn find(&self, gateway: &Gateway) -> Result<Arc<Caller>, Refusal> {
        let keys = gateway.keys_in_force();
        let authenticator = keys.authenticator();
        let found = match &self.caller {
            None => Ok(authenticator.map_or_else(Caller::anonymous, Authenticator::nobody)),
            Some(name) => {
                let known = authenticator.and_then(|keys| keys.caller_named(name));
                known.ok_or_else(|| unknown(gateway, name))
            }
        };
        let caller = found?;
        Ok(match &self.credential {
            None => caller,
            Some(name) => Arc::new(Caller {
                credential: Some(name.as_str().into()),
                ..Caller::clone(&caller)
            }),
        })
    }
}

fn unknown(gateway: &Gateway, name: &str) -> Refusal {
    let spec = gateway.spec();
    let known: Vec<_> =
        spec.auth.iter().flat_map(|auth| &auth.callers).map(|one| one.name.as_str()).collect();
    let hint = match known.as_slice() {
        [] => "the document has none".to_owned(),
        known => format!("callers: {}", known.join(", ")),
    };
    Refusal::new(
        400,
        "unknown_caller",
        Component::Edge,
        labels::Refusal::BadRequest,
        format!("there is no caller `{name}`; {hint}"),
    )
}

//! The document that flags alone describe.

use std::net::SocketAddr;

use types::EndpointAddress;

use crate::document::{ApiGroup, Document, Overrides};
use crate::finding::Errors;
use crate::spec::{EndpointSpec, Spec};

/// `serve --endpoint URL …`: endpoints whose models and engine are found at run time.
///
/// An endpoint that is named twice counts once.
///
/// # Errors
/// Every URL that is none.
pub fn from_flags(
    endpoints: &[String],
    listen: Option<SocketAddr>,
    admin: Option<SocketAddr>,
) -> Result<Document, Errors> {
    let mut overrides = Overrides { listen, admin, ..Overrides::default() };
    let mut errors = Vec::new();
    for text in endpoints {
        match text.parse::<EndpointAddress>() {
            Ok(url) => overrides.endpoints.push(EndpointSpec::new(url)),
            Err(error) => errors.extend(Errors::whole("--endpoint", error.to_string(), None)),
        }
    }
    if !errors.is_empty() {
        return Err(Errors(errors));
    }
    let mut document = Document {
        api_group: ApiGroup::Wicketgate,
        name: "gateway".to_owned(),
        namespace: None,
        spec: Spec::default(),
        warnings: Vec::new(),
    };
    document.apply(&overrides);
    Ok(document)
}

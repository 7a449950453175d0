//! What a request that a proxy shows us has of credentials.

use bytes::Bytes;
use config::ForwardedCertificate;
use gateway::{Certificate, Component, Presented, Refusal};
use telemetry::metrics::labels;

use crate::head::attribute;
use crate::wire::{HeaderMap, ProcessingRequest};

/// Fields with which a client authenticates.
pub(crate) const FIELDS: [&str; 4] = ["authorization", "x-api-key", "api-key", "cookie"];
/// Envoy's field with what it verified of the client's certificate.
const FORWARDED_CERTIFICATE: &str = "x-forwarded-client-cert";

const URI_NAME: &str = "connection.uri_san_peer_certificate";
const DNS_NAME: &str = "connection.dns_san_peer_certificate";
const SUBJECT: &str = "connection.subject_peer_certificate";

/// Credentials of a request.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    authorization: Option<Bytes>,
    x_api_key: Option<Bytes>,
    api_key: Option<Bytes>,
    certificate: Option<Certificate>,
    /// Names of the fields that hold them, as they are to be removed.
    pub(crate) fields: Vec<&'static str>,
}

impl Credentials {
    /// Takes them out of a request's fields and of what the proxy says besides.
    ///
    /// # Errors
    /// A field came twice: readers differ about which one counts.
    pub(crate) fn read(
        fields: &HeaderMap,
        around: &ProcessingRequest,
        trusted: ForwardedCertificate,
    ) -> Result<Self, Refusal> {
        let present = |name: &&str| fields.get(name).is_some();
        let certificate = match trusted {
            ForwardedCertificate::Ignore => None,
            ForwardedCertificate::Attributes => by_attributes(around),
            ForwardedCertificate::Header => one(fields, FORWARDED_CERTIFICATE)?.and_then(|value| {
                Certificate::from_xfcc(std::str::from_utf8(&value).unwrap_or_default())
            }),
        };
        let mut held: Vec<_> = FIELDS.into_iter().filter(present).collect();
        if trusted == ForwardedCertificate::Header {
            held.extend(Some(FORWARDED_CERTIFICATE).filter(present));
        }
        Ok(Self {
            authorization: one(fields, "authorization")?,
            x_api_key: one(fields, "x-api-key")?,
            api_key: one(fields, "api-key")?,
            certificate,
            fields: held,
        })
    }

    /// Names of the fields with keys, but for `authorization`, which a key of ours replaces.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        self.fields
            .iter()
            .copied()
            .filter(|name| matches!(*name, "x-api-key" | "api-key"))
            .collect()
    }

    pub(crate) fn presented(&self, lists_models: bool) -> Presented<'_> {
        Presented {
            authorization: self.authorization.as_deref(),
            x_api_key: self.x_api_key.as_deref(),
            api_key: self.api_key.as_deref(),
            certificate: self.certificate.as_ref(),
            lists_models,
        }
    }
}

/// The value of a field that may come once.
fn one(fields: &HeaderMap, name: &str) -> Result<Option<Bytes>, Refusal> {
    let mut found = fields.headers.iter().filter(|field| field.key.eq_ignore_ascii_case(name));
    let Some(first) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(Refusal::new(
            400,
            "bad_request",
            Component::Edge,
            labels::Refusal::Malformed,
            "a header that may come once came more than once",
        ));
    }
    Ok(Some(Bytes::copy_from_slice(first.bytes())))
}

fn by_attributes(around: &ProcessingRequest) -> Option<Certificate> {
    let names = [URI_NAME, DNS_NAME].into_iter().filter_map(|name| attribute(around, name));
    let certificate = Certificate::from_subject(names, attribute(around, SUBJECT));
    (!certificate.is_nameless()).then_some(certificate)
}

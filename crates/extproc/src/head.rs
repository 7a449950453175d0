//! A request's head, as far as it decides something.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use gateway::{Component, Refusal, RequestId, Wishes};
use http::Method;
use telemetry::metrics::labels;

use crate::names;
use crate::settings::Role;
use crate::trace::Trace;
use crate::wire::{self, HeaderMap, ProcessingRequest};

/// Stands for a client of which the proxy says nothing.
pub(crate) const UNKNOWN_CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    /// With its query.
    pub(crate) path: String,
    pub(crate) content_type: Option<String>,
    pub(crate) is_compressed: bool,
    pub(crate) content_length: Option<u64>,
    /// The client's, or the proxy's; `None` when there is none that may be passed on.
    pub(crate) request_id: Option<RequestId>,
    pub(crate) session: Option<u64>,
    /// Another model than the body names.
    pub(crate) rewrite: Option<String>,
    pub(crate) client: SocketAddr,
    pub(crate) wishes: Wishes,
    pub(crate) trace: Trace,
    /// Names of fields that must not get past us.
    pub(crate) removals: Vec<String>,
    /// Names of fields with keys of the client's, which an endpoint that has a key of its own must not see.
    pub(crate) keys: Vec<&'static str>,
    /// The only endpoints that may be chosen.
    pub(crate) subset: Option<Vec<String>>,
}

impl Head {
    /// Reads the head of a request; `around` is what came in the message besides it.
    pub(crate) fn read(
        fields: &HeaderMap,
        around: &ProcessingRequest,
        role: Role,
    ) -> Result<Self, Refusal> {
        let method = fields.get(":method").and_then(|method| Method::from_bytes(method).ok());
        let path = fields.get_str(":path").filter(|path| path.starts_with('/') || *path == "*");
        let (Some(method), Some(path)) = (method, path) else {
            return Err(Refusal::new(
                400,
                "malformed_request",
                Component::Edge,
                labels::Refusal::Malformed,
                "the request has no valid method or path",
            ));
        };
        let encoding = fields.get("content-encoding");
        Ok(Self {
            method,
            path: path.to_owned(),
            content_type: fields.get_str("content-type").map(str::to_owned),
            is_compressed: encoding.is_some_and(|name| !name.eq_ignore_ascii_case(b"identity")),
            content_length: fields.get_str("content-length").and_then(|text| text.parse().ok()),
            request_id: fields.get_str(names::REQUEST_ID).and_then(RequestId::from_client),
            session: fields.get(names::SESSION_ID).map(hash_session),
            rewrite: names::REWRITE.iter().find_map(|name| fields.get_str(name)).map(str::to_owned),
            client: client(fields, around),
            wishes: Wishes::read(|name| fields.get_str(name)),
            trace: Trace::read(fields),
            removals: removals(fields, role),
            keys: Vec::new(),
            subset: subset(around),
        })
    }

    /// The path without its query.
    pub(crate) fn raw_path(&self) -> &str {
        self.path.split('?').next().unwrap_or(&self.path)
    }
}

fn removals(fields: &HeaderMap, role: Role) -> Vec<String> {
    let is_ours = |name: &str| {
        names::STEERING.contains(&name)
            || names::REWRITE.contains(&name)
            || name.starts_with("x-wicketgate-")
            || (role.routes() && matches!(name, names::MODEL | names::BASE_MODEL))
    };
    let mut names: Vec<String> = fields
        .headers
        .iter()
        .map(|field| field.key.to_ascii_lowercase())
        .filter(|name| is_ours(name))
        .collect();
    names.dedup();
    names
}

fn subset(around: &ProcessingRequest) -> Option<Vec<String>> {
    let metadata = around.metadata_context.as_ref()?;
    let hint = metadata.filter_metadata.get(names::SUBSET_NAMESPACE)?;
    let endpoints = wire::list_field(hint, names::SUBSET)?;
    Some(endpoints.into_iter().map(str::to_owned).collect())
}

/// An attribute by its name, whichever filter it was sent for.
pub(crate) fn attribute<'a>(around: &'a ProcessingRequest, name: &str) -> Option<&'a str> {
    around.attributes.values().find_map(|attributes| wire::string_field(attributes, name))
}

/// The client's address: what the proxy says outright, else the last that it appended.
fn client(fields: &HeaderMap, around: &ProcessingRequest) -> SocketAddr {
    let said = attribute(around, names::SOURCE_ADDRESS).and_then(|text| text.parse().ok());
    said.or_else(|| {
        let forwarded = fields.get_str("x-forwarded-for")?;
        let last = forwarded.rsplit(',').next()?.trim();
        Some(SocketAddr::new(last.parse().ok()?, 0))
    })
    .unwrap_or(UNKNOWN_CLIENT)
}

fn hash_session(session: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(session);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HeaderValue;

    fn head(fields: &[(&str, &str)], role: Role) -> Result<Head, Refusal> {
        let fields = fields.iter().map(|(name, value)| HeaderValue::new(*name, value.to_string()));
        let fields = HeaderMap { headers: fields.collect() };
        Head::read(&fields, &ProcessingRequest::default(), role)
    }

    const POST: [(&str, &str); 2] = [(":method", "POST"), (":path", "/v1/chat/completions?x=1")];

    #[test]
    fn a_head_without_method_or_path_is_refused() {
        for fields in [&POST[..1], &POST[1..], &[(":method", "GET"), (":path", "v1")], &[]] {
            assert_eq!(head(fields, Role::Both).unwrap_err().status, 400, "{fields:?}");
        }
        assert_eq!(head(&POST, Role::Both).unwrap().raw_path(), "/v1/chat/completions");
    }

    #[test]
    fn every_field_that_steers_is_removed_in_any_case() {
        for name in names::STEERING.iter().chain(&names::REWRITE).chain(&["x-wicketgate-component"])
        {
            let upper = name.to_ascii_uppercase();
            let fields = [POST[0], POST[1], (upper.as_str(), "10.0.0.9:22")];
            for role in [Role::Both, Role::Picker, Role::Router] {
                assert_eq!(head(&fields, role).unwrap().removals, [*name], "{role:?}");
            }
        }
    }

    #[test]
    fn model_fields_of_a_router_before_us_are_left_to_it() {
        let fields = [POST[0], POST[1], ("x-gateway-model-name", "llama")];
        assert!(head(&fields, Role::Picker).unwrap().removals.is_empty());
        assert_eq!(head(&fields, Role::Router).unwrap().removals, ["x-gateway-model-name"]);
    }

    #[test]
    fn a_value_in_the_former_place_is_read_too() {
        let mut field = HeaderValue::new(":method", "");
        field.value = "GET".to_owned();
        let path = HeaderValue::new(":path", "/v1/models");
        let fields = HeaderMap { headers: vec![field, path] };
        let head = Head::read(&fields, &ProcessingRequest::default(), Role::Both).unwrap();
        assert_eq!(head.method, Method::GET);
    }
}

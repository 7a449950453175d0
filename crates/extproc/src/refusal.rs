//! Errors of ours as answers that the proxy gives in our place.

use bytes::Bytes;
use gateway::{Component, Refusal, RequestId};
use openai::{Dialect, ErrorObject};

use crate::names;
use crate::wire::{HeaderMutation, HttpStatus, ImmediateResponse};

/// An error in the dialect of its route.
pub(crate) fn error_response(
    refusal: &Refusal,
    dialect: Dialect,
    id: Option<&RequestId>,
) -> ImmediateResponse {
    let object = ErrorObject {
        status: refusal.status,
        message: &refusal.message,
        kind: refusal.kind,
        code: refusal.code,
        param: refusal.param,
        reason: refusal.dropped_reason(),
    };
    let mut response = json_response(refusal.status, object.to_json(dialect), id);
    response.details = refusal.code.to_owned();
    let fields = response.headers.get_or_insert_default();
    fields.set("x-wicketgate-component", refusal.component.as_str());
    if let Some(reason) = dropped_reason(refusal) {
        fields.set(names::DROPPED_REASON, reason);
    }
    for (name, value) in refusal.reason_fields() {
        if name != names::DROPPED_REASON {
            fields.set(name, value.into_owned());
        }
    }
    if let Some(seconds) = refusal.retry_after_seconds() {
        fields.set("retry-after", seconds.to_string());
    }
    response
}

pub(crate) fn json_response(status: u16, body: Bytes, id: Option<&RequestId>) -> ImmediateResponse {
    let mut fields = HeaderMutation::default();
    fields.set("content-type", "application/json");
    if let Some(id) = id {
        fields.set(names::REQUEST_ID, id.as_str().to_owned());
    }
    ImmediateResponse {
        status: Some(HttpStatus { code: status.into() }),
        headers: Some(fields),
        body,
        details: String::new(),
    }
}

/// The field's word for what was shed. A request that is wrong was not shed.
fn dropped_reason(refusal: &Refusal) -> Option<&'static str> {
    match (refusal.status, refusal.code, refusal.component) {
        (_, "draining", _) => Some("rejected-shutting-down"),
        _ if refusal.field_reason().is_some() => refusal.field_reason(),
        (429, _, Component::Limit) => Some("rejected-rate-limited"),
        (429, ..) | (503, _, Component::Flow | Component::Limit) => Some("rejected-saturated"),
        (503, _, Component::Picker) => Some("rejected-no-endpoints"),
        _ => None,
    }
}

//! Errors that the data path gives by itself.

use std::time::Duration;

use gateway::{Component, Refusal, RequestId};
use openai::{BodyKind, Dialect, ErrorObject, Route, RouteError};
use telemetry::metrics::labels;

use crate::answer::Answer;
use crate::fields::Class;
use crate::head::RequestHead;

/// An error of ours in the dialect of its route.
pub(crate) fn error_answer(refusal: &Refusal, dialect: Dialect, id: Option<&RequestId>) -> Answer {
    let object = ErrorObject {
        status: refusal.status,
        message: &refusal.message,
        kind: refusal.kind,
        code: refusal.code,
        param: refusal.param,
        reason: refusal.dropped_reason(),
    };
    let mut answer = Answer::new(refusal.status, "application/json", object.to_json(dialect));
    answer.field("x-wicketgate-component", refusal.component.as_str());
    if let Some(id) = id {
        answer.field("x-request-id", id.as_str());
    }
    if let Some(seconds) = refusal.retry_after_seconds() {
        answer.field("retry-after", &seconds.to_string());
    }
    for (name, value) in refusal.reason_fields() {
        answer.field(name, &value);
    }
    answer
}

pub(super) fn route_refusal(error: RouteError) -> Refusal {
    match error {
        RouteError::NotFound => Refusal::new(
            404,
            "path_not_found",
            Component::Edge,
            labels::Refusal::RouteNotFound,
            "this path is not served; allowedPaths in the document can open more",
        ),
        RouteError::MethodNotAllowed { allow } => {
            let message = format!("this path is served for {allow} only");
            let mut refusal = Refusal::new(
                405,
                "method_not_allowed",
                Component::Edge,
                labels::Refusal::Method,
                message,
            );
            refusal.demand = Some(gateway::Demand::Method(allow));
            refusal
        }
    }
}

pub(super) fn check_media_type(route: Route, head: &RequestHead) -> Result<(), Refusal> {
    let refuse = |message: &str| {
        Refusal::new(
            415,
            "unsupported_media_type",
            Component::Edge,
            labels::Refusal::MediaType,
            message,
        )
    };
    if let Some(encoding) = head.fields.get(Class::ContentEncoding)
        && !encoding.eq_ignore_ascii_case(b"identity")
    {
        return Err(refuse("compressed request bodies are not accepted: send the body as it is"));
    }
    let given = head.fields.get_str(Class::ContentType).unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    match route.body() {
        BodyKind::Json if !essence.eq_ignore_ascii_case("application/json") => {
            Err(refuse("this path takes JSON: set `Content-Type: application/json`"))
        }
        BodyKind::Multipart if !essence.eq_ignore_ascii_case("multipart/form-data") => {
            Err(refuse("this path takes a form: set `Content-Type: multipart/form-data`"))
        }
        _ => Ok(()),
    }
}

pub(super) fn too_many_bytes() -> Refusal {
    const WAIT: Duration = Duration::from_secs(1);
    Refusal::new(
        503,
        "body_memory",
        Component::Limit,
        labels::Refusal::Overloaded,
        "the gateway holds as many request bytes as it may",
    )
    .with_retry_after(WAIT)
}

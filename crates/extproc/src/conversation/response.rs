//! The answer's way through a conversation: looked at, passed on, never held.

use std::collections::VecDeque;

use bytes::Bytes;
use gateway::{Ending, RATE_LIMIT_FIELDS};
use types::Timestamp;

use super::request::Inbound;
use super::{Conversation, Next, Violation};
use crate::head::attribute;
use crate::names;
use crate::wire::{
    self, BodyMode, BodyResponse, CommonResponse, HeaderMap, HeaderMutation, HeadersResponse,
    HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse, Response, TrailersResponse,
};

/// How far the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outbound {
    Waiting,
    /// Its head has passed.
    Passing,
    Done,
}

type Out = VecDeque<ProcessingResponse>;

impl Conversation {
    pub(super) fn response_headers(
        &mut self,
        headers: &HttpHeaders,
        around: &ProcessingRequest,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        if self.outbound != Outbound::Waiting {
            return Err(Violation::OutOfOrder { got: "response headers", when: "twice" });
        }
        if matches!(self.inbound, Inbound::Fresh) {
            return Err(Violation::Unsupported(
                "request_header_mode must be SEND: an answer came without its request",
            ));
        }
        self.outbound = Outbound::Passing;
        let none = HeaderMap::default();
        let fields = headers.headers.as_ref().unwrap_or(&none);
        let status = fields.get_str(":status").and_then(|text| text.parse().ok()).unwrap_or(0);
        if matches!(self.inbound, Inbound::Collecting(_)) {
            // The proxy answers by itself, before it has the whole request.
            self.inbound = Inbound::Done;
            if let Some(mut exchange) = self.exchange.take() {
                exchange.answered_ourselves(status, now);
            }
        }
        let mutation = self.observe_head(fields, status, around, now);
        if headers.end_of_stream {
            self.end_answer(now);
        }
        let header_mutation = (!mutation.is_empty()).then_some(mutation);
        let common = CommonResponse { header_mutation, ..CommonResponse::default() };
        let response = HeadersResponse { response: Some(common) };
        out.push_back(Response::ResponseHeaders(response).into());
        Ok(Next::Read)
    }

    /// Learns from the head of an answer; what is to be changed in it.
    fn observe_head(
        &mut self,
        fields: &HeaderMap,
        status: u16,
        around: &ProcessingRequest,
        now: Timestamp,
    ) -> HeaderMutation {
        let mut mutation = HeaderMutation::default();
        let Some(exchange) = &mut self.exchange else { return mutation };
        let served = served_by(around);
        if let Some(endpoint) =
            served.and_then(|text| self.picker.destinations.find(&self.picker.gateway, text))
        {
            exchange.served_by(endpoint, now);
        }
        let has_retry_after = fields.get("retry-after").is_some();
        exchange.answered_finally(status, has_retry_after, now);
        let is_plain = fields.get("content-encoding").is_none();
        let content_type = fields.get_str("content-type").filter(|_| is_plain);
        exchange.watch(content_type);
        if let Some(seconds) = exchange.retry_after_instead(has_retry_after) {
            mutation.set("retry-after", seconds.to_string());
        }
        let told = exchange.told_fields(now);
        let mut unwanted: Vec<String> = names::CONTROL_PREFIXES
            .iter()
            .flat_map(|prefix| fields.names_beginning_with(prefix))
            .collect();
        if told.iter().any(|(name, _)| name.starts_with(RATE_LIMIT_FIELDS)) {
            // Whoever has limits here is not to pace itself by an endpoint's.
            unwanted.extend(fields.names_beginning_with(RATE_LIMIT_FIELDS));
        }
        told.into_iter().for_each(|(name, value)| mutation.set(name, value));
        if status >= 400 {
            mutation.set("x-wicketgate-component", "endpoint");
        }
        if self.picker.gateway.spec().expose_decision
            && let Some(endpoint) = exchange.endpoint_label()
        {
            mutation.set("x-wicketgate-endpoint", endpoint);
        }
        if let Some(timing) = exchange.server_timing(now) {
            mutation.append("server-timing", timing);
        }
        remove_but_for_ours(&mut mutation, unwanted);
        if !content_type.is_some_and(openai::holds_model_names) {
            self.rename = None;
        }
        if self.rename.is_some() && fields.get("content-length").is_some() {
            mutation.remove("content-length");
        }
        mutation
    }

    pub(super) fn response_body(
        &mut self,
        body: HttpBody,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        match self.outbound {
            Outbound::Waiting => {
                return Err(Violation::OutOfOrder {
                    got: "a response body",
                    when: "before the response headers",
                });
            }
            // A repeated last piece; it has been passed on.
            Outbound::Done => return Ok(Next::Read),
            Outbound::Passing => {}
        }
        if !body.body.is_empty()
            && let Some(exchange) = &mut self.exchange
        {
            exchange.payload(&body.body, now);
        }
        let passed = self.renamed(&body.body, body.end_of_stream);
        let response = match self.modes.response {
            BodyMode::FullDuplexStreamed => BodyResponse::streamed(passed, body.end_of_stream),
            _ if passed == body.body => BodyResponse { response: Some(CommonResponse::default()) },
            _ => BodyResponse::replaced(passed),
        };
        out.push_back(Response::ResponseBody(response).into());
        if body.end_of_stream {
            self.end_answer(now);
        }
        Ok(Next::Read)
    }

    pub(super) fn response_trailers(
        &mut self,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        if self.outbound == Outbound::Waiting {
            return Err(Violation::OutOfOrder {
                got: "response trailers",
                when: "before the response headers",
            });
        }
        if self.modes.response == BodyMode::FullDuplexStreamed {
            let held = self.renamed(&Bytes::new(), true);
            if !held.is_empty() {
                out.push_back(Response::ResponseBody(BodyResponse::streamed(held, false)).into());
            }
        }
        out.push_back(Response::ResponseTrailers(TrailersResponse::default()).into());
        self.end_answer(now);
        Ok(Next::Read)
    }

    fn renamed(&mut self, chunk: &Bytes, is_last: bool) -> Bytes {
        let Some(rename) = &mut self.rename else { return chunk.clone() };
        let passed = rename.push(chunk);
        if !is_last {
            return passed;
        }
        let held = rename.finish();
        if held.is_empty() { passed } else { Bytes::from([&passed[..], &held[..]].concat()) }
    }

    fn end_answer(&mut self, now: Timestamp) {
        self.outbound = Outbound::Done;
        let Some(exchange) = &self.exchange else { return };
        let ending = if exchange.stream_is_unfinished() {
            Ending::EndpointUnfinished
        } else {
            Ending::Complete
        };
        self.finish(ending, now);
    }
}

/// Removes fields, save those that we write anew.
fn remove_but_for_ours(mutation: &mut HeaderMutation, mut names: Vec<String>) {
    names.sort_unstable();
    names.dedup();
    let ours = |name: &String| {
        let written = mutation.set_headers.iter().filter_map(|set| set.header.as_ref());
        written.into_iter().any(|header| header.key == *name)
    };
    names.retain(|name| !ours(name));
    names.into_iter().for_each(|name| mutation.remove(name));
}

/// Who answered: as the protocol has it, else as Envoy's own attribute.
fn served_by(around: &ProcessingRequest) -> Option<&str> {
    let lb = around
        .metadata_context
        .as_ref()
        .and_then(|metadata| metadata.filter_metadata.get(names::LB_NAMESPACE));
    lb.and_then(|lb| wire::string_field(lb, names::SERVED))
        .or_else(|| attribute(around, names::UPSTREAM_ADDRESS))
}

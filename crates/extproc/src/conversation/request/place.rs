//! A request that is here: read, placed, and given back to the proxy with the pick.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{
    Caller, Component, Exchange, Grant, HeldBody, ModelAccess, Placed, Refusal, RequestId,
};
use openai::{Body, BodyKind, Dialect, Rename, Route};
use telemetry::metrics::labels;
use types::Timestamp;

use super::{Conversation, End, Inbound, Out};
use crate::conversation::{Next, Signal};
use crate::head::Head;
use crate::names;
use crate::refusal::json_response;
use crate::settings::{DESTINATIONS_MAX, Picker};
use crate::wire::{
    self, BodyMode, BodyResponse, CommonResponse, HeaderMutation, HeadersResponse,
    ProcessingResponse, Response,
};

/// Envoy expects pieces of less than 64 KiB; the field's pickers send this much.
pub(crate) const PIECE_BYTES_MAX: usize = 62_000;

/// What a client is told to wait while endpoints' names are not resolved.
const WAIT_FOR_NAMES: Duration = Duration::from_secs(5);

/// A request of which all is here.
pub(super) struct Collected {
    pub(super) head: Head,
    pub(super) caller: Arc<Caller>,
    pub(super) route: Option<Route>,
    pub(super) body: Bytes,
    /// Holds the bytes against the limit over all requests.
    pub(super) held: Vec<HeldBody>,
}

/// A request that waits for its turn.
pub(in crate::conversation) struct Waiting {
    head: Head,
    said: Body,
    body: Bytes,
    end: End,
    dialect: Dialect,
    held: Vec<HeldBody>,
}

/// What is to be said about a request besides its body.
#[derive(Default)]
struct Answer {
    mutation: HeaderMutation,
    clears_route: bool,
    metadata: Option<prost_types::Struct>,
}

impl Conversation {
    /// Answers a request of which all is here.
    pub(super) fn answer_request(
        &mut self,
        collected: Collected,
        end: End,
        now: Timestamp,
        out: &mut Out,
    ) -> Next {
        let Collected { head, caller, route, body, held } = collected;
        let dialect = route.map_or(Dialect::OpenAi, Route::dialect);
        if let Some(mut exchange) =
            self.exchange.take_if(|_| answers_itself(&self.picker, &head, &caller, route))
        {
            return models(&self.picker, &head, route, &mut exchange, now, out);
        }
        let result = match self.exchange.take() {
            Some(mut exchange) => {
                let placed = self.place(&mut exchange, &head, &body, now);
                self.exchange = Some(exchange);
                match placed {
                    Ok((said, body, Placed::Waits(turn))) => {
                        let waiting = Waiting { head, said, body, end, dialect, held };
                        self.inbound = Inbound::Waiting(Box::new(waiting), Box::pin(turn.come()));
                        return Next::Read;
                    }
                    Ok((said, body, Placed::Chosen)) => {
                        return self.send_on(&head, &said, body, end, dialect, now, out);
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            None => self.name_model(&head, &caller, route, &body),
        };
        match result {
            Err(refusal) => self.refuse_head(&refusal, dialect, &head, now, out),
            Ok((answer, body)) => {
                self.push_request(answer, body, end, out);
                self.next_after_request(end)
            }
        }
    }

    /// The turn of a request that waited has come, or its time is over.
    pub(in crate::conversation) fn called(
        &mut self,
        waiting: Waiting,
        called: Result<Grant, Refusal>,
        now: Timestamp,
        out: &mut Out,
    ) -> Next {
        let Waiting { head, said, body, end, dialect, held } = waiting;
        let went = match (called, &mut self.exchange) {
            (Ok(grant), Some(exchange)) => exchange.go(grant, now),
            (Ok(_), None) => return Next::Close,
            (Err(refusal), _) => Err(refusal),
        };
        let next = match went {
            Ok(()) => self.send_on(&head, &said, body, end, dialect, now, out),
            Err(refusal) => self.refuse_head(&refusal, dialect, &head, now, out),
        };
        drop(held);
        next
    }

    /// Gives the request back to the proxy with the pick.
    #[expect(clippy::too_many_arguments, reason = "a request is head, body, end and dialect")]
    fn send_on(
        &mut self,
        head: &Head,
        said: &Body,
        body: Bytes,
        end: End,
        dialect: Dialect,
        now: Timestamp,
        out: &mut Out,
    ) -> Next {
        let Some(mut exchange) = self.exchange.take() else { return Next::Close };
        let picked = self.answer_with_pick(&mut exchange, head, said, body.len(), end, now);
        self.revocation = exchange.revocation().map(|revocation| {
            let future = async move { revocation.revoked().await };
            (dialect, Box::pin(future) as Signal)
        });
        self.exchange = Some(exchange);
        match picked {
            Err(refusal) => self.refuse_head(&refusal, dialect, head, now, out),
            Ok(answer) => {
                self.push_request(answer, body, end, out);
                self.next_after_request(end)
            }
        }
    }

    /// What the body says, the body as it goes on, and whether the request waits.
    fn place(
        &mut self,
        exchange: &mut Exchange,
        head: &Head,
        body: &Bytes,
        now: Timestamp,
    ) -> Result<(Body, Bytes, Placed), Refusal> {
        let picker = &*self.picker;
        exchange.count_body(body);
        let mut said = match exchange.route().body() {
            BodyKind::None => Body::default(),
            // What was not sent here cannot be read; the pool is found without it, where that can be.
            _ if self.modes.request == BodyMode::None => Body::default(),
            _ => exchange.read(body, head.content_type.as_deref())?,
        };
        exchange.check_named(&said)?;
        let forced = match rewrite(picker, head, &said) {
            None => None,
            Some((target, asked)) => {
                let is_json = exchange.route().body() == BodyKind::Json;
                let forced = said.model.as_ref().and_then(|model| {
                    openai::with_model(body, model.literal.clone(), target, is_json)
                });
                if let Some(model) = &mut said.model {
                    model.name = target.to_owned();
                }
                self.rename = Some(Rename::new(target, &asked));
                exchange.keep_model();
                forced
            }
        };
        if let Some(endpoints) = &head.subset {
            exchange.restrict(picker.destinations.subset(&picker.gateway, endpoints));
        }
        let placed = exchange.place_as(body, &said, now)?;
        if let (Some(name), Some(model)) = (exchange.wire_model(), &mut said.model) {
            model.name = name.to_owned();
            self.rename = exchange.rename();
        }
        let rewritten = forced.or_else(|| exchange.body_for_endpoint(body));
        let body = rewritten.unwrap_or_else(|| body.clone());
        Ok((said, body, placed))
    }

    /// What is to be said about a request with the pick.
    fn answer_with_pick(
        &self,
        exchange: &mut Exchange,
        head: &Head,
        said: &Body,
        body_bytes: usize,
        end: End,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let picker = &*self.picker;
        let (picked, path_prefix) = picked(picker, exchange)?;
        let attempt = exchange.attempt(now);
        let mut answer = Answer::default();
        self.remove_control(head, &mut answer);
        let mutation = &mut answer.mutation;
        let traceparent = attempt.and_then(|attempt| attempt.traceparent);
        head.trace.pass_on(traceparent, mutation);
        mutation.set(names::DESTINATION, picked.clone());
        if head.request_id.is_none() {
            mutation.set(names::REQUEST_ID, exchange.id().as_str().to_owned());
        }
        if !path_prefix.is_empty() {
            mutation.set(":path", format!("{path_prefix}{}", head.path));
        }
        let of_pool = exchange.target().and_then(|of| of.pool.settings.authorization.as_ref());
        let own = of_pool.map(|secret| &*secret.0);
        if let Some(own) = own.or(picker.settings.endpoint_authorization.as_deref()) {
            mutation.set("authorization", own.to_owned());
            // The client's own stand beside it nowhere.
            let others =
                head.keys.iter().filter(|key| !head.removals.iter().any(|name| name == *key));
            others.for_each(|key| mutation.remove(*key));
        }
        if end == End::Body || (end == End::Trailers && self.rename.is_some()) {
            mutation.set("content-length", body_bytes.to_string());
        }
        if self.rename.is_some() {
            // What is packed cannot be renamed.
            mutation.remove("accept-encoding");
        }
        if picker.settings.role.routes() {
            let base = exchange.target().map(|target| target.pool.model.as_str());
            name_in_fields(said, base, &mut answer);
        }
        let pick = wire::structure([(names::DESTINATION, wire::string(picked))]);
        let lb = prost_types::Value { kind: Some(prost_types::value::Kind::StructValue(pick)) };
        answer.metadata = Some(wire::structure([(names::LB_NAMESPACE, lb)]));
        Ok(answer)
    }

    /// The router's step alone: says which model the body names.
    fn name_model(
        &self,
        head: &Head,
        caller: &Caller,
        route: Option<Route>,
        body: &Bytes,
    ) -> Result<(Answer, Bytes), Refusal> {
        let mut answer = Answer::default();
        self.remove_control(head, &mut answer);
        if let Some(route) = route
            && self.modes.request != BodyMode::None
        {
            let limits = openai::Limits::default();
            let read = match route.body() {
                BodyKind::Json => openai::scan(route, body, &limits),
                BodyKind::Multipart => openai::scan_multipart(
                    head.content_type.as_deref().unwrap_or(""),
                    body,
                    &limits,
                ),
                BodyKind::None | BodyKind::Opaque => Ok(Body::default()),
            };
            let said = read.map_err(|error| {
                let (code, param) = (error.code(), error.param);
                Refusal::new(
                    400,
                    code,
                    Component::Edge,
                    labels::Refusal::BadRequest,
                    error.to_string(),
                )
                .with_param(param)
            })?;
            let catalog = self.picker.gateway.catalog();
            if let Some(model) = said.model.as_ref().filter(|_| !gateway::may_name(caller, &said)) {
                return Err(gateway::model_not_found(&catalog, caller, &model.name));
            }
            let base = said.model.as_ref().and_then(|model| catalog.base_of(&model.name));
            name_in_fields(&said, base.map(|base| base.as_str()), &mut answer);
        }
        Ok((answer, body.clone()))
    }

    fn remove_control(&self, head: &Head, answer: &mut Answer) {
        for name in &head.removals {
            answer.mutation.remove(name.clone());
        }
        // A client that named a model in a field may have chosen a route by it.
        answer.clears_route = self.picker.settings.role.routes()
            && head.removals.iter().any(|name| name == names::MODEL || name == names::BASE_MODEL);
    }

    /// Header answer, then the body in pieces, then trailers: the proxy takes no other order.
    fn push_request(&self, answer: Answer, body: Bytes, end: End, out: &mut Out) {
        let Answer { mut mutation, clears_route, metadata } = answer;
        // Of a field that is set and removed, the proxy would do the one or the other.
        mutation.remove_headers.retain(|name| {
            !mutation
                .set_headers
                .iter()
                .any(|set| set.header.as_ref().is_some_and(|field| field.key == *name))
        });
        let common = CommonResponse {
            header_mutation: (!mutation.is_empty()).then_some(mutation),
            body_mutation: None,
            clear_route_cache: clears_route,
        };
        let with_metadata =
            |response| ProcessingResponse { dynamic_metadata: metadata, response: Some(response) };
        if self.modes.request == BodyMode::Buffered && end != End::Head {
            let mut response = if self.rename.is_some() {
                BodyResponse::replaced(body)
            } else {
                BodyResponse { response: Some(CommonResponse::default()) }
            };
            if let Some(inner) = &mut response.response {
                inner.header_mutation = common.header_mutation;
                inner.clear_route_cache = common.clear_route_cache;
            }
            out.push_back(with_metadata(Response::RequestBody(response)));
        } else {
            let response = HeadersResponse { response: Some(common) };
            out.push_back(with_metadata(Response::RequestHeaders(response)));
            if end != End::Head {
                push_pieces(body, end, out);
            }
        }
        if end == End::Trailers {
            out.push_back(Response::RequestTrailers(Default::default()).into());
        }
    }

    /// A router that is not shown the answer has done its work.
    fn next_after_request(&self, end: End) -> Next {
        let is_done = self.exchange.is_none()
            && self.modes.response == BodyMode::None
            && (self.modes.request != BodyMode::None || end == End::Head);
        if is_done { Next::Close } else { Next::Read }
    }
}

fn push_pieces(body: Bytes, end: End, out: &mut VecDeque<ProcessingResponse>) {
    let has_trailers = end == End::Trailers;
    if body.is_empty() && has_trailers {
        return;
    }
    let pieces = body.len().div_ceil(PIECE_BYTES_MAX).max(1);
    for piece in 0..pieces {
        let from = piece * PIECE_BYTES_MAX;
        let bytes = body.slice(from..body.len().min(from + PIECE_BYTES_MAX));
        let is_last = piece + 1 == pieces && !has_trailers;
        out.push_back(Response::RequestBody(BodyResponse::streamed(bytes, is_last)).into());
    }
}

/// Whether a list of models is ours to give: with one pool and no names of ours, its endpoint knows
/// best. Of what a caller may not use it must not hear.
fn answers_itself(picker: &Picker, head: &Head, caller: &Caller, route: Option<Route>) -> bool {
    let is_list = matches!(route, Some(Route::Models | Route::Model));
    let is_restricted = caller.models != ModelAccess::All;
    let catalog = picker.gateway.catalog();
    let are_many = catalog.pools.len() > 1 || catalog.has_aliases();
    is_list && (is_restricted || (head.subset.is_none() && are_many))
}

fn models(
    picker: &Picker,
    head: &Head,
    route: Option<Route>,
    exchange: &mut Exchange,
    now: Timestamp,
    out: &mut Out,
) -> Next {
    let catalog = picker.gateway.catalog();
    let id: &RequestId = exchange.id();
    if route == Some(Route::Models) {
        let cards = gateway::cards(&catalog, exchange.caller());
        out.push_back(
            Response::Immediate(json_response(200, openai::list(&cards), Some(id))).into(),
        );
        exchange.answered_ourselves(200, now);
        return Next::Close;
    }
    let name = openai::model_id(head.raw_path()).unwrap_or_default();
    match gateway::card(&catalog, exchange.caller(), &name) {
        Ok(card) => {
            let response = json_response(200, openai::card(card), Some(id));
            out.push_back(Response::Immediate(response).into());
            exchange.answered_ourselves(200, now);
        }
        Err(refusal) => {
            let response = crate::refusal::error_response(&refusal, Dialect::OpenAi, Some(id));
            out.push_back(Response::Immediate(response).into());
            exchange.refused(&refusal, now);
        }
    }
    Next::Close
}

/// Where the proxy shall send the request: `ip:port`, or several with commas, and what their paths
/// have in front.
fn picked(picker: &Picker, exchange: &Exchange) -> Result<(String, String), Refusal> {
    let most = picker.settings.destinations.clamp(1, DESTINATIONS_MAX);
    let mut prefix: Option<&str> = None;
    let mut found: Vec<SocketAddr> = Vec::with_capacity(most);
    for member in exchange.choices() {
        let address = &member.endpoint.address;
        let Some(destination) = picker.destinations.of(address) else { continue };
        // The proxy sends one and the same path to all of them.
        if *prefix.get_or_insert(address.path_prefix()) == address.path_prefix()
            && found.len() < most
        {
            found.push(destination);
        }
    }
    if found.is_empty() {
        return Err(Refusal::new(
            503,
            "no_endpoints",
            Component::Picker,
            labels::Refusal::Overloaded,
            "the names of the endpoints cannot be resolved",
        )
        .with_retry_after(WAIT_FOR_NAMES));
    }
    let texts: Vec<_> = found.iter().map(SocketAddr::to_string).collect();
    Ok((texts.join(","), prefix.unwrap_or_default().to_owned()))
}

/// The model to go to and the one that was asked for, where they differ.
fn rewrite<'a>(picker: &Picker, head: &'a Head, said: &Body) -> Option<(&'a str, String)> {
    let target = head.rewrite.as_deref().filter(|_| picker.settings.trust_rewrite)?;
    let asked = &said.model.as_ref()?.name;
    (openai::is_model_name(target) && target != asked).then(|| (target, asked.clone()))
}

/// Says in fields which model the request is for, for the proxy's routes.
fn name_in_fields(said: &Body, base: Option<&str>, answer: &mut Answer) {
    let Some(model) = &said.model else { return };
    answer.mutation.set(names::MODEL, model.name.clone());
    if let Some(base) = base {
        answer.mutation.set(names::BASE_MODEL, base.to_owned());
    }
    answer.clears_route = true;
}

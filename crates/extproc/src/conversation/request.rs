//! The request's way through a conversation: collected, then answered at once.

mod place;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gateway::{Caller, Component, Exchange, Grant, HeldBody, Refusal, RequestId, RequestMeta};
use openai::{BodyKind, Dialect, Route, RouteError};
use telemetry::metrics::labels;
use telemetry::trace::Step;
use types::{PoolName, Timestamp};

use super::{Conversation, Modes, Next, Violation};
use crate::credentials::Credentials;
use crate::head::{Head, UNKNOWN_CLIENT};
use crate::refusal::error_response;
use crate::settings::{Paths, Picker};
use crate::wire::{
    BodyMode, HeaderMap, HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse, Response,
};
use place::{Collected, Waiting};

/// How much of the request is here.
pub(super) enum Inbound {
    Fresh,
    Collecting(Box<Collecting>),
    /// Until its turn comes.
    Waiting(Box<Waiting>, Pin<Box<dyn Future<Output = Result<Grant, Refusal>> + Send>>),
    Done,
}

/// A request whose body is arriving.
pub(super) struct Collecting {
    pub(super) head: Head,
    pub(super) caller: Arc<Caller>,
    pub(super) route: Option<Route>,
    pub(super) deadline: Timestamp,
    chunks: Vec<Bytes>,
    bytes: u64,
    bytes_max: u64,
    /// Holds the bytes against the limit over all requests.
    held: Vec<HeldBody>,
}

/// What ended the request, which decides what is owed to the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its head; there is no body.
    Head,
    /// The last piece of its body.
    Body,
    Trailers,
}

type Out = VecDeque<ProcessingResponse>;

impl Conversation {
    pub(super) fn request_headers(
        &mut self,
        headers: &HttpHeaders,
        around: &ProcessingRequest,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        if !matches!(self.inbound, Inbound::Fresh) {
            return Err(Violation::OutOfOrder { got: "request headers", when: "twice" });
        }
        self.modes = modes(around)?;
        let none = HeaderMap::default();
        let fields = headers.headers.as_ref().unwrap_or(&none);
        let role = self.picker.settings.role;
        let trusted =
            self.picker.gateway.spec().auth.as_ref().map(|auth| auth.forwarded_certificate);
        let read = Head::read(fields, around, role).and_then(|head| {
            Ok((head, Credentials::read(fields, around, trusted.unwrap_or_default())?))
        });
        let (head, credentials) = match read {
            Ok(read) => read,
            Err(refusal) => {
                self.inbound = Inbound::Done;
                self.picker.gateway.count_refused(&refusal, None, "", UNKNOWN_CLIENT);
                out.push_back(
                    Response::Immediate(error_response(&refusal, Dialect::OpenAi, None)).into(),
                );
                return Ok(Next::Close);
            }
        };
        match self.admit(head, &credentials, now) {
            Ok(collecting) => self.collect(collecting, headers.end_of_stream, now, out),
            Err(turned) => {
                let Turned { refusal, dialect, id } = *turned;
                self.inbound = Inbound::Done;
                Ok(self.refuse(&refusal, dialect, id.as_ref(), now, out))
            }
        }
    }

    /// Begins to collect what was let in; what is complete by its head goes on at once.
    fn collect(
        &mut self,
        collecting: Collecting,
        is_complete: bool,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        self.inbound = Inbound::Collecting(Box::new(collecting));
        // Without the body we decide by what else there is.
        if is_complete || self.modes.request == BodyMode::None {
            return Ok(self.complete(End::Head, now, out));
        }
        if self.modes.request == BodyMode::Buffered {
            // The body only comes when its head was answered; what we have to say goes with it.
            out.push_back(Response::RequestHeaders(Default::default()).into());
        }
        Ok(Next::Read)
    }

    pub(super) fn request_body(
        &mut self,
        body: HttpBody,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        let collecting = match &mut self.inbound {
            Inbound::Fresh => return Err(headless("a request body")),
            // Envoy repeats the last piece of bodies beyond 1 MB (envoy#46237); it has been answered.
            Inbound::Waiting(..) | Inbound::Done => return Ok(Next::Read),
            Inbound::Collecting(collecting) => collecting,
        };
        collecting.bytes += body.body.len() as u64;
        if collecting.bytes > collecting.bytes_max {
            let refusal = too_large(collecting.bytes_max);
            return Ok(self.give_up(&refusal, now, out));
        }
        if !body.body.is_empty() {
            let picker = &self.picker;
            let bytes = body.body.len() as u64;
            let Some(held) = picker.gateway.hold_body(bytes, picker.settings.memory_bytes) else {
                return Ok(self.give_up(&too_many_bytes(), now, out));
            };
            collecting.held.push(held);
            collecting.chunks.push(body.body);
        }
        if body.end_of_stream {
            return Ok(self.complete(End::Body, now, out));
        }
        Ok(Next::Read)
    }

    pub(super) fn request_trailers(
        &mut self,
        now: Timestamp,
        out: &mut Out,
    ) -> Result<Next, Violation> {
        match self.inbound {
            Inbound::Fresh => Err(headless("request trailers")),
            Inbound::Collecting(_) => Ok(self.complete(End::Trailers, now, out)),
            Inbound::Waiting(..) | Inbound::Done => {
                out.push_back(Response::RequestTrailers(Default::default()).into());
                Ok(Next::Read)
            }
        }
    }

    /// The request did not arrive in time.
    pub fn expired(&mut self, now: Timestamp, out: &mut Out) -> Next {
        let refusal = Refusal::new(
            408,
            "request_timeout",
            Component::Edge,
            labels::Refusal::Timeout,
            "the request body did not arrive in time",
        );
        self.give_up(&refusal, now, out)
    }

    /// Judges a request by its head.
    fn admit(
        &mut self,
        mut head: Head,
        credentials: &Credentials,
        now: Timestamp,
    ) -> Result<Collecting, Box<Turned>> {
        let picker = self.picker.clone();
        let spec = picker.gateway.spec();
        let id = match &head.request_id {
            Some(id) => id.clone(),
            None => RequestId::random(&mut rand::rng()),
        };
        let (route, pool) = match find_route(&picker, &head) {
            Ok(found) => found,
            Err(refusal) => {
                let method = head.method.as_str();
                picker.gateway.count_refused(&refusal, Some(&id), method, head.client);
                let dialect = Dialect::OpenAi;
                return Err(Box::new(Turned { refusal, dialect, id: Some(id) }));
            }
        };
        let lists_models = matches!(route, Some(Route::Models | Route::Model));
        let caller = match picker.gateway.authenticate(&credentials.presented(lists_models), now) {
            Ok(caller) => caller,
            Err(refusal) => {
                let method = head.method.as_str();
                picker.gateway.count_refused(&refusal, Some(&id), method, head.client);
                let dialect = route.map_or(Dialect::OpenAi, Route::dialect);
                return Err(Box::new(Turned { refusal, dialect, id: Some(id) }));
            }
        };
        head.keys = credentials.keys();
        // A router leaves them to the picker behind it.
        let keeps = spec.auth.is_some() && !picker.gateway.hands_credentials_on();
        if keeps && picker.settings.role.picks() {
            head.removals.extend(credentials.fields.iter().map(|name| (*name).to_owned()));
        }
        let bytes_max = match route.map(Route::body) {
            Some(BodyKind::Multipart) => spec.limits.multipart_body_bytes_max,
            _ => spec.limits.request_body_bytes_max,
        };
        if picker.settings.role.picks() {
            let meta = RequestMeta {
                id: id.clone(),
                method: head.method.clone(),
                route: route.unwrap_or(Route::Opened),
                client: head.client,
                received: now,
                session: head.session,
                pool,
                caller: caller.clone(),
                wishes: head.wishes.clone(),
            };
            let mut exchange = Exchange::new(picker.gateway.clone(), meta);
            let timing = spec.observability.server_timing;
            exchange.trace(head.trace.parent, head.trace.wants_timing(timing));
            exchange.step_since(Step::Auth, now);
            self.exchange = Some(exchange);
        }
        let is_read = matches!(route.map(Route::body), Some(BodyKind::Json | BodyKind::Multipart));
        let turned = if is_read && head.is_compressed {
            Some(compressed())
        } else if head.content_length.is_some_and(|bytes| bytes > bytes_max) {
            Some(too_large(bytes_max))
        } else {
            None
        };
        let turned = turned.or_else(|| self.exchange.as_mut()?.arrive(now).err());
        if let Some(refusal) = turned {
            let dialect = route.map_or(Dialect::OpenAi, Route::dialect);
            return Err(Box::new(Turned { refusal, dialect, id: Some(id) }));
        }
        let deadline = now + spec.timeouts.request_body;
        Ok(Collecting {
            head,
            caller,
            route,
            deadline,
            chunks: Vec::new(),
            bytes: 0,
            bytes_max,
            held: Vec::new(),
        })
    }

    fn complete(&mut self, end: End, now: Timestamp, out: &mut Out) -> Next {
        let Inbound::Collecting(collecting) = std::mem::replace(&mut self.inbound, Inbound::Done)
        else {
            return Next::Read;
        };
        let Collecting { head, caller, route, chunks, held, .. } = *collecting;
        let collected = Collected { head, caller, route, body: joined(chunks), held };
        self.answer_request(collected, end, now, out)
    }

    /// Turns away a request that is still arriving.
    fn give_up(&mut self, refusal: &Refusal, now: Timestamp, out: &mut Out) -> Next {
        let Inbound::Collecting(collecting) = std::mem::replace(&mut self.inbound, Inbound::Done)
        else {
            return Next::Close;
        };
        let dialect = collecting.route.map_or(Dialect::OpenAi, Route::dialect);
        self.refuse_head(refusal, dialect, &collecting.head, now, out)
    }

    /// Turns away a request whose head was let in; a router has no exchange that would count it.
    pub(super) fn refuse_head(
        &mut self,
        refusal: &Refusal,
        dialect: Dialect,
        head: &Head,
        now: Timestamp,
        out: &mut Out,
    ) -> Next {
        let id = head.request_id.as_ref();
        if self.exchange.is_none() {
            let method = head.method.as_str();
            self.picker.gateway.count_refused(refusal, id, method, head.client);
        }
        self.refuse(refusal, dialect, id, now, out)
    }

    /// Has the proxy answer with an error of ours.
    pub(super) fn refuse(
        &mut self,
        refusal: &Refusal,
        dialect: Dialect,
        id: Option<&RequestId>,
        now: Timestamp,
        out: &mut Out,
    ) -> Next {
        let id = self.exchange.as_ref().map(|exchange| exchange.id().clone()).or(id.cloned());
        let mut response = error_response(refusal, dialect, id.as_ref());
        if let Some(mut exchange) = self.exchange.take() {
            let timing = exchange.server_timing(now);
            exchange.refused(refusal, now);
            let fields = response.headers.get_or_insert_default();
            if let Some(timing) = timing {
                fields.set("server-timing", timing);
            }
            for (name, value) in exchange.told_fields(now) {
                fields.set(name, value);
            }
        }
        out.push_back(Response::Immediate(response).into());
        Next::Close
    }
}

/// A request that goes no further.
struct Turned {
    refusal: Refusal,
    dialect: Dialect,
    id: Option<RequestId>,
}

fn modes(around: &ProcessingRequest) -> Result<Modes, Violation> {
    let Some(said) = &around.protocol_config else { return Ok(Modes::default()) };
    // A mode that we do not know yet is none that we can serve.
    let mode = |mode| BodyMode::try_from(mode).unwrap_or(BodyMode::Grpc);
    let modes =
        Modes { request: mode(said.request_body_mode), response: mode(said.response_body_mode) };
    match modes.request {
        BodyMode::None | BodyMode::Buffered | BodyMode::FullDuplexStreamed => {}
        BodyMode::Streamed | BodyMode::BufferedPartial | BodyMode::Grpc => {
            return Err(Violation::Unsupported(
                "request_body_mode must be FULL_DUPLEX_STREAMED (or BUFFERED, or NONE)",
            ));
        }
    }
    if modes.response == BodyMode::Grpc {
        return Err(Violation::Unsupported(
            "response_body_mode must be FULL_DUPLEX_STREAMED or NONE",
        ));
    }
    Ok(modes)
}

/// What is behind a path, and the pool that the document leads it to. `None`: nothing that we read.
fn find_route(picker: &Picker, head: &Head) -> Result<(Option<Route>, Option<PoolName>), Refusal> {
    let path = head.raw_path();
    let error = match openai::find(&head.method, path) {
        Ok(route) => return Ok((Some(route), None)),
        Err(error) => error,
    };
    let spec = picker.gateway.spec();
    let method = head.method.as_str();
    let opened = spec.allowed_paths.iter().find(|allowed| allowed.path == path);
    if let Some(opened) = opened
        && opened.methods.iter().any(|allowed| allowed == method)
    {
        return Ok((None, Some(opened.scheduler.clone())));
    }
    // A router names what it knows and leaves the rest to others.
    if picker.settings.paths == Paths::Any || !picker.settings.role.picks() {
        return Ok((None, None));
    }
    Err(match error {
        RouteError::NotFound => Refusal::new(
            404,
            "path_not_found",
            Component::Edge,
            labels::Refusal::RouteNotFound,
            "this path is not served; allowedPaths in the document can open more",
        ),
        RouteError::MethodNotAllowed { allow } => {
            let mut refusal = Refusal::new(
                405,
                "method_not_allowed",
                Component::Edge,
                labels::Refusal::Method,
                format!("this path is served for {allow} only"),
            );
            refusal.demand = Some(gateway::Demand::Method(allow));
            refusal
        }
    })
}

fn joined(mut chunks: Vec<Bytes>) -> Bytes {
    if chunks.len() <= 1 {
        return chunks.pop().unwrap_or_default();
    }
    let mut body = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    for chunk in &chunks {
        body.extend_from_slice(chunk);
    }
    body.freeze()
}

fn headless(got: &'static str) -> Violation {
    Violation::OutOfOrder { got, when: "before the request headers" }
}

fn compressed() -> Refusal {
    Refusal::new(
        415,
        "unsupported_media_type",
        Component::Edge,
        labels::Refusal::MediaType,
        "compressed request bodies are not accepted: send the body as it is",
    )
}

fn too_large(bytes_max: u64) -> Refusal {
    Refusal::new(
        413,
        "request_too_large",
        Component::Edge,
        labels::Refusal::TooLarge,
        format!("the request body is longer than the {bytes_max} bytes that are accepted"),
    )
}

fn too_many_bytes() -> Refusal {
    const WAIT: Duration = Duration::from_secs(1);
    Refusal::new(
        503,
        "body_memory",
        Component::Limit,
        labels::Refusal::Overloaded,
        "the picker holds as many request bytes as it may",
    )
    .with_retry_after(WAIT)
}

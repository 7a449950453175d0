//! Traffic: from a client's request to an endpoint's answer.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{
    Attempt, Component, Exchange, Failure, Gateway, Refusal, RequestId, RequestMeta, Verdict,
};
use openai::{BodyKind, Dialect, ErrorObject, Route, RouteError};
use rand::SeedableRng;
use telemetry::clock;
use telemetry::metrics::labels;
use tokio::time::Instant;
use types::PoolName;

use crate::answer::{Answer, AnswerBody};
use crate::fields::Class;
use crate::handler::{BodyPlan, Handler};
use crate::head::{RequestHead, Turned};
use crate::relay::{Relay, Source, StreamTimes};
use crate::rewrite::{answer_lines, request_head, request_http2};
use crate::settings::Settings;
use crate::timer::{Timer, deadline_in};
use crate::upstream::{self, H2cFailed, H2cPool, HeadFault, Pool, Progress, ResponseHead};

/// Bytes that are held back at most while an answer is not yet committed.
const HELD_BYTES_MAX: usize = 16 * 1024;

/// What one thread needs to forward requests.
pub(crate) struct Traffic {
    gateway: Arc<Gateway>,
    connections: Pool,
    h2c: H2cPool,
    /// Memory that this process may use, if that is known.
    memory_bytes: Option<u64>,
    /// Sent to endpoints as `Authorization`.
    endpoint_authorization: Option<Rc<str>>,
    rng: Cell<Option<rand_pcg::Pcg64Mcg>>,
}

/// A request that was let in.
pub(crate) struct Ticket {
    exchange: Exchange,
    route: Route,
}

/// An endpoint's answer, before its first payload.
struct Begun {
    head: ResponseHead,
    source: Source,
    held: Vec<u8>,
}

impl Traffic {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        memory_bytes: Option<u64>,
        endpoint_authorization: Option<Rc<str>>,
    ) -> Self {
        let rng = Cell::new(Some(rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng())));
        let connections = Pool::default();
        Self {
            gateway,
            connections,
            h2c: H2cPool::default(),
            memory_bytes,
            endpoint_authorization,
            rng,
        }
    }

    /// Limits and times of the document in force.
    pub(crate) fn settings(&self) -> Settings {
        Settings::of(&self.gateway.spec())
    }

    /// Closes connections to endpoints that were idle for too long.
    pub(crate) fn sweep(&self) {
        let times = &self.gateway.spec().timeouts;
        self.connections.sweep(times.endpoint_idle);
        self.h2c.sweep(times.endpoint_http2_idle);
    }

    fn request_id(&self, head: &RequestHead) -> RequestId {
        let theirs = head.fields.get_str(Class::RequestId).and_then(RequestId::from_client);
        theirs.unwrap_or_else(|| {
            let mut rng =
                self.rng.take().unwrap_or_else(|| rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng()));
            let id = RequestId::random(&mut rng);
            self.rng.set(Some(rng));
            id
        })
    }

    /// Tries endpoints until one answers.
    async fn forward(
        &self,
        exchange: &mut Exchange,
        head: &RequestHead,
        body: &Bytes,
        timer: &mut Timer,
    ) -> Result<Begun, Refusal> {
        let spec = self.gateway.spec().clone();
        let times = &spec.timeouts;
        let first_byte = if exchange.is_stream() {
            times.first_byte
        } else {
            times.first_byte.min(times.response)
        };
        let head_by =
            deadline_in(exchange.route_timeout().map_or(first_byte, |limit| limit.min(first_byte)));
        loop {
            let Some(attempt) = exchange.attempt(clock::now()) else {
                return Err(Refusal::new(
                    503,
                    "no_endpoints",
                    Component::Picker,
                    labels::Refusal::Overloaded,
                    "no endpoint is left to try",
                ));
            };
            let verdict = match self.attempt(&attempt, exchange, head, body, head_by, timer).await {
                Err(failure) => exchange.failed(failure, clock::now()),
                Ok(begun) => {
                    let has_retry_after = begun.head.fields.get(Class::RetryAfter).is_some();
                    match exchange.answered(begun.head.status, has_retry_after, clock::now()) {
                        Verdict::Forward => {
                            match self.first_payload(exchange, begun, head_by, timer).await {
                                Ok(begun) => return Ok(begun),
                                Err(failure) => exchange.failed(failure, clock::now()),
                            }
                        }
                        verdict => verdict,
                    }
                }
            };
            match verdict {
                Verdict::Refuse(refusal) => return Err(refusal),
                Verdict::Retry | Verdict::Forward => {}
            }
        }
    }

    /// One request to one endpoint.
    async fn attempt(
        &self,
        attempt: &Attempt,
        exchange: &Exchange,
        head: &RequestHead,
        body: &Bytes,
        head_by: Instant,
        timer: &mut Timer,
    ) -> Result<Begun, Failure> {
        let connect = self.gateway.spec().timeouts.connect;
        let authorization = self.endpoint_authorization.as_deref();
        if attempt.h2c {
            let request = request_http2(head, body, attempt, exchange.id(), authorization)
                .map_err(|_| Failure::Malformed)?;
            let answer = self
                .h2c
                .exchange(attempt.endpoint, &attempt.address, request, connect, head_by, timer)
                .await;
            return match answer {
                Ok((head, body)) => Ok(Begun { head, source: Source::H2c(body), held: Vec::new() }),
                Err(H2cFailed::Connect(error)) => {
                    self.count_connect(Some(&error));
                    Err(Failure::Connect)
                }
                Err(H2cFailed::Head(fault)) => Err(failure_of(&fault)),
            };
        }
        let lines = request_head(head, body.len(), attempt, exchange.id(), authorization);
        let idle_max = self.gateway.spec().timeouts.endpoint_idle;
        let mut reused = self.connections.take(attempt.endpoint, idle_max);
        loop {
            let connection = match reused.take() {
                Some(connection) => connection,
                None => match self.connections.open(&attempt.address, connect, timer).await {
                    Ok(connection) => {
                        self.count_connect(None);
                        connection
                    }
                    Err(error) => {
                        self.count_connect(Some(&error));
                        return Err(Failure::Connect);
                    }
                },
            };
            let mut held = Vec::new();
            let answer = upstream::exchange(
                connection,
                attempt.endpoint,
                &self.connections,
                [&lines, body],
                head_by,
                timer,
                &mut held,
            )
            .await;
            match answer {
                Ok((head, body)) => return Ok(Begun { head, source: Source::Http1(body), held }),
                // The endpoint closed its idle connection just as we wrote: once more, on a new one.
                Err(unanswered) if unanswered.stale_connection => {}
                Err(unanswered) => return Err(failure_of(&unanswered.fault)),
            }
        }
    }

    fn count_connect(&self, error: Option<&upstream::ConnectError>) {
        let outcome = match error {
            None => labels::Connect::Ok,
            Some(upstream::ConnectError::Timeout) => labels::Connect::Timeout,
            Some(upstream::ConnectError::Name(_)) => labels::Connect::Resolve,
            Some(upstream::ConnectError::Refused(error)) => match error.kind() {
                std::io::ErrorKind::ConnectionRefused => labels::Connect::Refused,
                std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable => {
                    labels::Connect::Unreachable
                }
                _ => labels::Connect::Other,
            },
        };
        self.gateway.metrics.gateway().upstream_connects.of(outcome).inc();
    }

    /// Waits for the first payload of an answer, or its end. Until then nothing is committed, so
    /// another endpoint can still step in.
    async fn first_payload(
        &self,
        exchange: &mut Exchange,
        mut begun: Begun,
        head_by: Instant,
        timer: &mut Timer,
    ) -> Result<Begun, Failure> {
        let content_type = begun.head.fields.get_str(Class::ContentType);
        let encoded = begun.head.fields.get(Class::ContentEncoding).is_some();
        exchange.watch(content_type.filter(|_| !encoded));
        let is_event_stream = exchange.is_event_stream();
        let Begun { source, held, .. } = &mut begun;
        let result = std::future::poll_fn(|cx| {
            while !source.ended()
                && (held.is_empty() || (is_event_stream && is_half_an_event(held)))
            {
                let mut keep = |bytes: &[u8], runs: &[std::ops::Range<usize>]| {
                    for run in runs {
                        held.extend_from_slice(&bytes[run.clone()]);
                    }
                };
                match source.poll(cx, &mut keep) {
                    std::task::Poll::Pending => {
                        return timer.poll(cx, head_by).map(|()| Err(Failure::Timeout));
                    }
                    std::task::Poll::Ready(Ok(Progress::Payload)) => {}
                    std::task::Poll::Ready(Ok(Progress::End)) => break,
                    std::task::Poll::Ready(Err(_)) => {
                        return std::task::Poll::Ready(Err(Failure::CutBeforePayload));
                    }
                }
            }
            std::task::Poll::Ready(Ok(()))
        })
        .await;
        result?;
        if begun.held.is_empty() {
            if exchange.is_event_stream() && begun.head.status == 200 {
                return Err(Failure::EmptyStream);
            }
        } else {
            exchange.payload(&begun.held, clock::now());
        }
        Ok(begun)
    }

    /// The answer to the client of an answer that has begun.
    fn relay(&self, mut exchange: Exchange, begun: Begun) -> Answer {
        let Begun { head, source, held } = begun;
        let retry_after =
            exchange.retry_after_if_missing(head.fields.get(Class::RetryAfter).is_some());
        let exposed =
            self.gateway.spec().expose_decision.then(|| exchange.endpoint_label()).flatten();
        let lines = answer_lines(
            &head,
            exchange.id(),
            exchange.is_event_stream(),
            retry_after,
            exposed.as_deref(),
        );
        if let Some((status, body)) = exchange.opening_error(&held) {
            // A stream that begins with an error is an error with a status, while we still can.
            let mut answer = Answer::new(status, "application/json", body);
            answer.field("x-request-id", exchange.id().as_str());
            answer.field("x-wicketgate-component", Component::Endpoint.as_str());
            exchange.failed_in_band(status, clock::now());
            return answer;
        }
        let times = self.stream_times(&exchange);
        if source.ended() && !exchange.stream_is_unfinished() {
            // All of it is here already: one write, and nothing to keep.
            exchange.finish(gateway::Ending::Complete, clock::now());
            return Answer {
                status: head.status,
                lines,
                body: AnswerBody::Full(held.into()),
                close: false,
            };
        }
        let relay = Relay::new(source, exchange, held.into(), times);
        Answer {
            status: head.status,
            lines,
            body: AnswerBody::Relay(Box::new(relay)),
            close: false,
        }
    }

    fn stream_times(&self, exchange: &Exchange) -> StreamTimes {
        let spec = self.gateway.spec();
        let times = &spec.timeouts;
        let duration =
            if exchange.is_event_stream() { times.stream_duration } else { times.response };
        let left = |limit: Duration| limit.saturating_sub(exchange.age(clock::now()));
        StreamTimes {
            idle: times.stream_idle,
            duration: exchange.route_timeout().map_or(duration, |limit| left(limit).min(duration)),
        }
    }

    /// What is behind a path: one of the known ones, else one that the document opens.
    fn route(&self, head: &RequestHead, path: &str) -> Result<(Route, Option<PoolName>), Refusal> {
        let error = match openai::find(&head.method, path) {
            Ok(route) => return Ok((route, None)),
            Err(error) => error,
        };
        let spec = self.gateway.spec();
        match spec.allowed_paths.iter().find(|allowed| allowed.path == path) {
            None => Err(route_refusal(error)),
            Some(opened) if opened.methods.iter().any(|method| method == head.method.as_str()) => {
                Ok((Route::Opened, Some(opened.scheduler.clone())))
            }
            Some(opened) => Err(Refusal::new(
                405,
                "method_not_allowed",
                Component::Edge,
                labels::Refusal::Method,
                format!("this path is served for {} only", opened.methods.join(", ")),
            )),
        }
    }

    fn models(&self, route: Route, head: &RequestHead) -> Result<Bytes, Refusal> {
        let catalog = self.gateway.catalog();
        if route == Route::Models {
            return Ok(openai::list(&catalog.cards.values().cloned().collect::<Vec<_>>()));
        }
        let (path, _) = head.path_and_query();
        let id = openai::model_id(path).unwrap_or_default();
        catalog
            .cards
            .get(id.as_str())
            .map(openai::card)
            .ok_or_else(|| gateway::model_not_found(&catalog, &id))
    }
}

/// Whether the first event of a stream is not complete yet. Until it is, nobody can tell whether it
/// is an error, which still can have a status. Comments (heartbeats) count as events here: they
/// are sent so that somebody sees them.
fn is_half_an_event(held: &[u8]) -> bool {
    let has = |blank_line: &[u8]| memchr::memmem::find(held, blank_line).is_some();
    held.len() < HELD_BYTES_MAX && !has(b"\n\n") && !has(b"\r\n\r\n") && !has(b"\r\r")
}

fn failure_of(fault: &HeadFault) -> Failure {
    match fault {
        HeadFault::Closed | HeadFault::Io(_) => Failure::Closed,
        HeadFault::Malformed => Failure::Malformed,
        HeadFault::Timeout => Failure::Timeout,
    }
}

impl Handler for Traffic {
    type Ticket = Ticket;

    fn plan(&self, head: &RequestHead, client: SocketAddr) -> Result<(BodyPlan, Ticket), Answer> {
        let received = clock::now();
        let id = self.request_id(head);
        let (path, _) = head.path_and_query();
        let (route, pool) = self.route(head, path).map_err(|refusal| {
            self.gateway.count_refused(&refusal, Some(&id), head.method.as_str(), client);
            error_answer(&refusal, Dialect::OpenAi, Some(&id))
        })?;
        let session = head.fields.get(Class::SessionId).map(hash_session);
        let meta = RequestMeta {
            id: id.clone(),
            method: head.method.clone(),
            route,
            client,
            received,
            session,
            pool,
        };
        let mut exchange = Exchange::new(self.gateway.clone(), meta);
        if let Err(refusal) = check_media_type(route, head) {
            exchange.refused(&refusal, received);
            return Err(error_answer(&refusal, route.dialect(), Some(&id)));
        }
        let limits = &self.gateway.spec().limits;
        let bytes_max = match route.body() {
            BodyKind::None => 0,
            BodyKind::Json | BodyKind::Opaque => limits.request_body_bytes_max,
            BodyKind::Multipart => limits.multipart_body_bytes_max,
        };
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Ok((BodyPlan { bytes_max }, Ticket { exchange, route }))
    }

    async fn answer(
        &self,
        ticket: Ticket,
        head: RequestHead,
        body: Bytes,
        timer: &mut Timer,
    ) -> Answer {
        let Ticket { mut exchange, route } = ticket;
        let result = async {
            if route.body() == BodyKind::None {
                return self.models(route, &head).map(Err);
            }
            let Some(_held) = self.gateway.hold_body(body.len() as u64, self.memory_bytes) else {
                return Err(too_many_bytes());
            };
            exchange.place(&body, head.fields.get_str(Class::ContentType), clock::now())?;
            self.forward(&mut exchange, &head, &body, timer).await.map(Ok)
        }
        .await;
        drop(body);
        match result {
            Ok(Ok(begun)) => self.relay(exchange, begun),
            Ok(Err(json)) => {
                let mut answer = Answer::new(200, "application/json", json);
                answer.field("x-request-id", exchange.id().as_str());
                exchange.answered_ourselves(200, clock::now());
                answer
            }
            Err(refusal) => {
                exchange.refused(&refusal, clock::now());
                error_answer(&refusal, route.dialect(), Some(exchange.id()))
            }
        }
    }

    fn turned(&self, turned: &Turned, ticket: Option<Ticket>, client: SocketAddr) -> Answer {
        let reason = match turned.status {
            408 => labels::Refusal::Timeout,
            413 => labels::Refusal::TooLarge,
            405 => labels::Refusal::Method,
            _ => labels::Refusal::Malformed,
        };
        let refusal =
            Refusal::new(turned.status, turned.code, Component::Edge, reason, turned.message);
        let Some(Ticket { mut exchange, route }) = ticket else {
            self.gateway.count_refused(&refusal, None, "", client);
            return error_answer(&refusal, Dialect::OpenAi, None);
        };
        exchange.refused(&refusal, clock::now());
        error_answer(&refusal, route.dialect(), Some(exchange.id()))
    }
}

/// An error of ours in the dialect of its route.
pub(crate) fn error_answer(refusal: &Refusal, dialect: Dialect, id: Option<&RequestId>) -> Answer {
    let object = ErrorObject {
        status: refusal.status,
        message: &refusal.message,
        kind: refusal.kind,
        code: refusal.code,
        param: refusal.param,
    };
    let mut answer = Answer::new(refusal.status, "application/json", object.to_json(dialect));
    answer.field("x-wicketgate-component", refusal.component.as_str());
    if let Some(id) = id {
        answer.field("x-request-id", id.as_str());
    }
    if let Some(seconds) = refusal.retry_after_seconds() {
        answer.field("retry-after", &seconds.to_string());
    }
    if let Some(allow) = refusal.allow {
        answer.field("allow", allow);
    }
    answer
}

fn route_refusal(error: RouteError) -> Refusal {
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
            refusal.allow = Some(allow);
            refusal
        }
    }
}

fn check_media_type(route: Route, head: &RequestHead) -> Result<(), Refusal> {
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

fn too_many_bytes() -> Refusal {
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

fn hash_session(session: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(session);
    hasher.finish()
}

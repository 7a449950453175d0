//! Traffic: from a client's request to an endpoint's answer.

mod attempt;
mod refusals;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{Component, Exchange, Gateway, Refusal, RequestId, RequestMeta};
use openai::{BodyKind, Dialect, Route};
use rand::SeedableRng;
use telemetry::clock;
use telemetry::metrics::labels;
use types::PoolName;

use crate::answer::{Answer, AnswerBody};
use crate::fields::Class;
use crate::handler::{BodyPlan, Handler};
use crate::head::{RequestHead, Turned};
use crate::relay::{Relay, StreamTimes};
use crate::rewrite::answer_lines;
use crate::settings::Settings;
use crate::timer::Timer;
use crate::upstream::{H2cPool, Pool};
use attempt::Begun;
pub(crate) use refusals::error_answer;
use refusals::{check_media_type, route_refusal, too_many_bytes};

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

fn hash_session(session: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(session);
    hasher.finish()
}

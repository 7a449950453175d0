//! Traffic: from a client's request to an endpoint's answer.

mod attempt;
mod certified;
mod copies;
mod refusals;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config::spec::Routes;
use gateway::{
    Caller, Certificate, Component, Exchange, Gateway, Placed, Presented, Refusal, RequestId,
    RequestMeta, RoutedHead, Wishes,
};
use openai::{BodyKind, Dialect, Rename, Route};
use rand::{RngExt, SeedableRng};
use telemetry::clock;
use telemetry::metrics::labels;
use telemetry::trace::Step;
use tokio::sync::mpsc;
use types::PoolName;

use crate::answer::{Answer, AnswerBody};
use crate::fields::Class;
use crate::handler::{BodyPlan, Handler};
use crate::head::{RequestHead, Turned};
use crate::relay::{Relay, StreamTimes};
use crate::rewrite::answer_lines;
use crate::settings::Settings;
use crate::timer::Timer;
use crate::tracing::{parent_of, wants_timing};
use crate::upstream::{H2cPool, Means, Pool, ResponseHead};
use attempt::Begun;
pub(crate) use certified::Certified;
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
    copies: mpsc::Sender<copies::Job>,
    /// Taken by whoever sends them.
    copies_to_send: Cell<Option<mpsc::Receiver<copies::Job>>>,
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
        means: Means,
    ) -> Self {
        let rng = Cell::new(Some(rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng())));
        let connections = Pool::new(means);
        let (copies, copies_to_send) = copies::channel();
        Self {
            gateway,
            connections,
            h2c: H2cPool::default(),
            memory_bytes,
            endpoint_authorization,
            rng,
            copies,
            copies_to_send: Cell::new(Some(copies_to_send)),
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

    fn chance(&self) -> u64 {
        let mut rng =
            self.rng.take().unwrap_or_else(|| rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng()));
        let chance = rng.random();
        self.rng.set(Some(rng));
        chance
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
            exchange.retry_after_instead(head.fields.get(Class::RetryAfter).is_some());
        let exposed = if self.gateway.spec().expose_decision {
            exchange.decision_fields()
        } else {
            Vec::new()
        };
        let now = clock::now();
        let mut told = exchange.told_fields(now);
        told.extend(exchange.server_timing(now).map(|timing| ("server-timing", timing)));
        let lines = answer_lines(
            &head,
            exchange.id(),
            exchange.is_event_stream(),
            retry_after,
            exchange.member_name(),
            &exposed,
            &told,
        );
        if let Some((status, body)) = exchange.opening_error(&held) {
            // A stream that begins with an error is an error with a status, while we still can.
            let mut answer = Answer::new(status, "application/json", body).with_fields(&told);
            answer.field("x-request-id", exchange.id().as_str());
            answer.field("x-wicketgate-component", Component::Endpoint.as_str());
            if let Some(member) = exchange.member_name() {
                answer.field(gateway::MEMBER, member);
            }
            exchange.failed_in_band(status, clock::now());
            return answer;
        }
        let rename = rename(&exchange, &head);
        let times = self.stream_times(&exchange);
        if source.ended() && !exchange.stream_is_unfinished() {
            // All of it is here already: one write, and nothing to keep.
            exchange.finish(gateway::Ending::Complete, clock::now());
            return Answer {
                status: head.status,
                lines,
                body: AnswerBody::Full(renamed(held.into(), rename)),
                close: false,
            };
        }
        let relay = Relay::new(source, exchange, held.into(), times, rename);
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
        if let Some(routes) = &self.gateway.spec().routes {
            let pool = self.routed(routes, head)?;
            // What would be answered here is the pool's to answer, as any other path.
            let known = openai::find(&head.method, path).ok();
            let known = known.filter(|route| route.body() != BodyKind::None);
            return Ok((known.unwrap_or(Route::Opened), Some(pool)));
        }
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

    /// The pool that the cluster's routes lead a request to.
    fn routed(&self, routes: &Routes, head: &RequestHead) -> Result<PoolName, Refusal> {
        let (path, query) = head.path_and_query();
        let value = |name: &str| std::str::from_utf8(head.fields.find(name)?).ok();
        let routed = RoutedHead {
            host: head.host(),
            path,
            query,
            method: head.method.as_str(),
            header: &value,
        };
        gateway::find_pool(routes, routed, self.chance())
    }

    fn models(&self, route: Route, head: &RequestHead, of: &Caller) -> Result<Bytes, Refusal> {
        let catalog = self.gateway.catalog();
        if route == Route::Models {
            return Ok(openai::list(&gateway::cards(&catalog, of)));
        }
        let (path, _) = head.path_and_query();
        let id = openai::model_id(path).unwrap_or_default();
        gateway::card(&catalog, of, &id).map(openai::card)
    }

    /// Judges a request by its head; `certificate` is what the client proved to be its own.
    fn plan_for(
        &self,
        head: &RequestHead,
        client: SocketAddr,
        certificate: Option<&Certificate>,
    ) -> Result<(BodyPlan, Ticket), Answer> {
        let received = clock::now();
        let id = self.request_id(head);
        let (path, _) = head.path_and_query();
        let turned_away = |refusal: Refusal, dialect| {
            self.gateway.count_refused(&refusal, Some(&id), head.method.as_str(), client);
            error_answer(&refusal, dialect, Some(&id))
        };
        let (route, pool) =
            self.route(head, path).map_err(|refusal| turned_away(refusal, Dialect::OpenAi))?;
        let shown = Presented {
            authorization: head.fields.get(Class::Authorization),
            x_api_key: head.fields.get(Class::XApiKey),
            api_key: head.fields.get(Class::ApiKey),
            certificate,
            lists_models: matches!(route, Route::Models | Route::Model),
        };
        let caller = self
            .gateway
            .authenticate(&shown, received)
            .map_err(|refusal| turned_away(refusal, route.dialect()))?;
        let session = head.fields.get(Class::SessionId).map(hash_session);
        let meta = RequestMeta {
            id: id.clone(),
            method: head.method.clone(),
            route,
            client,
            received,
            session,
            pool,
            caller,
            wishes: Wishes::read(|name| head.fields.control(name)),
        };
        let mut exchange = Exchange::new(self.gateway.clone(), meta);
        let timing = self.gateway.spec().observability.server_timing;
        exchange.trace(parent_of(&head.fields), wants_timing(timing, &head.fields));
        exchange.step_since(Step::Auth, received);
        if let Err(refusal) = check_media_type(route, head) {
            exchange.refused(&refusal, received);
            return Err(error_answer(&refusal, route.dialect(), Some(&id)));
        }
        if let Err(refusal) = exchange.arrive(received) {
            return Err(refused(&mut exchange, &refusal));
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
}

impl Handler for Traffic {
    type Ticket = Ticket;

    fn plan(&self, head: &RequestHead, client: SocketAddr) -> Result<(BodyPlan, Ticket), Answer> {
        self.plan_for(head, client, None)
    }

    async fn answer(
        &self,
        ticket: Ticket,
        mut head: RequestHead,
        mut body: Bytes,
        timer: &mut Timer,
    ) -> Answer {
        let Ticket { mut exchange, route } = ticket;
        let result = async {
            if route.body() == BodyKind::None {
                return self.models(route, &head, exchange.caller()).map(Err);
            }
            let Some(_held) = self.gateway.hold_body(body.len() as u64, self.memory_bytes) else {
                return Err(too_many_bytes());
            };
            let content_type = head.fields.get_str(Class::ContentType);
            let placed = exchange.place(&body, content_type, clock::now())?;
            self.copy(&exchange, &head, &body);
            if let Placed::Waits(turn) = placed {
                let grant = turn.come().await?;
                exchange.go(grant, clock::now())?;
            }
            if let Some(rewritten) = exchange.body_for_endpoint(&body) {
                body = rewritten;
                // What is packed cannot be renamed.
                head.fields.remove("accept-encoding");
            }
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
            Err(refusal) => refused(&mut exchange, &refusal),
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
        let Some(Ticket { mut exchange, .. }) = ticket else {
            self.gateway.count_refused(&refusal, None, "", client);
            return error_answer(&refusal, Dialect::OpenAi, None);
        };
        refused(&mut exchange, &refusal)
    }
}

/// Books an error of ours; the answer with it.
fn refused(exchange: &mut Exchange, refusal: &Refusal) -> Answer {
    let now = clock::now();
    let timing = exchange.server_timing(now);
    exchange.refused(refusal, now);
    let mut answer = error_answer(refusal, exchange.route().dialect(), Some(exchange.id()));
    if let Some(timing) = timing {
        answer.field("server-timing", &timing);
    }
    answer.with_fields(&exchange.told_fields(now))
}

/// Gives the answer the client's name back, where it can have another one.
fn rename(exchange: &Exchange, head: &ResponseHead) -> Option<Rename> {
    let is_plain = head.fields.get(Class::ContentEncoding).is_none();
    let content_type = head.fields.get_str(Class::ContentType).filter(|_| is_plain)?;
    exchange.rename().filter(|_| openai::holds_model_names(content_type))
}

/// A whole answer with the client's name.
fn renamed(body: Bytes, rename: Option<Rename>) -> Bytes {
    let Some(mut rename) = rename else { return body };
    let mut renamed = Vec::with_capacity(body.len() + 64);
    rename.write(&body, &mut renamed);
    renamed.extend_from_slice(&rename.finish());
    renamed.into()
}

fn hash_session(session: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(session);
    hasher.finish()
}

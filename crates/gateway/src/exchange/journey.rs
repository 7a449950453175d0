//! A request's times as a trace and `server-timing` show them. Exists only for requests that are traced,
//! came with a trace, or ask for their times; for all others every call here is one look at a `None`.

use std::cell::RefCell;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use rand::{Rng, SeedableRng};
use telemetry::access_log::ClosedBy;
use telemetry::clock;
use telemetry::metrics::labels;
use telemetry::trace::{AttemptRecord, SpanId, Step, TraceContext, TraceId, TraceRecord};
use types::Timestamp;

use super::books::route_label;
use super::{Exchange, Failure};

thread_local! {
    /// Ids need only differ; nobody gains by guessing one.
    static IDS: RefCell<rand_pcg::Pcg64Mcg> =
        RefCell::new(rand_pcg::Pcg64Mcg::from_rng(&mut rand::rng()));
}

/// Attempts that are told apart; a pool's list has no more.
const ATTEMPTS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Journey {
    trace: TraceId,
    /// Of the whole request.
    span: SpanId,
    parent: Option<SpanId>,
    sampled: bool,
    /// Whether we take part in the trace; else it passes us by as it came.
    takes_part: bool,
    wants_timing: bool,
    /// From when to when; without an end while they last.
    steps: [Option<(Timestamp, Option<Timestamp>)>; 5],
    attempts: Vec<Times>,
}

/// One endpoint tried.
#[derive(Clone, Copy, Debug)]
struct Times {
    span: SpanId,
    /// In [`Exchange::order`].
    at: usize,
    begun: Timestamp,
    connect: Option<(Timestamp, Timestamp)>,
    answered: Option<Timestamp>,
    first_payload: Option<Timestamp>,
    ended: Option<Timestamp>,
    status: u16,
    failure: Option<&'static str>,
}

impl Journey {
    fn begin_attempt(&mut self, at: usize, now: Timestamp) {
        if self.attempts.len() == ATTEMPTS_MAX {
            self.attempts.pop();
        }
        self.attempts.push(Times {
            span: random_span(),
            at,
            begun: now,
            connect: None,
            answered: None,
            first_payload: None,
            ended: None,
            status: 0,
            failure: None,
        });
    }
}

/// What is known at the end of a request, besides what the exchange holds.
pub(super) struct Ended {
    pub(super) outcome: labels::Outcome,
    pub(super) closed_by: ClosedBy,
    pub(super) now: Timestamp,
    pub(super) wall: SystemTime,
}

impl Exchange {
    /// Takes up the caller's trace or begins one. To be called before [`Self::place`].
    ///
    /// * `parent`: what the request's `traceparent` says.
    /// * `wants_timing`: the client asks where the time went; see [`Self::server_timing`].
    pub fn trace(&mut self, parent: Option<TraceContext>, wants_timing: bool) {
        let tracer = self.gateway.tracer.get();
        if tracer.is_none() && parent.is_none() && !wants_timing {
            return;
        }
        let trace = parent.map_or_else(random_trace, |parent| parent.trace);
        self.journey = Some(Box::new(Journey {
            trace,
            span: random_span(),
            parent: parent.map(|parent| parent.span),
            sampled: tracer.is_some_and(|tracer| tracer.sampling.begins(trace, parent)),
            takes_part: tracer.is_some(),
            wants_timing,
            steps: [None; 5],
            attempts: Vec::with_capacity(1),
        }));
    }

    /// Books how long a step took.
    pub fn step(&mut self, step: Step, begun: Timestamp, ended: Timestamp) {
        if let Some(journey) = &mut self.journey {
            journey.steps[step as usize] = Some((begun, Some(ended)));
        }
    }

    /// Books a step that may last until the request's end.
    pub(super) fn begin_step(&mut self, step: Step, begun: Timestamp) {
        if let Some(journey) = &mut self.journey {
            journey.steps[step as usize] = Some((begun, None));
        }
    }

    /// Books a step that ends now, if anybody asks for its times.
    pub fn step_since(&mut self, step: Step, begun: Timestamp) {
        if self.has_journey() {
            self.step(step, begun, clock::now());
        }
    }

    /// Books that the body is here: it was read from the moment that the head was judged.
    pub(super) fn body_is_here(&mut self, now: Timestamp) {
        let received = self.meta.received;
        if let Some(journey) = &mut self.journey {
            let judged = journey.steps[Step::Auth as usize].and_then(|(_, ended)| ended);
            journey.steps[Step::Read as usize] = Some((judged.unwrap_or(received), Some(now)));
        }
    }

    /// Books a new connection to the endpoint that has the request.
    pub fn connected(&mut self, begun: Timestamp, ended: Timestamp) {
        if let Some(times) = self.journey.as_mut().and_then(|journey| journey.attempts.last_mut()) {
            times.connect = Some((begun, ended));
        }
    }

    /// Whether [`Self::connected`] would be of use.
    pub fn has_journey(&self) -> bool {
        self.journey.is_some()
    }

    /// Value of the `traceparent` for the endpoint that has the request. `None`: the client's passes.
    pub fn traceparent(&self) -> Option<[u8; 55]> {
        let journey = self.journey.as_ref().filter(|journey| journey.takes_part)?;
        let span = journey.attempts.last()?.span;
        let context = TraceContext { trace: journey.trace, span, sampled: journey.sampled };
        Some(context.to_header())
    }

    /// Where the time went so far, as the value of a `server-timing` field: `read`, `queue`, `pick` and
    /// so on, `connect` and `ttfb` of the last endpoint, `total`. `None` if the client did not ask.
    ///
    /// Source: <https://www.w3.org/TR/server-timing/>; milliseconds.
    pub fn server_timing(&self, now: Timestamp) -> Option<String> {
        let journey = self.journey.as_ref().filter(|journey| journey.wants_timing)?;
        let mut text = String::with_capacity(128);
        let mut add = |name: &str, time: Duration| {
            let comma = if text.is_empty() { "" } else { ", " };
            let millis = time.as_secs_f64() * 1e3;
            write!(text, "{comma}{name};dur={millis:.3}").unwrap_or_default();
        };
        for (step, times) in STEPS.iter().zip(journey.steps) {
            if let Some((begun, ended)) = times {
                add(step.as_str(), ended.unwrap_or(now).since(begun));
            }
        }
        if let Some(last) = journey.attempts.last() {
            if let Some((begun, ended)) = last.connect {
                add("connect", ended.since(begun));
            }
            if let Some(answered) = last.first_payload.or(last.answered) {
                add("ttfb", answered.since(last.begun));
            }
        }
        add("total", now.since(self.meta.received));
        Some(text)
    }

    pub(super) fn trace_id(&self) -> Option<TraceId> {
        let journey = self.journey.as_ref()?;
        (journey.takes_part || journey.parent.is_some()).then_some(journey.trace)
    }

    pub(super) fn begin_attempt(&mut self, now: Timestamp) {
        let at = self.tried.saturating_sub(1);
        if let Some(journey) = &mut self.journey {
            journey.begin_attempt(at, now);
        }
    }

    /// The attempt under way goes to another endpoint, which was told the same parent.
    pub(super) fn move_attempt(&mut self) {
        let at = self.tried.saturating_sub(1);
        if let Some(journey) = &mut self.journey
            && journey.attempts.len() > 1
        {
            journey.attempts.pop();
            if let Some(times) = journey.attempts.last_mut() {
                times.at = at;
            }
        }
    }

    pub(super) fn attempt_failed(&mut self, failure: Failure, now: Timestamp) {
        if let Some(times) = self.journey.as_mut().and_then(|journey| journey.attempts.last_mut()) {
            times.ended = Some(now);
            times.failure = Some(match failure {
                Failure::Connect => "connect",
                Failure::Closed => "closed",
                Failure::CutBeforePayload => "cut_before_payload",
                Failure::EmptyStream => "empty_stream",
                Failure::Malformed => "malformed",
                Failure::Timeout => "timeout",
                Failure::Lost => "lost",
            });
        }
    }

    pub(super) fn attempt_answered(&mut self, status: u16, is_last: bool, now: Timestamp) {
        if let Some(times) = self.journey.as_mut().and_then(|journey| journey.attempts.last_mut()) {
            times.answered = Some(now);
            times.status = status;
            if !is_last {
                times.ended = Some(now);
                times.failure = Some("unavailable");
            }
        }
    }

    pub(super) fn attempt_pays(&mut self, now: Timestamp) {
        if let Some(times) = self.journey.as_mut().and_then(|journey| journey.attempts.last_mut()) {
            times.first_payload.get_or_insert(now);
        }
    }

    /// Hands the trace over if it is to be kept, and ties the pool's histograms to it.
    pub(super) fn close_journey(&mut self, ended: &Ended) {
        let Some(journey) = self.journey.take() else { return };
        let Some(tracer) = self.gateway.tracer.get().filter(|_| journey.takes_part) else { return };
        let duration = ended.now.since(self.meta.received);
        let has_failed =
            matches!(ended.outcome, labels::Outcome::EndpointError | labels::Outcome::GatewayError);
        let took = self.ttft().unwrap_or(duration);
        if !journey.sampled && !tracer.sampling.keeps(has_failed, took) {
            return;
        }
        if let Some(target) = &self.target {
            let (metrics, trace) = (&target.pool.metrics, journey.trace);
            metrics.request_duration.exemplify(duration, trace, ended.wall);
            if let Some(ttft) = self.ttft() {
                metrics.request_ttft.exemplify(ttft, trace, ended.wall);
            }
        }
        tracer.hand_over(Box::new(self.record_of(&journey, ended)));
    }

    fn record_of(&self, journey: &Journey, ended: &Ended) -> TraceRecord {
        let usage = self.watching.usage();
        let steps = STEPS.iter().zip(journey.steps);
        TraceRecord {
            trace: journey.trace,
            span: journey.span,
            parent: journey.parent,
            sampled: journey.sampled,
            received: self.meta.received,
            ended: ended.now,
            ended_wall: ended.wall,
            steps: steps
                .filter_map(|(step, times)| {
                    times.map(|(from, to)| (*step, from, to.unwrap_or(ended.now)))
                })
                .collect(),
            attempts: journey.attempts.iter().map(|times| self.attempt_of(times)).collect(),
            request_id: self.meta.id.as_str().into(),
            method: self.meta.method.as_str().into(),
            route: route_label(self.meta.route),
            path: self.meta.route.as_str(),
            client: self.meta.client,
            tenant: self.meta.caller.tenant.clone(),
            priority: self.priority_in_force(),
            objective: self.objective_shown().map(Into::into),
            model: self.target.as_ref().map(|target| target.name.clone()),
            pool: self.target.as_ref().map(|target| target.pool.name.clone()),
            stream: self.stream,
            status: self.status_shown(),
            outcome: ended.outcome,
            closed_by: ended.closed_by,
            error: self.error.map(|(component, code)| (component.as_str(), code)),
            prompt_tokens: usage.map(|usage| usage.prompt_tokens),
            completion_tokens: usage.map(|usage| usage.completion_tokens),
            cached_tokens: usage.and_then(|usage| usage.cached_tokens),
            estimated_tokens: self.prompt.tokens,
            prompt_blocks: self.prompt.blocks,
            matched_blocks: self.belief.blocks(),
            ttft: self.ttft(),
            predicted: self.predicted(),
            bytes_in: self.bytes_in,
            bytes_out: self.watching.bytes_out,
        }
    }

    fn attempt_of(&self, times: &Times) -> AttemptRecord {
        let member = self.order.get(times.at).map(|(chosen, _)| &chosen.member);
        AttemptRecord {
            span: times.span,
            endpoint: member.map_or("", |member| &member.authority).into(),
            engine: member.map_or("unknown", |member| member.engine().as_str()),
            begun: times.begun,
            connect: times.connect,
            answered: times.answered,
            first_payload: times.first_payload,
            ended: times.ended,
            status: times.status,
            failure: times.failure,
        }
    }
}

/// In the order of [`Step`]'s declaration.
const STEPS: [Step; 5] = [Step::Auth, Step::Read, Step::Limits, Step::Queue, Step::Pick];

fn random_span() -> SpanId {
    SpanId(IDS.with_borrow_mut(|rng| rng.next_u64()).max(1))
}

fn random_trace() -> TraceId {
    let bits = IDS.with_borrow_mut(|rng| (rng.next_u64(), rng.next_u64()));
    TraceId((u128::from(bits.0) << 64 | u128::from(bits.1)).max(1))
}

//! A request's way past the queue of its pool.

use std::hash::Hasher;
use std::sync::Arc;
use std::time::Duration;

use flow::{DispatchId, FlowKey, Work};
use openai::Body;
use sched::saturation::Room;
use sched::{Candidate, Forecast, Prices, RequestView};
use telemetry::metrics::labels::Band;
use telemetry::trace::Step;
use types::{ObjectiveName, Priority, Standing, Timestamp};

use super::Exchange;
use super::placement::{PromptView, request_view};
use crate::Gateway;
use crate::admission::{Admission, Asked, Entitlement, Grant, Revocation, Turn, late};
use crate::catalog::Target;
use crate::refusal::Refusal;

/// Bytes at either end of a long body that tell a request from others.
const FINGERPRINT_BYTES: usize = 512;
/// Endpoints that are asked how long answers are.
const ASKED_MAX: usize = 16;

/// Where a request stands once it is placed.
#[derive(Debug)]
pub enum Placed {
    /// Its endpoints are chosen: [`Exchange::attempt`] is next.
    Chosen,
    /// It waits for its turn; [`Exchange::go`] is next, with what that brings.
    Waits(Turn),
}

/// What flow control knows of a request that it let go, or will.
pub(super) struct Admitted {
    admission: Arc<Admission>,
    work: Work,
    /// Until credit is booked on an endpoint.
    grant: Option<Grant>,
    /// While it can be called back.
    sent: Option<(DispatchId, Arc<Revocation>)>,
    waited: Duration,
    /// While it waits.
    waits_since: Option<Timestamp>,
    /// The configured objective that holds for it.
    objective: Option<ObjectiveName>,
    /// An endpoint has had it.
    was_sent: bool,
}

impl Exchange {
    /// Asks for leave, where the pool has a queue. `Some`: the request waits.
    pub(super) fn ask(
        &mut self,
        target: &Target,
        body: &[u8],
        said: &Body,
        candidates: &[Candidate],
        now: Timestamp,
    ) -> Result<Option<Turn>, Refusal> {
        let Some(admission) = &target.pool.admission else { return Ok(None) };
        let entitled = self.entitlement(target);
        self.band = Some(Band::from(entitled.flow.priority));
        if entitled.is_unknown {
            admission.flow_metrics().unknown_objectives.inc();
        }
        let work = Work {
            tokens: expected_tokens(&self.gateway, &self.prompt, said, candidates),
            bytes: self.bytes_in,
            received: self.meta.received,
            ttft: entitled.ttft,
            deadline: entitled.deadline,
            service: entitled.deadline.map_or(Duration::ZERO, |_| self.fastest(candidates, now)),
            fingerprint: Some(fingerprint(&entitled.flow, body)),
            flow: entitled.flow,
        };
        let room = Room::of(&target.pool.settings.saturation, candidates.iter());
        let mut admitted = Admitted {
            admission: admission.clone(),
            work: work.clone(),
            grant: None,
            sent: None,
            waited: Duration::ZERO,
            waits_since: None,
            objective: entitled.objective,
            was_sent: false,
        };
        let asked = admission.ask(&self.gateway, work, &room, now)?;
        let turn = match asked {
            Asked::Go(grant) => {
                admitted.grant = Some(grant);
                None
            }
            Asked::Wait(turn) => {
                admitted.waits_since = Some(now);
                Some(turn)
            }
        };
        self.admitted = Some(admitted);
        if turn.is_some() {
            self.begin_step(Step::Queue, now);
        }
        Ok(turn)
    }

    /// Its turn has come: chooses the endpoints to try.
    pub fn go(&mut self, grant: Grant, now: Timestamp) -> Result<(), Refusal> {
        if let Some(admitted) = &mut self.admitted {
            let waited = grant.waited;
            admitted.waited = waited;
            admitted.grant = Some(grant);
            if let Some(since) = admitted.waits_since.take() {
                self.step(Step::Queue, since, since + waited);
            }
        }
        // Endpoints may have come and gone meanwhile.
        if let Some(target) = &mut self.target {
            let catalog = self.gateway.catalog();
            if let Some(pool) = catalog.pools.iter().find(|pool| pool.name == target.pool.name) {
                target.pool = pool.clone();
            }
        }
        self.choose(now)
    }

    fn entitlement(&self, target: &Target) -> Entitlement {
        let meta = &self.meta;
        let spec = self.gateway.spec();
        Entitlement::of(&spec, &target.pool.name, &meta.caller, &meta.wishes, meta.received)
    }

    /// Whether an answer that is expected so late need not be begun.
    pub(super) fn check_deadline(
        &self,
        predicted: Duration,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let Some(within) = self.meta.wishes.deadline else { return Ok(()) };
        if now + predicted <= self.meta.received + within {
            return Ok(());
        }
        let wait = self.target.as_ref().map(|target| target.pool.pace.retry_after(1, now));
        Err(late(predicted, wait))
    }

    /// Expected time to the first token at the endpoint that is fastest now.
    fn fastest(&self, candidates: &[Candidate], now: Timestamp) -> Duration {
        let request = self.view(now);
        let forecast = Forecast::new(Prices::default(), &request);
        let times = candidates.iter().map(|candidate| forecast.ttft_ms(candidate));
        let least = times.fold(f32::INFINITY, f32::min);
        if least.is_finite() { crate::prediction::duration_of(least) } else { Duration::ZERO }
    }

    /// Which endpoints are open to it.
    pub(super) fn standing(&self) -> Standing {
        let grant = self.admitted.as_ref().and_then(|admitted| admitted.grant.as_ref());
        grant.map(|grant| grant.standing).unwrap_or_default()
    }

    pub(super) fn view(&self, now: Timestamp) -> RequestView<'static> {
        let view = request_view(&self.gateway, &self.prompt, now);
        RequestView { is_admitted: self.admitted.is_some(), ..view }
    }

    /// Credit is booked: the endpoint's account speaks for the request from here on.
    pub(super) fn note_claimed(&mut self) {
        if let Some(grant) = self.admitted.as_mut().and_then(|admitted| admitted.grant.take()) {
            grant.booked();
        }
    }

    /// The request goes to an endpoint.
    pub(super) fn note_sent(&mut self) {
        self.note_claimed();
        let Some(admitted) = &mut self.admitted else { return };
        admitted.was_sent = true;
        if admitted.sent.is_none() {
            admitted.sent = admitted.admission.sent(admitted.work.flow.priority);
        }
    }

    /// The answer has begun: nobody calls the request back any more.
    pub(super) fn note_answered(&mut self) {
        if let Some(admitted) = &mut self.admitted
            && let Some((id, _)) = admitted.sent.take()
        {
            admitted.admission.answered(id);
        }
    }

    /// How the request learns that it is called back; `None`: it cannot be.
    pub fn revocation(&self) -> Option<Arc<Revocation>> {
        let (_, revocation) = self.admitted.as_ref()?.sent.as_ref()?;
        Some(revocation.clone())
    }

    /// What the client of a request is told that was called back.
    pub fn revoked(&mut self, now: Timestamp) -> Refusal {
        self.reservation = None;
        match &self.admitted {
            Some(admitted) => admitted.admission.revoked(&admitted.work, now),
            None => super::placement::no_pools(),
        }
    }

    /// How long the request has waited for its turn; `None`: its pool has no queue.
    pub(super) fn waited(&self, now: Timestamp) -> Option<Duration> {
        let admitted = self.admitted.as_ref()?;
        Some(admitted.waits_since.map_or(admitted.waited, |since| now.since(since)))
    }

    /// The priority by which it is placed; `None`: its pool has no queue.
    pub(super) fn priority_in_force(&self) -> Option<Priority> {
        self.admitted.as_ref().map(|admitted| admitted.work.flow.priority)
    }

    /// The objective that holds for it, a configured name; `_unknown` for one that only its client knows.
    pub(super) fn objective_shown(&self) -> Option<&str> {
        let admitted = self.admitted.as_ref()?;
        let unknown = self.has_unknown_objective.then_some("_unknown");
        unknown.or(admitted.objective.as_ref().map(ObjectiveName::as_str))
    }

    /// The request is over; its credit must have been given back.
    pub(super) fn leave(&mut self, now: Timestamp) {
        self.note_answered();
        let Some(admitted) = self.admitted.take() else { return };
        let Admitted { admission, work, was_sent, grant, .. } = admitted;
        if was_sent {
            let used = self.used_tokens();
            admission.ended(&self.gateway, &work.flow, work.tokens, used, now);
        } else if grant.is_none() {
            // What was booked for it and not used is free.
            admission.pump(&self.gateway, now);
        }
        // Leave that was not used goes to the next.
        drop(grant);
    }

    /// Tokens that the endpoint had to compute, as far as the answer says.
    fn used_tokens(&self) -> Option<u32> {
        let usage = self.watching.usage()?;
        let prompt = usage.prompt_tokens.saturating_sub(usage.cached_tokens.unwrap_or(0));
        Some(u32::try_from(prompt + usage.completion_tokens).unwrap_or(u32::MAX))
    }
}

/// Prompt tokens that the best holder has to compute, and those to be expected of the answer.
pub(crate) fn expected_tokens(
    gateway: &Gateway,
    prompt: &PromptView,
    said: &Body,
    candidates: &[Candidate],
) -> u32 {
    let held = candidates.iter().map(|candidate| candidate.matched_blocks).max().unwrap_or(0);
    let held_tokens = held.saturating_mul(gateway.block_tokens());
    let prompt = prompt.tokens.saturating_sub(held_tokens);
    let asked = candidates.iter().take(ASKED_MAX).map(|one| one.speed.output_tokens);
    let count = candidates.len().clamp(1, ASKED_MAX) as f32;
    let usual = asked.sum::<f32>() / count;
    let answer = said.tokens_max.map_or(usual, |most| usual.min(most as f32));
    let answers = said.n.unwrap_or(1).max(1) as f32;
    prompt.saturating_add((answer * answers) as u32)
}

/// The same for a request and its repetition, and for hardly any other: of a long body both ends are
/// looked at, which hold the beginning of the prompt, its end and the settings. Under another priority it is
/// another request: what it was told in one band says nothing of the other.
fn fingerprint(flow: &FlowKey, body: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(flow.id.as_bytes());
    hasher.write_i32(flow.priority.0);
    hasher.write_usize(body.len());
    match (body.first_chunk::<FINGERPRINT_BYTES>(), body.last_chunk::<FINGERPRINT_BYTES>()) {
        (Some(first), Some(last)) => {
            hasher.write(first);
            hasher.write(last);
        }
        _ => hasher.write(body),
    }
    hasher.finish()
}

//! Flow control between arrivals and the picker: the production queue, in virtual time.
//!
//! As in the gateway, a request that finds room goes at once; any other waits in `flow::Queue` or is
//! refused, and whatever may have freed capacity (a first token, an end, a scrape) calls those whose
//! turn it is. Clients that are refused come back when they were told to, if they are such clients.

use std::time::Duration;

use flow::{FlowKey, Queue, Work};
use types::{EndpointId, Standing, Timestamp};

use super::{Event, Simulation};
use crate::crowd::{Guests, Patience, Wait, Waits};
use crate::measure::Fate;
use crate::prompt::mix;

pub(super) struct Door<'a> {
    guests: &'a Guests,
    queue: Queue<u32>,
    waits: Waits,
    /// Under way, with the tokens that they were let in with.
    charged: Vec<u32>,
    /// For when a look at the times is ordered.
    looks_at: Option<Timestamp>,
    answers: AnswerTime,
    /// Of whom was let in last.
    standing: Standing,
}

impl<'a> Door<'a> {
    pub(super) fn new(guests: &'a Guests, requests: usize) -> Self {
        Self {
            guests,
            queue: Queue::new(guests.config.clone()),
            waits: Waits::new(requests),
            charged: vec![0; requests],
            looks_at: None,
            answers: AnswerTime::default(),
            standing: Standing::default(),
        }
    }

    pub(super) fn into_waits(self) -> Waits {
        self.waits
    }

    fn wait(&mut self, request: u32) -> &mut Wait {
        &mut self.waits.by_request[request as usize]
    }
}

impl Simulation<'_> {
    /// A request comes, for the first time or again.
    pub(super) fn knock(&mut self, request: u32, now: Timestamp) {
        let Some(mut door) = self.door.take() else { return };
        let guest = &door.guests.guests[request as usize];
        let asked = &self.requests[request as usize];
        let prompt_tokens = asked.prompt_tokens();
        let work = Work {
            flow: guest.flow.clone(),
            tokens: prompt_tokens.saturating_add(guest.answer_tokens),
            bytes: u64::from(prompt_tokens) * 4,
            received: now,
            ttft: None,
            deadline: guest.deadline.map(|deadline| now + deadline),
            service: guest.deadline.map_or(Duration::ZERO, |_| door.answers.expected()),
            fingerprint: Some(u64::from(request)),
        };
        door.charged[request as usize] = work.tokens;
        let wait = door.wait(request);
        wait.tries += 1;
        wait.returns += u32::from(wait.is_due);
        let saturation = self.gateways[0].saturation(&door.guests.saturation, now);
        if let Some(standing) = door.queue.pass(&work, saturation, now) {
            self.door = Some(door);
            self.let_in(request, standing, now);
            return;
        }
        let mut evicted = Vec::new();
        let offered = door.queue.offer(work, request, saturation, now, &mut evicted);
        self.door = Some(door);
        if let Err(refused) = offered {
            self.turn_away(request, refused.retry_after, now);
        }
        for gone in evicted {
            self.turn_away(gone.payload, gone.retry_after, now);
        }
        self.pump(now);
    }

    /// Calls all that may go now.
    pub(super) fn pump(&mut self, now: Timestamp) {
        loop {
            let Some(door) = &mut self.door else { return };
            if door.queue.is_empty() {
                break;
            }
            let saturation = self.gateways[0].saturation(&door.guests.saturation, now);
            let Some(next) = door.queue.next(saturation, now) else { break };
            self.let_in(next.payload, next.standing, now);
        }
        self.look_at_times(now);
    }

    /// Sends those away whose time is over, and sees to it that the next is looked at in time.
    pub(super) fn look_at_times(&mut self, now: Timestamp) {
        let Some(door) = &mut self.door else { return };
        let mut expired = Vec::new();
        if door.queue.next_expiry().is_some_and(|at| at <= now) {
            door.queue.expired(now, &mut expired);
        }
        let next = door.queue.next_expiry();
        if let Some(next) = next
            && door.looks_at.is_none_or(|at| at <= now || next < at)
        {
            door.looks_at = Some(next);
            self.order(next, Event::Expiry);
        }
        for gone in expired {
            if let Some(door) = &mut self.door {
                door.wait(gone.payload).expired += 1;
            }
            self.turn_away(gone.payload, gone.retry_after, now);
        }
    }

    /// Behind a door only endpoints with room are asked: a request that waits here can still go
    /// anywhere, and one that waits in an engine cannot.
    pub(super) fn exclude_full(&self, excluded: &mut Vec<EndpointId>, now: Timestamp) {
        if let Some(door) = &self.door {
            self.gateways[0].full(&door.guests.saturation, door.standing, now, excluded);
        }
    }

    fn let_in(&mut self, request: u32, standing: Standing, now: Timestamp) {
        if let Some(door) = &mut self.door {
            door.standing = standing;
            let wait = door.wait(request);
            wait.let_in = Some(now);
            wait.kept += u32::from(wait.is_due);
        }
        self.place(request, now);
    }

    fn turn_away(&mut self, request: u32, retry_after: Option<Duration>, now: Timestamp) {
        let Some(door) = &mut self.door else { return };
        let patience = door.guests.guests[request as usize].patience;
        let until = door.guests.returns_until;
        let wait = door.wait(request);
        wait.refused_first.get_or_insert(now);
        let after = match (patience, retry_after) {
            (Patience::Obeys, Some(told)) => told,
            (Patience::Hurries, Some(told)) => told / 10,
            (Patience::GivesUp, _) | (_, None) => Duration::MAX,
        };
        wait.is_due = patience == Patience::Obeys;
        let drawn = mix(mix(self.seed, 11), mix(u64::from(request), u64::from(wait.tries)));
        // Timers and ways take up to 0.2 s.
        let late = Duration::from_millis(drawn % 200);
        if after == Duration::MAX || now + after > until {
            self.records[request as usize].fate = Fate::Refused;
            self.open -= 1;
        } else {
            self.order(now + after + late, Event::Return { request });
        }
    }

    /// The first token of a request came.
    pub(super) fn note_answer(&mut self, request: u32, now: Timestamp) {
        if let Some(door) = &mut self.door
            && let Some(let_in) = door.wait(request).let_in
        {
            door.answers.observe(now.since(let_in));
        }
        self.pump(now);
    }

    /// A request that was let in came to its end.
    pub(super) fn leave(&mut self, request: u32, now: Timestamp) {
        let Some(door) = &mut self.door else { return };
        let estimated = door.charged[request as usize];
        let asked = &self.requests[request as usize];
        let used = asked.prompt_tokens().saturating_add(asked.answer.tokens);
        let flow: &FlowKey = &door.guests.guests[request as usize].flow;
        door.queue.charge(flow, estimated, used, now);
        door.queue.drained(flow, estimated, now);
        self.pump(now);
    }

    /// Notes how many requests an engine lets wait at the end of a step.
    pub(super) fn note_queue(&mut self, endpoint: u32, now: Timestamp) {
        let is_counted = self.settings.window().contains(&now);
        if let Some(door) = self.door.as_mut().filter(|_| is_counted) {
            let gauges = self.endpoints[endpoint as usize].engine.gauges();
            door.waits.engine_queues.push(gauges.waiting());
        }
    }
}

/// Time from sending to the first token that few exceed: mean and twice the mean deviation, as TCP
/// times its packets (Jacobson 1988).
#[derive(Clone, Copy, Debug, Default)]
struct AnswerTime {
    mean: f64,
    deviation: f64,
    is_known: bool,
}

impl AnswerTime {
    fn observe(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        if !self.is_known {
            *self = Self { mean: took, deviation: took / 2.0, is_known: true };
        }
        let off = took - self.mean;
        self.mean += off / 16.0;
        self.deviation += (off.abs() - self.deviation) / 16.0;
    }

    fn expected(&self) -> Duration {
        Duration::from_secs_f64(self.mean + 2.0 * self.deviation)
    }
}

//! The event loop: one run in virtual time.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use sched::Reservation;
use sim::engine::{EngineSpec, Event as EngineEvent, RequestId, RequestSpec, RequestTimes};
use types::{EndpointMetrics, Timestamp};

use crate::endpoint::{Endpoint, Pending};
use crate::gateway::Gateway;
use crate::measure::{EndpointBooks, Gaps, Record, Run};
use crate::plan::Settings;
use crate::policy::{Policy, Progress, Truth};
use crate::prompt::block_hashes;
use crate::workload::Request;

/// What happens next. Requests and endpoints by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival {
        request: u32,
    },
    /// The request reaches its endpoint.
    Delivery {
        request: u32,
        endpoint: u32,
    },
    /// A request that the engine was still unpacking is ready.
    Entry {
        endpoint: u32,
    },
    StepEnd {
        endpoint: u32,
    },
    /// The gateway sees the first token.
    FirstToken {
        request: u32,
    },
    /// The gateway sees the end of the answer.
    End {
        request: u32,
    },
    ScrapeBegin {
        endpoint: u32,
    },
    /// The engine renders its page.
    ScrapePage {
        endpoint: u32,
    },
    ScrapeEnd {
        endpoint: u32,
    },
}

/// Time that an engine's server takes to render its metrics page.
const PAGE_RENDERING: Duration = Duration::from_millis(2);

pub(crate) struct Simulation<'a> {
    requests: &'a [Request],
    settings: &'a Settings,
    events: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    /// Breaks ties: what was ordered first happens first.
    ordered: u64,
    endpoints: Vec<Endpoint>,
    gateway: Gateway,
    reservations: Vec<Option<Reservation>>,
    progress: Vec<Progress>,
    last_token: Vec<Timestamp>,
    pages: Vec<EndpointMetrics>,
    open: usize,
    records: Vec<Record>,
    gaps: Gaps,
    window_tokens: u64,
    engine_events: Vec<EngineEvent>,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(
        specs: &[EngineSpec],
        requests: &'a [Request],
        policy: Policy,
        settings: &'a Settings,
        seed: u64,
    ) -> Self {
        let engine = |(at, spec): (usize, &EngineSpec)| Endpoint::new(spec.clone(), at as u64);
        let endpoints: Vec<_> = specs.iter().enumerate().map(engine).collect();
        let gateway = Gateway::new(policy, endpoints.len(), seed);
        for (at, endpoint) in endpoints.iter().enumerate() {
            gateway.introduce(at, &endpoint.page);
        }
        let progress = requests.iter().map(|request| Progress {
            prompt_tokens: request.prompt_tokens(),
            output_tokens: request.answer.tokens,
            ..Progress::default()
        });
        Self {
            progress: progress.collect(),
            records: requests.iter().map(Record::new).collect(),
            reservations: requests.iter().map(|_| None).collect(),
            last_token: vec![Timestamp::ZERO; requests.len()],
            pages: vec![EndpointMetrics::default(); endpoints.len()],
            open: requests.len(),
            events: BinaryHeap::new(),
            ordered: 0,
            gaps: Gaps::default(),
            window_tokens: 0,
            engine_events: Vec::new(),
            requests,
            settings,
            endpoints,
            gateway,
        }
    }

    /// Plays until every request has ended.
    pub(crate) fn run(mut self) -> Run {
        if let Some(first) = self.requests.first() {
            self.order(first.at, Event::Arrival { request: 0 });
        }
        for (at, due) in self.gateway.first_scrapes().into_iter().enumerate() {
            self.order(due, Event::ScrapeBegin { endpoint: at as u32 });
        }
        while self.open > 0
            && let Some(Reverse((now, _, event))) = self.events.pop()
        {
            self.handle(event, now);
        }
        let books = |endpoint: &Endpoint| EndpointBooks {
            stats: endpoint.engine.stats(),
            request_seconds: endpoint.request_seconds(),
            requests_left: endpoint.engine.requests(),
        };
        Run {
            window: self.settings.window(),
            endpoints: self.endpoints.iter().map(books).collect(),
            records: self.records,
            gaps: self.gaps,
            window_tokens: self.window_tokens,
        }
    }

    fn handle(&mut self, event: Event, now: Timestamp) {
        let network = self.settings.network;
        match event {
            Event::Arrival { request } => self.arrive(request, now),
            Event::Delivery { request, endpoint } => self.deliver(request, endpoint, now),
            Event::Entry { endpoint } => self.go_on(endpoint, now),
            Event::StepEnd { endpoint } => self.end_step(endpoint, now),
            Event::FirstToken { request } => {
                if let Some(reservation) = &mut self.reservations[request as usize] {
                    reservation.first_token(now);
                }
            }
            Event::End { request } => {
                if let Some(mut reservation) = self.reservations[request as usize].take() {
                    let tokens = self.requests[request as usize].answer.tokens;
                    reservation.finished(Some(tokens), now);
                }
                self.open -= 1;
            }
            Event::ScrapeBegin { endpoint } => {
                if self.gateway.begin_scrape(endpoint as usize, now) {
                    self.order(now + network + PAGE_RENDERING, Event::ScrapePage { endpoint });
                }
            }
            Event::ScrapePage { endpoint } => {
                self.pages[endpoint as usize] = self.endpoints[endpoint as usize].page.clone();
                self.order(now + network, Event::ScrapeEnd { endpoint });
            }
            Event::ScrapeEnd { endpoint } => {
                let page = std::mem::take(&mut self.pages[endpoint as usize]);
                let next = self.gateway.end_scrape(endpoint as usize, page, now);
                self.order(next, Event::ScrapeBegin { endpoint });
            }
        }
    }

    fn arrive(&mut self, request: u32, now: Timestamp) {
        if let Some(next) = self.requests.get(request as usize + 1) {
            self.order(next.at, Event::Arrival { request: request + 1 });
        }
        let truth = Truth { endpoints: &self.endpoints, progress: &self.progress };
        let asked = &self.requests[request as usize];
        let Some(placed) = self.gateway.place(asked, now, &truth) else {
            self.open -= 1;
            return;
        };
        let endpoint = placed.endpoint as u32;
        self.records[request as usize].endpoint = Some(placed.endpoint);
        self.reservations[request as usize] = Some(placed.reservation);
        let prompt_tokens = self.progress[request as usize].prompt_tokens;
        self.endpoints[placed.endpoint].pending.push(Pending {
            request,
            prompt_tokens,
            left: prompt_tokens.saturating_sub(placed.held_tokens),
            is_admitted: false,
        });
        self.order(now + self.settings.network, Event::Delivery { request, endpoint });
        if let Some(due) = placed.scrape_at {
            self.order(due, Event::ScrapeBegin { endpoint });
        }
    }

    fn deliver(&mut self, request: u32, endpoint: u32, now: Timestamp) {
        let asked = &self.requests[request as usize];
        let home = &mut self.endpoints[endpoint as usize];
        let spec = request_spec(request, asked, home.engine.spec().block_size, now);
        if home.engine.submit(spec).is_err() {
            home.pending.retain(|pending| pending.request != request);
            self.order(now + self.settings.network, Event::End { request });
            return;
        }
        home.count_inside(now);
        self.go_on(endpoint, now);
    }

    /// Begins a step, or orders to be woken when there will be something to do.
    fn go_on(&mut self, endpoint: u32, now: Timestamp) {
        let home = &mut self.endpoints[endpoint as usize];
        if home.step_end.is_some() {
            return;
        }
        if let Some(end) = home.begin_step(now) {
            self.order(end, Event::StepEnd { endpoint });
        } else if let Some(ready) = home.engine.next_ready()
            && ready > now
            && home.entry_at != Some(ready)
        {
            home.entry_at = Some(ready);
            self.order(ready, Event::Entry { endpoint });
        }
    }

    fn end_step(&mut self, endpoint: u32, now: Timestamp) {
        let mut events = std::mem::take(&mut self.engine_events);
        let home = &mut self.endpoints[endpoint as usize];
        home.step_end = None;
        home.engine.finish_step(now, &mut events);
        // Who was let in knows now what was cached, before the step's work is taken off.
        for event in &events {
            if let EngineEvent::Admitted { id, cached_tokens } = event {
                let request = id.0 as u32;
                self.progress[request as usize].cached_tokens = *cached_tokens;
                if let Some(pending) = home.pending_mut(request) {
                    pending.is_admitted = true;
                    pending.left = pending.prompt_tokens.saturating_sub(*cached_tokens);
                }
            }
        }
        home.advance_prompts();
        for event in events.drain(..) {
            self.note(event, endpoint, now);
        }
        self.engine_events = events;
        let home = &mut self.endpoints[endpoint as usize];
        home.count_inside(now);
        home.renew_page();
        self.go_on(endpoint, now);
    }

    fn note(&mut self, event: EngineEvent, endpoint: u32, now: Timestamp) {
        let seen = now + self.settings.network;
        let home = &mut self.endpoints[endpoint as usize];
        let is_counted = self.settings.window().contains(&now);
        match event {
            EngineEvent::FirstToken { id } => {
                let request = id.0 as u32;
                home.pending.retain(|pending| pending.request != request);
                home.decoding.push(request);
                self.progress[request as usize].generated = 1;
                self.last_token[request as usize] = now;
                self.records[request as usize].first_token = Some(seen);
                self.window_tokens += u64::from(is_counted);
                self.order(seen, Event::FirstToken { request });
            }
            EngineEvent::Token { id } => {
                let request = id.0 as usize;
                self.progress[request].generated += 1;
                let gap = now.since(std::mem::replace(&mut self.last_token[request], now));
                if is_counted {
                    self.window_tokens += 1;
                    self.gaps.add(gap);
                }
            }
            EngineEvent::Finished { id, times } => {
                let request = id.0 as u32;
                home.decoding.retain(|other| *other != request);
                self.finish(request, &times, seen);
            }
            EngineEvent::Preempted { .. }
            | EngineEvent::Admitted { .. }
            | EngineEvent::AdapterLoaded { .. } => {}
        }
    }

    fn finish(&mut self, request: u32, times: &RequestTimes, seen: Timestamp) {
        let record = &mut self.records[request as usize];
        record.finished = Some(seen);
        record.cached_tokens = times.cached_tokens;
        record.preemptions = times.preemptions;
        record.inside = times.finished.since(times.arrived);
        self.order(seen, Event::End { request });
    }

    fn order(&mut self, at: Timestamp, event: Event) {
        self.ordered += 1;
        self.events.push(Reverse((at, self.ordered, event)));
    }
}

/// The request as the engine gets it.
fn request_spec(id: u32, request: &Request, block_size: u32, now: Timestamp) -> RequestSpec {
    let prompt_tokens = request.prompt_tokens();
    let mut whole = request.prompt.to_vec();
    whole.push(request.answer);
    let mut hashes = Vec::new();
    block_hashes(&whole, block_size, &mut hashes);
    let named = |hashes: &[u64]| hashes.iter().map(|hash| sim::engine::BlockHash(*hash)).collect();
    let (prompt, answer) = hashes.split_at((prompt_tokens / block_size) as usize);
    RequestSpec {
        id: RequestId(u64::from(id)),
        prompt_blocks: named(prompt),
        answer_blocks: named(answer),
        prompt_tokens,
        output_tokens: request.answer.tokens,
        output_tokens_max: request.answer.tokens,
        adapter: None,
        arrived: now,
    }
}

//! The event loop: one run in virtual time.

mod attempts;
mod door;
mod scrapes;
mod sharing;
#[cfg(test)]
mod tests;
mod tokens;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sim::engine::{Decoded, EngineSpec, Event as EngineEvent, RequestId, RequestSpec};
use types::Timestamp;

use crate::crowd::Guests;
use crate::endpoint::{Bereaved, Endpoint, Page};
use crate::fault::{Fault, FaultKind};
use crate::gateway::Gateway;
use crate::measure::{EndpointBooks, Gaps, Record, Run};
use crate::plan::Settings;
use crate::policy::{Policy, Progress};
use crate::prompt::mix;
use crate::workload::Request;
use attempts::{Failure, Ticket};
use door::Door;

/// What happens next. Requests, endpoints, gateways and faults by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival {
        request: u32,
    },
    /// A request that was told to come back does so.
    Return {
        request: u32,
    },
    /// The time of something that waits is over.
    Expiry,
    /// The request reaches its endpoint.
    Delivery {
        request: u32,
        endpoint: u32,
    },
    /// A request that the engine was still unpacking is ready.
    Entry {
        endpoint: u32,
        life: u32,
    },
    /// A step ends, or a run of them.
    RunEnd {
        endpoint: u32,
        life: u32,
    },
    /// The gateway sees the first token.
    FirstToken {
        request: u32,
    },
    /// The gateway sees the end of the answer.
    End {
        request: u32,
    },
    /// The gateway sees the answer break off.
    Cut {
        request: u32,
    },
    /// The gateway sees that there will be no answer.
    Failed {
        request: u32,
        failure: Failure,
    },
    ScrapeBegin {
        gateway: u16,
        endpoint: u32,
    },
    /// The engine renders its page.
    ScrapePage {
        gateway: u16,
        endpoint: u32,
    },
    ScrapeEnd {
        gateway: u16,
        endpoint: u32,
    },
    Fault {
        fault: u16,
        is_on: bool,
    },
    /// Gateways tell each other what they have and sent where.
    Share,
}

/// Everything about a run but the policy.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) specs: &'a [EngineSpec],
    pub(crate) requests: &'a [Request],
    pub(crate) faults: &'a [Fault],
    /// Gateways that share the requests, at least one.
    pub(crate) gateways: usize,
    pub(crate) settings: &'a Settings,
    pub(crate) seed: u64,
    /// Flow control before the picker; only with one gateway.
    pub(crate) guests: Option<&'a Guests>,
    /// Plays every step as an event of its own. Slower, and the same to the nanosecond.
    pub(crate) is_stepwise: bool,
}

pub(crate) struct Simulation<'a> {
    policy: Policy,
    requests: &'a [Request],
    faults: &'a [Fault],
    settings: &'a Settings,
    seed: u64,
    events: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    /// Breaks ties: what was ordered first happens first.
    ordered: u64,
    endpoints: Vec<Endpoint>,
    gateways: Vec<Gateway>,
    tickets: Vec<Option<Ticket>>,
    progress: Vec<Progress>,
    last_token: Vec<Timestamp>,
    /// Under way, by gateway and endpoint.
    pages: Vec<Option<Page>>,
    open: usize,
    records: Vec<Record>,
    gaps: Gaps,
    window_tokens: u64,
    in_flight_at_deaths: usize,
    engine_events: Vec<EngineEvent>,
    decoded: Decoded,
    door: Option<Door<'a>>,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(scene: &Scene<'a>, policy: Policy) -> Self {
        let Scene { specs, requests, faults, gateways, settings, seed, guests, is_stepwise } =
            *scene;
        let engine = |(at, spec): (usize, &EngineSpec)| {
            Endpoint::new(spec.clone(), mix(mix(seed, 8), at as u64), is_stepwise)
        };
        let endpoints: Vec<_> = specs.iter().enumerate().map(engine).collect();
        let gateway = |at: usize| {
            let seed = if at == 0 { seed } else { mix(seed, at as u64) };
            let gateway = Gateway::new(policy, endpoints.len(), settings, seed);
            for (at, endpoint) in endpoints.iter().enumerate() {
                gateway.introduce(at, &endpoint.page.metrics);
            }
            gateway
        };
        let gateways: Vec<_> = (0..gateways.max(1)).map(gateway).collect();
        let progress = requests.iter().map(|request| Progress {
            prompt_tokens: request.prompt_tokens(),
            output_tokens: request.answer.tokens,
            ..Progress::default()
        });
        Self {
            progress: progress.collect(),
            records: requests.iter().map(Record::new).collect(),
            tickets: requests.iter().map(|_| None).collect(),
            last_token: vec![Timestamp::ZERO; requests.len()],
            pages: vec![None; gateways.len() * endpoints.len()],
            open: requests.len(),
            events: BinaryHeap::new(),
            ordered: 0,
            gaps: Gaps::default(),
            window_tokens: 0,
            in_flight_at_deaths: 0,
            engine_events: Vec::new(),
            decoded: Decoded::default(),
            door: guests.map(|guests| Door::new(guests, requests.len())),
            policy,
            requests,
            faults,
            settings,
            seed,
            endpoints,
            gateways,
        }
    }

    /// Plays until every request has ended.
    pub(crate) fn run(mut self) -> Run {
        let window = self.settings.window();
        if let Some(first) = self.requests.first() {
            self.order(first.at, Event::Arrival { request: 0 });
        }
        for at in 0..self.gateways.len() {
            let gateway = at as u16;
            for (endpoint, due) in self.gateways[at].first_scrapes().into_iter().enumerate() {
                self.order(due, Event::ScrapeBegin { gateway, endpoint: endpoint as u32 });
            }
        }
        self.order_sharing(Timestamp::ZERO);
        for (at, fault) in self.faults.iter().enumerate() {
            let (during, fault) = (fault.during(&window), at as u16);
            self.order(during.start, Event::Fault { fault, is_on: true });
            self.order(during.end, Event::Fault { fault, is_on: false });
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
            window,
            endpoints: self.endpoints.iter().map(books).collect(),
            records: self.records,
            gaps: self.gaps,
            window_tokens: self.window_tokens,
            in_flight_at_deaths: self.in_flight_at_deaths,
            waits: self.door.map(Door::into_waits),
            samples: self.gateways.iter().flat_map(Gateway::samples).copied().collect(),
        }
    }

    fn handle(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Arrival { request } => self.arrive(request, now),
            Event::Return { request } => self.knock(request, now),
            Event::Expiry => self.look_at_times(now),
            Event::Delivery { request, endpoint } => self.deliver(request, endpoint, now),
            Event::Entry { endpoint, life } => {
                if self.endpoints[endpoint as usize].life == life {
                    self.go_on(endpoint, now);
                }
            }
            Event::RunEnd { endpoint, life } => {
                let home = &self.endpoints[endpoint as usize];
                // A run that was cut ended earlier.
                if home.life == life && home.end == Some(now) {
                    self.end_run(endpoint, now);
                }
            }
            Event::FirstToken { request } => self.see_first_token(request, now),
            Event::End { request } => self.see_end(request, true, now),
            Event::Cut { request } => self.see_end(request, false, now),
            Event::Failed { request, failure } => self.fail(request, failure, now),
            Event::ScrapeBegin { gateway, endpoint } => self.begin_scrape(gateway, endpoint, now),
            Event::ScrapePage { gateway, endpoint } => self.render_page(gateway, endpoint, now),
            Event::ScrapeEnd { gateway, endpoint } => self.end_scrape(gateway, endpoint, now),
            Event::Fault { fault, is_on } => self.turn_fault(fault, is_on, now),
            Event::Share => self.share(now),
        }
    }

    /// Which gateway a request comes to: any, as a load balancer before them does it.
    fn gateway_of(&self, request: u32) -> u16 {
        let drawn = mix(mix(self.seed, 5), u64::from(request));
        (drawn % self.gateways.len() as u64) as u16
    }

    fn turn_fault(&mut self, fault: u16, is_on: bool, now: Timestamp) {
        let (faults, endpoints) = (self.faults, self.endpoints.len());
        let fault = &faults[usize::from(fault)];
        for endpoint in fault.endpoints().filter(|at| *at < endpoints) {
            if matches!(fault.kind, FaultKind::Dead | FaultKind::Slow { .. }) {
                self.settle(endpoint as u32, now);
            }
            let home = &mut self.endpoints[endpoint];
            home.condition.set(fault.kind, is_on);
            if fault.kind == FaultKind::Dead && is_on {
                // Those still on their way to it have not been seen by anyone.
                let Bereaved { waiting, answering } = home.die(now);
                self.in_flight_at_deaths += waiting.len() + answering.len();
                let seen = now + self.settings.network;
                for request in waiting {
                    self.order(seen, Event::Failed { request, failure: Failure::Closed });
                }
                for request in answering {
                    self.order(seen, Event::Cut { request });
                }
            }
        }
    }

    /// Books the tokens of a run so far; after the step under way another begins.
    fn settle(&mut self, endpoint: u32, now: Timestamp) {
        let mut decoded = std::mem::take(&mut self.decoded);
        let home = &mut self.endpoints[endpoint as usize];
        let (moved, life) = (home.settle(now, &mut decoded), home.life);
        self.note_decoded(&decoded);
        self.decoded = decoded;
        if let Some(end) = moved {
            self.order(end, Event::RunEnd { endpoint, life });
        }
    }

    fn deliver(&mut self, request: u32, endpoint: u32, now: Timestamp) {
        let asked = &self.requests[request as usize];
        let home = &mut self.endpoints[endpoint as usize];
        let condition = &home.condition;
        let attempt = u64::from(self.records[request as usize].attempts);
        let drawn = mix(mix(mix(self.seed, 6), u64::from(request)), attempt);
        let failure = if condition.is_dead {
            Some(Failure::Connect)
        } else if condition.is_shedding {
            Some(Failure::Shed)
        } else if (drawn as f64) < condition.resets * u64::MAX as f64 {
            Some(Failure::Closed)
        } else {
            let spec = request_spec(request, asked, home.engine.spec().block_size, now);
            home.engine.submit(spec).is_err().then_some(Failure::Refused)
        };
        if let Some(failure) = failure {
            let seen = now + self.settings.network;
            self.order(seen, Event::Failed { request, failure });
            return;
        }
        if let Some(pending) = home.pending_mut(request) {
            pending.is_delivered = true;
        }
        home.count_inside(now);
        if let Some(end) = home.moved_end() {
            let life = home.life;
            self.order(end, Event::RunEnd { endpoint, life });
        }
        self.go_on(endpoint, now);
    }

    /// Begins a run, or orders to be woken when there will be something to do.
    fn go_on(&mut self, endpoint: u32, now: Timestamp) {
        let home = &mut self.endpoints[endpoint as usize];
        if home.end.is_some() || home.condition.is_dead {
            return;
        }
        let life = home.life;
        if let Some(end) = home.begin(now) {
            self.order(end, Event::RunEnd { endpoint, life });
        } else if let Some(ready) = home.engine.next_ready()
            && ready > now
            && home.entry_at != Some(ready)
        {
            home.entry_at = Some(ready);
            self.order(ready, Event::Entry { endpoint, life });
        }
    }

    fn order(&mut self, at: Timestamp, event: Event) {
        self.ordered += 1;
        self.events.push(Reverse((at, self.ordered, event)));
    }
}

/// The request as the engine gets it.
fn request_spec(id: u32, request: &Request, block_size: u32, now: Timestamp) -> RequestSpec {
    let prompt_tokens = request.prompt_tokens();
    let mut hashes = Vec::new();
    request.whole_hashes(block_size, &mut hashes);
    let named = |hashes: &[u64]| hashes.iter().map(|hash| sim::engine::BlockHash(*hash)).collect();
    let (prompt, answer) = hashes.split_at((prompt_tokens / block_size) as usize);
    RequestSpec {
        id: RequestId(u64::from(id)),
        prompt_blocks: named(prompt),
        answer_blocks: named(answer),
        prompt_tokens,
        output_tokens: request.answer.tokens,
        output_tokens_max: request.answer.tokens,
        adapter: request.adapter,
        arrived: now,
    }
}

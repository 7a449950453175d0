//! One simulated endpoint: the engine, what its metrics page shows, and the truth that only a
//! clairvoyant may use.

mod adapters;

use sim::engine::{Decoded, Engine, EngineSpec, Event, Gauges, RunView, StepWork};
use types::{AdapterId, EndpointMetrics, EngineKind, LoraMetrics, Ratio, Timestamp};

use crate::fault::Condition;
use adapters::HostAdapters;

/// An engine in virtual time.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) engine: Engine,
    pub(crate) condition: Condition,
    /// Counts engines: a step of one that died never ends.
    pub(crate) life: u32,
    /// What a scrape finds. Engines renew their gauges once a step, so after a long prefill they are
    /// as old as the step.
    pub(crate) page: Page,
    /// When the steps under way end, one or a run of them.
    pub(crate) end: Option<Timestamp>,
    /// Prompt tokens that the step under way computes.
    pub(crate) step_prompt_tokens: u32,
    /// For which instant a wake-up was ordered.
    pub(crate) entry_at: Option<Timestamp>,
    /// Sent there, first token not yet out; in order of sending.
    pub(crate) pending: Vec<Pending>,
    /// First token out, not finished.
    pub(crate) decoding: Vec<u32>,
    /// Plays step by step even where runs would do.
    is_stepwise: bool,
    host: HostAdapters,
    occupied: Occupied,
}

/// A metrics page, and what is on others' pages only.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) metrics: EndpointMetrics,
    /// Tokens generated since the engine's start.
    pub(crate) generated: u64,
}

/// A request that waits for its first token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) request: u32,
    pub(crate) prompt_tokens: u32,
    /// Prompt tokens still to be computed.
    pub(crate) left: u32,
    /// The engine has it.
    pub(crate) is_delivered: bool,
    pub(crate) is_admitted: bool,
}

/// Time integral of the number of requests inside.
#[derive(Clone, Copy, Debug, Default)]
struct Occupied {
    since: Timestamp,
    count: usize,
    request_seconds: f64,
}

/// Whom the death of an endpoint hits.
#[derive(Debug, Default)]
pub(crate) struct Bereaved {
    /// No token of the answer was out.
    pub(crate) waiting: Vec<u32>,
    pub(crate) answering: Vec<u32>,
}

impl Endpoint {
    pub(crate) fn new(spec: EngineSpec, seed: u64, is_stepwise: bool) -> Self {
        let mut endpoint = Self {
            is_stepwise,
            host: HostAdapters::new(spec.lora),
            engine: Engine::new(spec, seed),
            condition: Condition::default(),
            life: 0,
            page: Page::default(),
            end: None,
            step_prompt_tokens: 0,
            entry_at: None,
            pending: Vec::new(),
            decoding: Vec::new(),
            occupied: Occupied::default(),
        };
        endpoint.renew_page();
        endpoint
    }

    /// Begins a run of steps if there is one to begin. Gives its end.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.end.is_some() || self.condition.is_dead {
            return None;
        }
        let (work, end) = if self.is_stepwise || self.condition.slowness != 1.0 {
            let step = self.engine.step(now)?;
            (step.work, now + step.duration.mul_f64(self.condition.slowness))
        } else {
            let run = self.engine.begin_run(now, Timestamp(u64::MAX))?;
            (run.work, run.end)
        };
        self.step_prompt_tokens = work.tokens - work.decodes;
        self.end = Some(end);
        self.end
    }

    /// A request came, which may have cut the run. Gives its new end.
    pub(crate) fn moved_end(&mut self) -> Option<Timestamp> {
        let end = self.engine.run_end()?;
        (self.end.replace(end) != Some(end)).then_some(end)
    }

    /// Ends what is under way. `decoded` receives the tokens of all steps but the last, `events` what
    /// the last one brought.
    pub(crate) fn finish(
        &mut self,
        now: Timestamp,
        decoded: &mut Decoded,
        events: &mut Vec<Event>,
    ) {
        self.end = None;
        if self.engine.run_end().is_some() {
            self.engine.finish_run(decoded, events);
        } else {
            decoded.requests.clear();
            decoded.ends.clear();
            self.engine.finish_step(now, events);
        }
    }

    /// Gives out the tokens of the steps that are over; the step under way becomes the last of its
    /// run. Gives its end.
    pub(crate) fn settle(&mut self, now: Timestamp, decoded: &mut Decoded) -> Option<Timestamp> {
        self.page = self.current_page(now);
        self.engine.cut(now, decoded);
        self.moved_end()
    }

    /// The run under way as it is now.
    pub(crate) fn view(&self, now: Timestamp) -> Option<RunView> {
        self.engine.run_at(now)
    }

    /// Seconds that such a step takes with the adapters that run now.
    pub(crate) fn step_seconds(&self, work: &StepWork) -> f64 {
        let spec = self.engine.spec();
        let running = self.page.metrics.lora.as_ref().map_or(0, |lora| lora.running.len());
        let work = StepWork { adapters: running as u32, ..*work };
        spec.costs.step_ms(&work, spec.lora.step_factor) * 1e-3 * self.condition.slowness
    }

    /// Seconds until this adapter is on the GPU.
    ///
    /// * `slot_seconds`: until a slot is free where all are in use.
    pub(crate) fn adapter_seconds(
        &self,
        adapter: AdapterId,
        slot_seconds: impl FnOnce() -> f64,
    ) -> f64 {
        let resident = self.engine.resident_adapters();
        if resident.contains(&adapter) {
            return 0.0;
        }
        let slots = self.engine.spec().lora.gpu_slots as usize;
        let lora = self.page.metrics.lora.as_ref();
        let is_in_use = |other: &AdapterId| lora.is_some_and(|lora| lora.running.contains(other));
        let are_all_in_use = resident.len() >= slots && resident.iter().all(is_in_use);
        self.host.load_seconds(adapter) + if are_all_in_use { slot_seconds() } else { 0.0 }
    }

    /// A request with this adapter came into the running batch.
    pub(crate) fn note_adapter(&mut self, adapter: AdapterId) {
        self.host.touch(adapter);
    }

    /// Notes how far the step that ends now brought the prompts: first come first served, as the
    /// engine's own scheduler does it.
    pub(crate) fn advance_prompts(&mut self) {
        let mut computed = std::mem::take(&mut self.step_prompt_tokens);
        for pending in &mut self.pending {
            if computed == 0 {
                return;
            }
            let part = pending.left.min(computed);
            pending.left -= part;
            computed -= part;
        }
    }

    pub(crate) fn pending_mut(&mut self, request: u32) -> Option<&mut Pending> {
        self.pending.iter_mut().find(|pending| pending.request == request)
    }

    pub(crate) fn drop_pending(&mut self, request: u32) {
        if let Some(at) = self.pending.iter().position(|pending| pending.request == request) {
            self.pending.remove(at);
        }
    }

    pub(crate) fn renew_page(&mut self) {
        let (spec, gauges) = (self.engine.spec(), self.engine.gauges());
        let lora = (spec.lora.gpu_slots > 0).then(|| {
            let stats = self.engine.stats();
            let (running, waiting) = (stats.running_adapters, stats.waiting_adapters);
            LoraMetrics { max: spec.lora.gpu_slots, running, waiting }
        });
        let metrics = EndpointMetrics {
            engine: EngineKind::Vllm,
            waiting: Some(gauges.waiting()),
            waiting_deferred: Some(gauges.waiting_deferred),
            running: Some(gauges.running),
            kv_usage: Ratio::new(gauges.kv_usage()).ok(),
            block_size_tokens: Some(spec.block_size),
            block_count: Some(u64::from(spec.block_count)),
            lora,
            ..EndpointMetrics::default()
        };
        self.page = Page { metrics, generated: self.engine.stats().generation_tokens };
    }

    /// The page as it is rendered now.
    pub(crate) fn rendered(&self, now: Timestamp) -> Page {
        let mut page = self.current_page(now);
        if self.condition.is_frozen {
            page.metrics.waiting = Some(0);
            page.metrics.running = Some(0);
            page.metrics.kv_usage = Ratio::new(0.0).ok();
        }
        page
    }

    /// The page as of the last step's end: within a run nothing moves but blocks and tokens.
    fn current_page(&self, now: Timestamp) -> Page {
        let mut page = self.page.clone();
        if let Some(view) = self.view(now)
            && let Some(blocks_used) = view.blocks_used_at_last_end
        {
            let gauges = Gauges { blocks_used, ..self.engine.gauges() };
            page.metrics.waiting = Some(gauges.waiting());
            page.metrics.running = Some(gauges.running);
            page.metrics.kv_usage = Ratio::new(gauges.kv_usage()).ok();
            page.generated += u64::from(view.steps_ended) * u64::from(gauges.running);
        }
        page
    }

    /// The server is gone; a new engine stands ready for its return.
    pub(crate) fn die(&mut self, now: Timestamp) -> Bereaved {
        self.life += 1;
        let spec = self.engine.spec().clone();
        self.host = HostAdapters::new(spec.lora);
        self.engine = Engine::new(spec, u64::from(self.life) << 32);
        self.end = None;
        self.step_prompt_tokens = 0;
        self.entry_at = None;
        let waiting = self.pending.extract_if(.., |pending| pending.is_delivered);
        let bereaved = Bereaved {
            waiting: waiting.map(|pending| pending.request).collect(),
            answering: std::mem::take(&mut self.decoding),
        };
        self.count_inside(now);
        self.renew_page();
        bereaved
    }

    /// To be called after each change of the number of requests inside.
    pub(crate) fn count_inside(&mut self, now: Timestamp) {
        let inside = &mut self.occupied;
        inside.request_seconds += inside.count as f64 * now.since(inside.since).as_secs_f64();
        inside.since = now;
        inside.count = self.engine.requests();
    }

    /// Σ over time of the requests inside, in request-seconds.
    pub(crate) fn request_seconds(&self) -> f64 {
        self.occupied.request_seconds
    }
}

//! One simulated endpoint: the engine, what its metrics page shows, and the truth that only a
//! clairvoyant may use.

use sim::engine::{Engine, EngineSpec};
use types::{EndpointMetrics, EngineKind, Ratio, Timestamp};

/// An engine in virtual time.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) engine: Engine,
    /// What a scrape finds. Engines renew their gauges once a step, so after a long prefill they are
    /// as old as the step.
    pub(crate) page: EndpointMetrics,
    /// When the step under way ends.
    pub(crate) step_end: Option<Timestamp>,
    /// Prompt tokens that the step under way computes.
    pub(crate) step_prompt_tokens: u32,
    /// For which instant a wake-up was ordered.
    pub(crate) entry_at: Option<Timestamp>,
    /// Sent there, first token not yet out; in order of sending.
    pub(crate) pending: Vec<Pending>,
    /// First token out, not finished.
    pub(crate) decoding: Vec<u32>,
    occupied: Occupied,
}

/// A request that waits for its first token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) request: u32,
    pub(crate) prompt_tokens: u32,
    /// Prompt tokens still to be computed.
    pub(crate) left: u32,
    pub(crate) is_admitted: bool,
}

/// Time integral of the number of requests inside.
#[derive(Clone, Copy, Debug, Default)]
struct Occupied {
    since: Timestamp,
    count: usize,
    request_seconds: f64,
}

impl Endpoint {
    pub(crate) fn new(spec: EngineSpec, seed: u64) -> Self {
        let mut endpoint = Self {
            engine: Engine::new(spec, seed),
            page: EndpointMetrics::default(),
            step_end: None,
            step_prompt_tokens: 0,
            entry_at: None,
            pending: Vec::new(),
            decoding: Vec::new(),
            occupied: Occupied::default(),
        };
        endpoint.renew_page();
        endpoint
    }

    /// Begins a step if there is one to begin. Gives its end.
    pub(crate) fn begin_step(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.step_end.is_some() {
            return None;
        }
        let step = self.engine.step(now)?;
        self.step_prompt_tokens = step.work.tokens - step.work.decodes;
        self.step_end = Some(now + step.duration);
        self.step_end
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

    pub(crate) fn renew_page(&mut self) {
        let (spec, stats) = (self.engine.spec(), self.engine.stats());
        self.page = EndpointMetrics {
            engine: EngineKind::Vllm,
            waiting: Some(stats.waiting()),
            running: Some(stats.running),
            kv_usage: Ratio::new(stats.kv_usage()).ok(),
            block_size_tokens: Some(spec.block_size),
            block_count: Some(u64::from(spec.block_count)),
            ..EndpointMetrics::default()
        };
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

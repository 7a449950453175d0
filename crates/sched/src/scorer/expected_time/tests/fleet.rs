//! Servers that compute one prompt after another, in virtual time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{EndpointId, EndpointMetrics, Ratio, Slot, Timestamp};

use crate::{EndpointState, Forecast, Prices, Profile, RequestView, Reservation, Scratch};

/// Before a prompt's turn or after it; occupies no server.
const BASE_MS: f64 = 20.0;
const SCRAPE_MS: f64 = 50.0;
/// Learned speeds as they are.
pub(super) const RIGHT: [f32; 2] = [1.0, 1.0];

pub(super) struct Fleet {
    servers: Vec<Server>,
    profile: Profile,
    /// What the learned speeds of the fast and the slow servers are multiplied by.
    pub(super) error: [f32; 2],
    /// Relative errors of predictions.
    pub(super) errors: Vec<f64>,
    now_ms: f64,
    next_scrape_ms: f64,
    scratch: Scratch,
    rng: Pcg64Mcg,
}

struct Server {
    state: Arc<EndpointState>,
    ms_per_token: f64,
    queue: VecDeque<(f64, Reservation)>,
    free_ms: f64,
}

fn at(ms: f64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs_f64(ms / 1000.0)
}

impl Fleet {
    pub(super) fn new(ms_per_token: &[f64], profile: Profile) -> Self {
        let mut fleet = Self {
            servers: Vec::new(),
            profile,
            error: RIGHT,
            errors: Vec::new(),
            now_ms: 0.0,
            next_scrape_ms: 0.0,
            scratch: Scratch::default(),
            rng: Pcg64Mcg::seed_from_u64(11),
        };
        ms_per_token.iter().for_each(|speed| fleet.join(*speed));
        fleet
    }

    pub(super) fn join(&mut self, ms_per_token: f64) {
        let n = self.servers.len() as u16;
        let state = Arc::new(EndpointState::new(EndpointId(u32::from(n)), Slot(n)));
        let server = Server { state, ms_per_token, queue: VecDeque::new(), free_ms: 0.0 };
        self.servers.push(server);
    }

    pub(super) fn now_ms(&self) -> f64 {
        self.now_ms
    }

    /// Lets everything end.
    pub(super) fn settle(&mut self) {
        let last = self.servers.iter().map(|server| server.free_ms).fold(self.now_ms, f64::max);
        self.advance(last + 1000.0);
    }

    /// Poisson arrivals at this share of what the servers can do together; mean time to the first
    /// token, milliseconds. The first tenth warms up.
    pub(super) fn run(&mut self, load: f64, requests: usize, seed: u64) -> f64 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let capacity: f64 =
            self.servers.iter().map(|server| 1.0 / (1000.0 * server.ms_per_token)).sum();
        let (mut next_ms, mut sum) = (self.now_ms, 0.0);
        for n in 0..requests {
            next_ms += -(1.0 - rng.random::<f64>()).ln() / (load * capacity);
            let (picked, predicted) = self.send(next_ms, rng.random_range(200..1800));
            let ttft = self.servers[picked].free_ms + BASE_MS - next_ms;
            self.errors.push((f64::from(predicted) / ttft - 1.0).abs());
            sum += if n >= requests / 10 { ttft } else { 0.0 };
        }
        sum / (requests - requests / 10) as f64
    }

    /// The server that got the request, and the predicted time to its first token.
    pub(super) fn send(&mut self, now_ms: f64, tokens: u32) -> (usize, f32) {
        self.advance(now_ms);
        let now = at(now_ms);
        let request = RequestView { now, prompt_tokens: tokens, ..RequestView::default() };
        let mut candidates: Vec<_> =
            self.servers.iter().map(|server| server.state.observe(None, now)).collect();
        for (candidate, server) in candidates.iter_mut().zip(&self.servers) {
            let error = self.error[usize::from(server.ms_per_token > 0.1)];
            candidate.speed.base_ms *= error;
            candidate.speed.prefill_ms_per_token *= error;
        }
        let order =
            self.profile.pick(&request, &mut candidates, &mut self.scratch, &mut self.rng, None);
        let picked = &candidates[order.unwrap()[0] as usize];
        let predicted = Forecast::new(Prices::default(), &request).ttft_ms(picked);
        let picked = picked.slot.0 as usize;
        let server = &mut self.servers[picked];
        let reservation = server.state.reserve(tokens, now);
        let work_ms = f64::from(tokens) * server.ms_per_token;
        server.free_ms = server.free_ms.max(now_ms) + work_ms;
        server.queue.push_back((server.free_ms + BASE_MS, reservation));
        (picked, predicted)
    }

    /// Answers and scrapes up to an instant, in order.
    fn advance(&mut self, until_ms: f64) {
        while self.next_scrape_ms <= until_ms {
            let scrape_ms = self.next_scrape_ms;
            self.answer(scrape_ms);
            for server in &self.servers {
                let queued = server.queue.len() as u32;
                let metrics = EndpointMetrics {
                    waiting: Some(queued.saturating_sub(1)),
                    running: Some(queued.min(1)),
                    kv_usage: Some(Ratio::ZERO),
                    ..EndpointMetrics::default()
                };
                server.state.record_scrape(&metrics, at(scrape_ms), Duration::from_millis(500));
            }
            self.next_scrape_ms += SCRAPE_MS;
        }
        self.answer(until_ms);
        self.now_ms = until_ms;
    }

    fn answer(&mut self, until_ms: f64) {
        for server in &mut self.servers {
            while server.queue.front().is_some_and(|(done_ms, _)| *done_ms <= until_ms) {
                if let Some((done_ms, mut reservation)) = server.queue.pop_front() {
                    reservation.first_token(at(done_ms));
                }
            }
        }
    }
}

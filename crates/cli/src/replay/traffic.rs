//! From a recording to the traffic and the fleet of one pool.

use std::collections::BTreeMap;

use lab::{LearnedEngine, Request, Segment};
use telemetry::recording::{EndpointState, PoolState, Request as Recorded};
use types::Timestamp;

use super::read::Recording;

/// Fewest requests of which a percentile is made.
const REQUESTS_MIN: usize = 50;
/// Trust in a learned speed from which on it is taken as it is.
const LEARNED_TRUST: f32 = 0.5;

/// Why a recording gives nothing to play.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrafficError {
    #[error("there is no pool `{0}` in the recording; it has {1}")]
    NoPool(String, String),
    #[error("the recording tells of no pool with endpoints")]
    NoFleet,
    #[error("only {0} requests to pool `{1}`: too few for a percentile, at least 50 are needed")]
    TooFew(usize, String),
}

/// One pool's part of a recording.
pub(super) struct Traffic {
    pub(super) pool: PoolState,
    pub(super) engines: Vec<LearnedEngine>,
    /// In order of arrival.
    pub(super) requests: Vec<Request>,
    /// What was recorded of each.
    pub(super) recorded: Vec<Recorded>,
    pub(super) notes: Vec<String>,
}

impl Traffic {
    /// * `pool`: by name; `None`: the one with the most requests.
    pub(super) fn of(recording: &Recording, pool: Option<&str>) -> Result<Self, TrafficError> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for request in &recording.requests {
            *counts.entry(&request.pool).or_default() += 1;
        }
        let busiest = counts.iter().max_by_key(|(_, count)| **count).map(|(name, _)| *name);
        let name = pool.or(busiest).ok_or(TrafficError::NoFleet)?;
        if !counts.contains_key(name) {
            let all: Vec<&str> = counts.into_keys().collect();
            return Err(TrafficError::NoPool(name.to_owned(), all.join(", ")));
        }
        let mut notes = Vec::new();
        if pool.is_none() && counts.len() > 1 {
            notes.push(format!("{} pools were recorded; this is the busiest", counts.len()));
        }
        let mut recorded: Vec<Recorded> = recording
            .requests
            .iter()
            .filter(|request| request.pool == name && is_work(request))
            .cloned()
            .collect();
        recorded.sort_by_key(|request| request.at_us);
        if recorded.len() < REQUESTS_MIN {
            return Err(TrafficError::TooFew(recorded.len(), name.to_owned()));
        }
        let (pool, engines) = fleet(recording, name, &recorded, &mut notes)?;
        let requests = requests(&recorded, recording.header.block_tokens, &mut notes);
        Ok(Self { pool, engines, requests, recorded, notes })
    }
}

/// Whether an engine had, or without a full pool would have had, something to do.
fn is_work(request: &Recorded) -> bool {
    request.endpoint.is_some() || request.outcome == "shed"
}

/// The pool as it last stood, with all endpoints that were ever there, each with its last speed.
fn fleet(
    recording: &Recording,
    name: &str,
    recorded: &[Recorded],
    notes: &mut Vec<String>,
) -> Result<(PoolState, Vec<LearnedEngine>), TrafficError> {
    let seen = || recording.states.iter().flat_map(|state| &state.pools).filter(|p| p.name == name);
    let last = seen().next_back().cloned().ok_or(TrafficError::NoFleet)?;
    let changed = seen().any(|p| p.policy != last.policy || p.scorers != last.scorers);
    if changed {
        notes.push("the policy was changed while recording; the last one counts".to_owned());
    }
    let mut endpoints: BTreeMap<u32, &EndpointState> = BTreeMap::new();
    for endpoint in seen().flat_map(|pool| &pool.endpoints) {
        endpoints.insert(endpoint.id, endpoint);
    }
    if endpoints.is_empty() {
        return Err(TrafficError::NoFleet);
    }
    let came_or_went = endpoints.len() != last.endpoints.len()
        || seen().any(|pool| pool.endpoints.len() != endpoints.len());
    if came_or_went {
        notes.push("endpoints came or went; the replay has all of them all the time".to_owned());
    }
    let mut speeds: Vec<lab::Speed> = endpoints.values().map(|one| speed(&one.speed)).collect();
    let unlearned = stand_in(&mut speeds);
    if unlearned > 0 {
        notes.push(format!(
            "the speed of {unlearned} of {} endpoints was hardly learned; the others' mean stands in",
            speeds.len()
        ));
    }
    let silent = endpoints.values().filter(|one| one.block_count.is_none()).count();
    if silent > 0 {
        notes.push(format!("{silent} endpoints do not say how much they cache: a million tokens"));
    }
    let ratio = token_ratio(recorded);
    let engine = |(state, speed): (&&EndpointState, &lab::Speed)| LearnedEngine {
        speed: *speed,
        block_size_tokens: state.block_size_tokens,
        // Prompts are counted as the gateway estimates them, so is the memory.
        block_count: state.block_count.map(|count| (count as f64 / ratio) as u64),
        running_max: state.running_max,
    };
    Ok((last, endpoints.values().zip(&speeds).map(engine).collect()))
}

fn speed(recorded: &telemetry::recording::Speed) -> lab::Speed {
    lab::Speed {
        base_ms: recorded.base_ms,
        prefill_ms_per_token: recorded.prefill_ms_per_token,
        prefill_samples: recorded.prefill_samples,
        step_ms: recorded.step_ms,
        step_samples: recorded.step_samples,
        output_tokens: recorded.output_tokens,
        ..lab::Speed::default()
    }
}

/// Gives those that have hardly learned the geometric mean of those that have, and counts them.
/// Where nobody has learned, all keep what the gateway assumed.
fn stand_in(speeds: &mut [lab::Speed]) -> usize {
    let is_learned =
        |speed: &lab::Speed| speed.prefill_trust().min(speed.step_trust()) >= LEARNED_TRUST;
    let learned: Vec<lab::Speed> = speeds.iter().copied().filter(is_learned).collect();
    let mean = |of: fn(&lab::Speed) -> f32| {
        let logs: f32 = learned.iter().map(|speed| of(speed).max(1e-4).ln()).sum();
        (logs / learned.len().max(1) as f32).exp()
    };
    let mut unlearned = 0;
    for speed in speeds.iter_mut().filter(|speed| !is_learned(speed)) {
        unlearned += 1;
        if !learned.is_empty() {
            speed.base_ms = mean(|speed| speed.base_ms);
            speed.prefill_ms_per_token = mean(|speed| speed.prefill_ms_per_token);
            speed.step_ms = mean(|speed| speed.step_ms);
        }
    }
    unlearned
}

/// Reported over estimated prompt tokens, where both are known; between 1/8 and 8.
fn token_ratio(recorded: &[Recorded]) -> f64 {
    let (mut reported, mut estimated) = (0.0, 0.0);
    for request in recorded {
        if let Some(tokens) = request.prompt_tokens_reported {
            reported += tokens as f64;
            estimated += f64::from(request.prompt_tokens);
        }
    }
    if reported > 0.0 && estimated > 0.0 { (reported / estimated).clamp(0.125, 8.0) } else { 1.0 }
}

fn requests(recorded: &[Recorded], block_tokens: u32, notes: &mut Vec<String>) -> Vec<Request> {
    let known = recorded.iter().filter_map(|request| request.output_tokens);
    let (count, sum) = known.fold((0_u64, 0_u64), |(count, sum), tokens| (count + 1, sum + tokens));
    let usual = sum.checked_div(count).unwrap_or(1);
    let unknown = recorded.len() as u64 - count;
    if unknown > 0 {
        notes.push(format!(
            "{unknown} requests do not say how long their answer was: {usual} tokens"
        ));
    }
    let one = |(at, request): (usize, &Recorded)| {
        let answer = request.output_tokens.unwrap_or(usual).max(1);
        Request {
            at: Timestamp(request.at_us.saturating_mul(1000)),
            prompt: prompt(request, block_tokens, own_content(at, 0)),
            answer: Segment {
                content: own_content(at, 1),
                tokens: u32::try_from(answer).unwrap_or(u32::MAX),
            },
            adapter: None,
        }
    };
    recorded.iter().enumerate().map(one).collect()
}

/// Contents that no block number takes: those count up from 0.
fn own_content(at: usize, which: u64) -> u64 {
    u64::MAX - 2 * at as u64 - which
}

/// A run of block numbers begins where the block before it has not the number before, which is so
/// in every prompt that it stands in. So a run is a segment, cut short or not.
fn prompt(request: &Recorded, block_tokens: u32, own: u64) -> Box<[Segment]> {
    let mut left = request.prompt_tokens.max(1);
    let mut segments = Vec::with_capacity(request.blocks.len() + 1);
    for (first, blocks) in &request.blocks {
        let tokens = blocks.saturating_mul(block_tokens).min(left);
        segments.push(Segment { content: *first, tokens });
        left -= tokens;
    }
    // What fills no block is taken for new.
    segments.push(Segment { content: own, tokens: left });
    segments.retain(|segment| segment.tokens > 0);
    segments.into()
}

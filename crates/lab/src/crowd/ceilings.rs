//! How full an engine's own queue should be kept: what stands there can no longer be reordered, but an
//! engine without anybody waiting may idle until the next one comes.

use std::fmt;
use std::time::Duration;

use flow::Config;
use sched::saturation;
use serde::Serialize;
use types::Priority;

use super::guests::Patience;
use super::play::{Class, Crowd, Played};
use crate::arrivals::Arrivals;
use crate::lengths::{AZURE_ANSWER, AZURE_PROMPT, Lengths};
use crate::plan::PlanError;

/// What an endpoint may have before it counts as full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ceiling {
    None,
    /// Requests that wait in it.
    Waiting(u32),
    /// Requests of ours in it, running or not.
    InFlight(u32),
    /// Two that wait in it; for flows beyond their part and lower bands a first token expected to take so
    /// many hundredths of what it takes on idle endpoints. At 200: what the gateway does by default.
    Reserve(u32),
}

/// Ceilings that are compared.
pub const CEILINGS: [Ceiling; 14] = [
    Ceiling::Reserve(150),
    Ceiling::Reserve(200),
    Ceiling::Reserve(300),
    Ceiling::Waiting(1),
    Ceiling::Waiting(2),
    Ceiling::Waiting(4),
    Ceiling::Waiting(8),
    Ceiling::Waiting(16),
    Ceiling::Waiting(32),
    Ceiling::None,
    Ceiling::InFlight(64),
    Ceiling::InFlight(96),
    Ceiling::InFlight(128),
    Ceiling::InFlight(192),
];

/// Kinds of traffic that they are compared on, each at 1.2 times what the fleet can do.
pub const TRAFFIC: [&str; 3] = ["conversations", "short-answers", "long-answers"];

/// One ceiling under one kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingRow {
    pub traffic: &'static str,
    pub ceiling: String,
    pub output_tokens_per_second: f64,
    /// Share of all requests that were answered in full with a first token within a second.
    pub goodput: f64,
    pub critical_ttft_p50_ms: f64,
    pub critical_ttft_p99_ms: f64,
    /// Requests that waited in an engine, P50 and P99.9 over its steps.
    pub engine_queue_p50: u32,
    pub engine_queue_p999: u32,
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Waiting(requests) => write!(f, "{requests} waiting"),
            Self::InFlight(requests) => write!(f, "{requests} in flight"),
            Self::Reserve(hundredths) => {
                write!(f, "2 waiting, reserve {}.{:02}", hundredths / 100, hundredths % 100)
            }
        }
    }
}

impl Ceiling {
    pub(super) fn saturation(self) -> saturation::Config {
        // Never reached.
        const NONE: u32 = 1_000_000;
        let (queue_depth, in_flight, reserve) = match self {
            Self::None => (NONE, None, None),
            Self::Waiting(requests) => (requests, None, None),
            Self::InFlight(requests) => (NONE, Some(requests), None),
            Self::Reserve(hundredths) => {
                let stretch = hundredths as f32 / 100.0;
                (2, None, Some(saturation::Reserve { stretch, ..saturation::Reserve::default() }))
            }
        };
        saturation::Config { queue_depth, in_flight, reserve, ..saturation::Config::default() }
    }
}

/// Critical requests are a fifth of what the fleet can do, Standard ones all of it.
fn crowd(traffic: &str, ceiling: Ceiling, duration: Duration) -> Crowd {
    let (prompt, answer) = match traffic {
        "short-answers" => (Lengths::Fixed(2048), Lengths::Fixed(28)),
        "long-answers" => {
            let lengths = |median, max| Lengths::LogNormal { median, sigma: 0.6, min: 32, max };
            (lengths(400.0, 4000), lengths(700.0, 4000))
        }
        _ => (AZURE_PROMPT, AZURE_ANSWER),
    };
    let class = |flow, priority, load, flows| Class {
        flow,
        flows,
        priority,
        load,
        deadline: None,
        prompt,
        answer,
        arrivals: Arrivals::Poisson,
        patience: Patience::GivesUp,
    };
    Crowd {
        hardware: "llama-3.1-8b/h100",
        endpoints: 4,
        classes: vec![
            class("critical", Priority::CRITICAL, 0.2, 1),
            class("standard", Priority::STANDARD, 1.0, 4),
        ],
        config: Config::default(),
        saturation: ceiling.saturation(),
        duration,
    }
}

/// * `duration`: what counts, after a quarter of it to warm up; four times as long for long answers.
pub fn row(
    traffic: &'static str,
    ceiling: Ceiling,
    duration: Duration,
    seed: u64,
) -> Result<CeilingRow, PlanError> {
    let duration = if traffic == "long-answers" { duration * 4 } else { duration };
    let crowd = crowd(traffic, ceiling, duration);
    let played = crowd.play(seed)?;
    let critical = played.ttft(0);
    let waits = played.run.waits.as_ref();
    let engine_queue = |share: f64| waits.map_or(0, |waits| waits.engine_queue(share));
    Ok(CeilingRow {
        traffic,
        ceiling: ceiling.to_string(),
        output_tokens_per_second: played.output_tokens_per_second().round(),
        goodput: goodput(&played),
        critical_ttft_p50_ms: critical.at(0.5),
        critical_ttft_p99_ms: critical.at(0.99),
        engine_queue_p50: engine_queue(0.5),
        engine_queue_p999: engine_queue(0.999),
    })
}

fn goodput(played: &Played) -> f64 {
    let is_good = |ttft: Option<Duration>| ttft.is_some_and(|ttft| ttft <= Duration::from_secs(1));
    let counted = played.run.counted().count().max(1);
    let good = played.run.counted().filter(|one| one.finished.is_some() && is_good(one.ttft()));
    (good.count() as f64 / counted as f64 * 1e4).round() / 1e4
}

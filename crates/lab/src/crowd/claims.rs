//! What is claimed of flow control, and the runs that show it or do not.

mod deadlines;
mod priorities;
mod returns;
mod shares;

use std::time::Duration;

use flow::Config;
use serde::Serialize;
use types::Priority;

use super::ceilings::Ceiling;
use super::guests::Patience;
use super::play::{Class, Crowd};
use crate::arrivals::Arrivals;
use crate::lengths::{AZURE_ANSWER, AZURE_PROMPT};
use crate::plan::PlanError;

/// How long the runs are, and when an engine is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// What counts, after a quarter of it to warm up.
    pub duration: Duration,
    pub ceiling: Ceiling,
    pub seed: u64,
}

/// A claim with what was measured of it under one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    pub name: &'static str,
    pub says: &'static str,
    pub measured: Vec<Measured>,
    pub is_met: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub what: &'static str,
    pub value: f64,
    pub unit: &'static str,
}

/// Plays what shows a claim.
pub type Play = fn(&Trial) -> Result<Claim, PlanError>;

/// All claims, in the order of the documentation; each is a few runs.
pub const CLAIMS: [(&str, Play); 10] = [
    ("noisy-neighbour-light", shares::light),
    ("noisy-neighbour", shares::usual),
    ("noisy-neighbour-busy", shares::busy),
    ("token-shares", shares::token_shares),
    ("retry-after-burst", returns::after_a_burst),
    ("retry-after-1.3", returns::at_load_1_3),
    ("retry-after-2.0", returns::at_load_2),
    ("overshoot", priorities::overshoot),
    ("priorities", priorities::priorities),
    ("deadlines", deadlines::deadlines),
];

impl Trial {
    /// Four engines, conversations as in the Azure trace.
    fn crowd(&self, classes: Vec<Class>) -> Crowd {
        Crowd {
            hardware: "llama-3.1-8b/h100",
            endpoints: 4,
            classes,
            config: Config::default(),
            saturation: self.ceiling.saturation(),
            duration: self.duration,
        }
    }
}

fn class(flow: &'static str, priority: Priority, load: f64) -> Class {
    Class {
        flow,
        flows: 1,
        priority,
        load,
        deadline: None,
        prompt: AZURE_PROMPT,
        answer: AZURE_ANSWER,
        arrivals: Arrivals::Poisson,
        patience: Patience::GivesUp,
    }
}

fn measured(what: &'static str, value: f64, unit: &'static str) -> Measured {
    Measured { what, value: (value * 1e3).round() / 1e3, unit }
}

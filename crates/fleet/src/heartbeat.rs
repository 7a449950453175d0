//! What a member tells of itself: the same size whether it is idle or busy.

use std::time::Duration;

use types::{ModelName, Ratio};

use crate::shaping::Price;
use crate::sketch::Sketch;

/// One report of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heartbeat {
    /// Drawn when the member's process starts; another one begins the sequence anew.
    pub epoch: u64,
    /// Rises by at least one with each heartbeat of an epoch.
    pub sequence: u64,
    /// Since the member's process started, by its own clock that does not jump. It shows how late reports come,
    /// whatever wall clocks say.
    pub uptime: Duration,
    /// Of its document.
    pub generation: u64,
    /// It takes nothing new.
    pub is_draining: bool,
    /// Of its power now, g CO₂ for each kWh.
    pub carbon: Option<f32>,
    /// What a million tokens cost there now.
    pub price: Option<Price>,
    pub models: Vec<ModelLoad>,
}

/// One model of a member: what it can do and has to do.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelLoad {
    pub name: ModelName,
    /// LoRA adapters and other names that clients may ask for.
    pub adapters: Vec<Adapter>,
    pub endpoints_ready: u32,
    /// Requests that it takes without one of them waiting.
    pub in_flight_max: u32,
    /// Requests inside, waiting ones too.
    pub in_flight: u32,
    pub waiting: u32,
    pub kv_capacity_tokens: u64,
    pub kv_used: Ratio,
    pub arrivals_per_second: f32,
    /// Requests that ended.
    pub finished_per_second: f32,
    /// Requests that it could end while full; 0: not known.
    pub drain_per_second: f32,
    /// Prompt tokens that one endpoint computes; 0: not known.
    pub prefill_tokens_per_second: f32,
    /// Time to the first token of a short prompt on an idle endpoint.
    pub ttft_base: Duration,
    /// Share of answers that were 5xx or timed out; neither 4xx nor 429.
    pub failed: Ratio,
    /// Share of requests that were refused for want of room.
    pub shed: Ratio,
    /// Longest prompt and answer; 0: not known.
    pub context_max: u32,
    /// The prompts of which most is cached there.
    pub prefixes: Sketch,
}

/// Another name under which a model answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    pub name: ModelName,
    /// No endpoint has to load it first.
    pub is_resident: bool,
}

/// Why a heartbeat cannot be a member's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HeartbeatError {
    #[error("{count} models, at most {most}")]
    TooManyModels { count: usize, most: usize },
    #[error("{count} adapters, at most {most}")]
    TooManyAdapters { count: usize, most: usize },
    #[error("model `{model}` twice")]
    Twice { model: ModelName },
    #[error("model `{model}`: `{field}` is {value}, not a number from 0 to {most}")]
    OutOfRange { model: ModelName, field: &'static str, value: f32, most: f32 },
    #[error("`carbon` is {0}, not a number from 0 to 10000")]
    Carbon(f32),
}

/// Why a heartbeat was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rejected {
    #[error("no member {0} in this document")]
    Unknown(u16),
    #[error("sequence {got} after {last}")]
    Old { got: u64, last: u64 },
    #[error("of an earlier life of the member, epoch {0:016x}")]
    FormerLife(u64),
    #[error(transparent)]
    Invalid(#[from] HeartbeatError),
}

impl Heartbeat {
    pub const MODELS_MAX: usize = 256;
    /// Of all models together.
    pub const ADAPTERS_MAX: usize = 4096;
    /// Bytes on the wire.
    pub const BYTES_MAX: usize = 64 << 10;
    const RATE_MAX: f32 = 1e9;

    /// Refuses what no member can mean.
    pub fn check(&self) -> Result<(), HeartbeatError> {
        let count = self.models.len();
        if count > Self::MODELS_MAX {
            return Err(HeartbeatError::TooManyModels { count, most: Self::MODELS_MAX });
        }
        let count = self.models.iter().map(|model| model.adapters.len()).sum();
        if count > Self::ADAPTERS_MAX {
            return Err(HeartbeatError::TooManyAdapters { count, most: Self::ADAPTERS_MAX });
        }
        if let Some(carbon) = self.carbon
            && !(0.0..=10_000.0).contains(&carbon)
        {
            return Err(HeartbeatError::Carbon(carbon));
        }
        let mut names: Vec<&ModelName> = self.models.iter().map(|model| &model.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(HeartbeatError::Twice { model: twice[0].clone() });
        }
        self.models.iter().try_for_each(ModelLoad::check)
    }
}

impl ModelLoad {
    /// A model of which only the name is known.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            adapters: Vec::new(),
            endpoints_ready: 0,
            in_flight_max: 0,
            in_flight: 0,
            waiting: 0,
            kv_capacity_tokens: 0,
            kv_used: Ratio::ZERO,
            arrivals_per_second: 0.0,
            finished_per_second: 0.0,
            drain_per_second: 0.0,
            prefill_tokens_per_second: 0.0,
            ttft_base: Duration::ZERO,
            failed: Ratio::ZERO,
            shed: Ratio::ZERO,
            context_max: 0,
            prefixes: Sketch::default(),
        }
    }

    fn check(&self) -> Result<(), HeartbeatError> {
        let rates = [
            ("arrivals_per_second", self.arrivals_per_second),
            ("finished_per_second", self.finished_per_second),
            ("drain_per_second", self.drain_per_second),
            ("prefill_tokens_per_second", self.prefill_tokens_per_second),
        ];
        for (field, value) in rates {
            // A NaN is in no range.
            if !(0.0..=Heartbeat::RATE_MAX).contains(&value) {
                let (model, most) = (self.name.clone(), Heartbeat::RATE_MAX);
                return Err(HeartbeatError::OutOfRange { model, field, value, most });
            }
        }
        Ok(())
    }
}

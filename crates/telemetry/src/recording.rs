//! Traffic written down, so that it can be run again against another policy.
//!
//! JSON lines, never a word of what was asked or answered: when requests came, how long they were,
//! which blocks of their prompts were the same, where they went and how they fared. Blocks are
//! numbered in the order of first sight, so a recording holds no hash that could confirm a guess.
//!
//! This module is the format, for those who write and those who read. A [`Recorder`] writes it on a
//! thread of its own behind a bounded queue: when that is full the line is dropped and counted, for
//! a slow disk must never hold up a request.

mod blocks;
mod files;
mod queue;
mod recorder;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use recorder::{Recorder, Sample, Settings};

/// Number of the format; changes when a reader of the old one would be wrong. Readers ignore fields
/// that they do not know.
pub const VERSION: u32 = 1;

/// One line of a recording: an object with one key, which names the kind.
///
/// A file begins with a header and a state; then come requests in the order in which they ended,
/// and a state every ten seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingLine {
    Header(Header),
    State(State),
    Request(Request),
}

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`VERSION`].
    pub version: u32,
    /// Random; files with the same id belong together and share block numbers and times.
    pub recording: String,
    /// Counts the files of a recording from 0.
    pub part: u32,
    /// Wall time of the recording's start, RFC 3339; all other times count from here.
    pub started: String,
    /// Prompt tokens in one block, a token counted as four bytes.
    pub block_tokens: u32,
    /// Who wrote it, such as `wicketgate 0.1.0`.
    pub software: String,
}

/// How the pools stood at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Microseconds since the recording's start.
    pub at_us: u64,
    /// Lines that were lost since the start because the disk was too slow.
    #[serde(default)]
    pub dropped: u64,
    pub pools: Vec<PoolState>,
}

/// One pool: how it chooses, and from whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolState {
    pub name: String,
    /// Profile, such as `weighted`.
    pub policy: String,
    /// Scorers by name with their weights.
    #[serde(default)]
    pub scorers: Vec<(String, f32)>,
    /// Waiting requests at which an endpoint is full.
    pub queue_depth: u32,
    pub endpoints: Vec<EndpointState>,
}

/// One endpoint of one pool. What the engine does not say is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointState {
    /// What [`Request::endpoint`] means; never given to another endpoint within a recording.
    pub id: u32,
    /// `host:port` as configured.
    pub name: String,
    /// `vllm`, `sglang`, `tgi`, `trtllm`, `llamacpp` or `unknown`.
    pub engine: String,
    /// `ready`, `stale`, `asleep` or `ejected`.
    pub state: String,
    /// Tokens in one KV block of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size_tokens: Option<u32>,
    /// KV blocks of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_count: Option<u64>,
    /// Most requests in its running batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Share of KV blocks in use, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_usage: Option<f32>,
    /// Requests that this gateway had there.
    pub in_flight: u32,
    pub speed: Speed,
}

/// An endpoint's learned speed; the fields are those of `sched::Speed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Constant part of the time to the first token, milliseconds.
    pub base_ms: f32,
    pub prefill_ms_per_token: f32,
    /// What these two rest on; 0: nothing learned, they are defaults.
    pub prefill_samples: f32,
    /// One step of an empty batch, milliseconds.
    pub step_ms: f32,
    pub step_samples: f32,
    /// Mean length of an answer.
    pub output_tokens: f32,
}

/// One request that was placed, or refused by its pool. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// When it was received, microseconds since the recording's start.
    pub at_us: u64,
    pub pool: String,
    /// 0: the pool's base model. Adapters count from 1, by pool, in the order of first sight.
    pub model: u32,
    /// As in metrics: `chat_completions`, `embeddings`, …
    pub route: String,
    /// Whether it asked for a stream.
    pub stream: bool,
    /// As the gateway estimates them: a quarter of the bytes.
    pub prompt_tokens: u32,
    /// As the endpoint reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_reported: Option<u64>,
    /// Full blocks of the prompt from its start, as runs: first number and length. A number stands
    /// for a block with all that comes before it.
    pub blocks: Vec<(u64, u32)>,
    /// Blocks that the endpoint was believed to hold.
    pub matched_blocks: u32,
    /// As the endpoint reported them, else the events of its stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Prompt tokens that the endpoint had cached, as it reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// [`EndpointState::id`] of the last that was tried; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<u32>,
    /// Endpoints tried.
    pub attempts: u32,
    /// Expected time from its dispatch to the first token, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
    /// Received to first token, milliseconds; streams only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
    /// Received to the end, milliseconds.
    pub duration_ms: f64,
    /// 0 if none was sent.
    pub status: u16,
    /// As in metrics: `ok`, `client_error`, `endpoint_error`, `gateway_error`, `cancelled`, `shed`.
    pub outcome: String,
}

impl RecordingLine {
    /// Reads one line, with or without its end.
    ///
    /// # Errors
    /// When it is not of this format: cut off, for example, as the last line of a file may be.
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }

    /// Appends the line with its end.
    pub fn format(&self, out: &mut Vec<u8>) {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_writer(&mut *out, self).unwrap_or_default();
        out.push(b'\n');
    }
}

impl Request {
    /// The numbers of its blocks, one by one.
    pub fn block_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().flat_map(|(first, length)| {
            (0..u64::from(*length)).map(|number| first.saturating_add(number))
        })
    }
}

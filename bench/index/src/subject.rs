//! The indexes under test, behind one small interface.
//!
//! Prompts come as chained 64-bit block hashes. What a subject must convert them to is made before
//! the clock starts, so that nobody pays for another one's types.

mod dynamo;
mod kv_index;
mod wicketgate;

use anyhow::Result;

pub trait Index: Sync {
    /// The one that records; taken once, before all readers.
    fn writer(&self) -> Result<Box<dyn Write + Send + '_>>;
    fn reader(&self) -> Box<dyn Read + '_>;
}

pub trait Write {
    /// Takes the next prompt; not timed.
    fn prepare(&mut self, endpoint: usize, blocks: &[u64]) -> Result<()>;
    /// Notes that the endpoint holds the prompt.
    fn store(&mut self) -> Result<()>;
    /// Waits until all that was stored is visible.
    fn settle(&mut self) -> Result<()>;
}

pub trait Read {
    /// Takes the next prompt; not timed.
    fn prepare(&mut self, blocks: &[u64]);
    /// The endpoint with the longest match from the start, and its blocks.
    fn best(&mut self) -> Option<(usize, u32)>;
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Subject {
    Wicketgate,
    KvIndex,
    Dynamo,
}

pub const ALL: [Subject; 3] = [Subject::Wicketgate, Subject::KvIndex, Subject::Dynamo];

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Self::Wicketgate => "wicketgate-prefix",
            Self::KvIndex => "kv-index 2 (smg, SGLang)",
            Self::Dynamo => "dynamo-kv-router 1.6 (NVIDIA)",
        }
    }

    pub fn make(self, endpoints: usize) -> Result<Box<dyn Index>> {
        Ok(match self {
            Self::Wicketgate => Box::new(wicketgate::Wicketgate::new(endpoints)),
            Self::KvIndex => Box::new(kv_index::KvIndex::new(endpoints)?),
            Self::Dynamo => Box::new(dynamo::Dynamo::new()),
        })
    }
}

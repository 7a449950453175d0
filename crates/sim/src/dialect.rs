//! What clients ask in and how answers are written, for each API.

mod ask;
mod chat;
mod completions;
mod error;
mod generate;
mod messages;
mod pooling;
mod responses;
mod usage;

use types::EngineKind;

use crate::metrics::Finish;

pub(crate) use ask::Ask;
pub(crate) use error::{ApiError, ErrorForm};
pub(crate) use pooling::Pooling;
pub(crate) use usage::{Usage, UsageForm};

/// APIs that generate tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    SglangGenerate,
    TgiGenerate,
    Transcription,
}

/// One token of an answer, as it is written into a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) choice: u32,
    /// Its place in the answer, from 0.
    pub(crate) at: u32,
    pub(crate) text: &'a str,
    /// The answer up to and including this token; only where the dialect repeats it.
    pub(crate) so_far: &'a str,
    /// Set on the last token.
    pub(crate) finish: Option<Finish>,
}

/// Ids and names that an answer bears.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    /// Unique in this server, as 32 hexadecimal digits.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// The model as asked for, as a JSON string with its quotes.
    pub(crate) model: String,
}

/// Writes the answers of one API.
pub(crate) trait Dialect: Send + Sync {
    /// Writes what comes before the first token.
    fn begin(&mut self, out: &mut Vec<u8>, usage: &Usage);

    /// Writes one token's event.
    fn token(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, usage: &Usage);

    /// Writes what comes after the last token; without `terminal` the event that says "done" is
    /// left out.
    fn end(&mut self, out: &mut Vec<u8>, usage: &Usage, terminal: bool);

    /// Writes an answer that is not streamed: one text for each choice.
    fn whole(&self, answers: &[(String, Finish)], usage: &Usage) -> Vec<u8>;

    /// Whether [`Piece::so_far`] is wanted.
    fn repeats(&self) -> bool;
}

/// The writer for an API.
pub(crate) fn writer(api: Api, ask: &Ask, naming: Naming, engine: EngineKind) -> Box<dyn Dialect> {
    let include_usage = ask.include_usage;
    match api {
        Api::Chat => Box::new(chat::Chat { naming, include_usage, engine }),
        Api::Completions => Box::new(completions::Completions { naming, include_usage }),
        Api::Responses => Box::new(responses::Responses::new(naming)),
        Api::Messages => Box::new(messages::Messages { naming, stop: None }),
        Api::SglangGenerate => Box::new(generate::Sglang { naming }),
        Api::TgiGenerate => Box::new(generate::Tgi { details: ask.details }),
        Api::Transcription => Box::new(generate::Transcription { naming }),
    }
}

fn event(out: &mut Vec<u8>, name: Option<&str>, data: &str) {
    if let Some(name) = name {
        for part in ["event: ", name, "\n"] {
            out.extend(part.as_bytes());
        }
    }
    for part in ["data: ", data, "\n\n"] {
        out.extend(part.as_bytes());
    }
}

fn openai_finish(finish: Option<Finish>) -> &'static str {
    match finish {
        Some(Finish::Stop) => "\"stop\"",
        Some(Finish::Length) => "\"length\"",
        None => "null",
    }
}

/// A text as a JSON string with its quotes.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

//! What a request body says: the fields that routing needs and where the prompt lies.
//!
//! The result holds ranges into the body. The body itself is forwarded byte for byte, so what is
//! read here must be what every engine reads: bodies that parsers disagree about (duplicate keys,
//! other encodings, numbers beyond a double, keys that differ by letter case) are refused.

mod decode;
mod error;
mod field;
mod keys;
mod multipart;
mod prompt;
mod read;
mod scanner;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use error::{BodyError, BodyErrorKind};
pub use multipart::scan_multipart;
pub use prompt::Prompt;
pub use read::scan;

use crate::Dialect;

/// How much a body may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open arrays and objects, the outermost included; at most 128. Default 64.
    pub depth_max: u16,
    /// Bytes of a decoded model name. Default 256.
    pub model_bytes_max: usize,
    /// Choices that one request may ask for (`n`, `best_of`). Default 128, OpenAI's own bound.
    pub n_max: u64,
    /// Top-level fields, or parts of a form. Default 256.
    pub fields_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth_max: 64, model_bytes_max: 256, n_max: 128, fields_max: 256 }
    }
}

/// What a request body says. Ranges index into the body's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// `None`: the body names no model, or `null`.
    pub model: Option<Model>,
    /// The client wants an event stream.
    pub stream: bool,
    /// Most tokens to generate; `None`: not said, or negative (some engines' way to say unlimited).
    pub tokens_max: Option<u64>,
    /// Choices asked for: the larger of `n` and `best_of`.
    pub n: Option<u64>,
    /// Raw bytes of the `cache_salt` string, without quotes.
    pub cache_salt: Option<Range<usize>>,
    /// Raw bytes of the `user` string, without quotes.
    pub user: Option<Range<usize>>,
    /// The client asked for a usage event (`stream_options.include_usage`).
    pub include_usage: bool,
    pub prompt: Prompt,
    /// On `/generate`, whose request it is: `inputs` is TGI's, `text` and `input_ids` are SGLang's.
    pub engine_dialect: Option<Dialect>,
}

/// The model that a body names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Decoded; passes [`is_model_name`].
    pub name: String,
    /// The JSON string literal with its quotes, or the form field's value: what a rewrite replaces.
    pub literal: Range<usize>,
}

/// Whether a text can be a model name: 1 to 256 bytes of printable ASCII, no space at either end.
/// Such a name is safe as a header value.
pub fn is_model_name(name: &str) -> bool {
    name.len() <= 256 && has_model_charset(name)
}

fn has_model_charset(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && !name.starts_with(' ')
        && !name.ends_with(' ')
}

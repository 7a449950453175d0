//! The top-level fields that are read, for each route.

use std::borrow::Cow;

use crate::Route;

/// What a top-level key means to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Model,
    Stream,
    StreamOptions,
    /// Spellings of the most tokens to generate, the one that wins first.
    MaxCompletionTokens,
    MaxOutputTokens,
    MaxTokens,
    MaxNewTokens,
    /// `parameters` (TGI) and `sampling_params` (SGLang).
    Sampling,
    N,
    BestOf,
    CacheSalt,
    User,
    /// Part of the prompt; lower ranks are rendered first.
    Prompt {
        rank: u8,
    },
}

const TOOLS: Field = Field::Prompt { rank: 0 };
const SYSTEM: Field = Field::Prompt { rank: 1 };
const TURNS: Field = Field::Prompt { rank: 2 };
const LAST: Field = Field::Prompt { rank: 3 };

/// The field that `key` is on `route`, with its name as a constant (for error texts).
pub(super) fn of(route: Route, key: &[u8]) -> Option<(Field, &'static str)> {
    let common = match key {
        b"model" => (Field::Model, "model"),
        b"stream" => (Field::Stream, "stream"),
        b"stream_options" => (Field::StreamOptions, "stream_options"),
        b"max_completion_tokens" => (Field::MaxCompletionTokens, "max_completion_tokens"),
        b"max_output_tokens" => (Field::MaxOutputTokens, "max_output_tokens"),
        b"max_tokens" => (Field::MaxTokens, "max_tokens"),
        b"max_new_tokens" => (Field::MaxNewTokens, "max_new_tokens"),
        b"n" => (Field::N, "n"),
        b"best_of" => (Field::BestOf, "best_of"),
        b"cache_salt" => (Field::CacheSalt, "cache_salt"),
        b"user" => (Field::User, "user"),
        _ => return prompt(route, key),
    };
    Some(common)
}

fn prompt(route: Route, key: &[u8]) -> Option<(Field, &'static str)> {
    let field = match (route, key) {
        (Route::ChatCompletions | Route::Tokenize, b"tools") => (TOOLS, "tools"),
        (Route::ChatCompletions, b"functions") => (TOOLS, "functions"),
        (Route::ChatCompletions | Route::Tokenize | Route::Embeddings, b"messages") => {
            (TURNS, "messages")
        }
        (Route::Completions | Route::Tokenize, b"prompt") => (TURNS, "prompt"),
        (Route::Completions, b"suffix") => (LAST, "suffix"),
        (Route::Embeddings, b"input") => (TURNS, "input"),
        (Route::Responses, b"tools") => (TOOLS, "tools"),
        (Route::Responses, b"instructions") => (SYSTEM, "instructions"),
        (Route::Responses, b"input") => (TURNS, "input"),
        (Route::Messages | Route::CountTokens, b"tools") => (TOOLS, "tools"),
        (Route::Messages | Route::CountTokens, b"system") => (SYSTEM, "system"),
        (Route::Messages | Route::CountTokens, b"messages") => (TURNS, "messages"),
        (Route::Rerank, b"query") => (TURNS, "query"),
        (Route::Rerank, b"documents") => (LAST, "documents"),
        (Route::Score, b"text_1") => (TURNS, "text_1"),
        (Route::Score, b"text_2") => (LAST, "text_2"),
        (Route::Score, b"queries") => (TURNS, "queries"),
        (Route::Score, b"documents") => (LAST, "documents"),
        (Route::Detokenize, b"tokens") => (TURNS, "tokens"),
        (Route::Generate | Route::GenerateStream, b"inputs") => (TURNS, "inputs"),
        (Route::Generate | Route::GenerateStream, b"parameters") => (Field::Sampling, "parameters"),
        (Route::Generate, b"text") => (TURNS, "text"),
        (Route::Generate, b"input_ids") => (TURNS, "input_ids"),
        (Route::Generate, b"sampling_params") => (Field::Sampling, "sampling_params"),
        _ => return None,
    };
    Some(field)
}

/// The known key that `key` would be but for letter case, if it is not that key itself.
///
/// Go's decoder folds case the Unicode way, so `ſ` counts as `s` and the Kelvin sign as `k`.
pub(super) fn misspelt(route: Route, key: &str) -> Option<&'static str> {
    if !key.bytes().any(|byte| byte.is_ascii_uppercase() || byte >= 0x80) {
        return None;
    }
    let mut folded = Cow::Borrowed(key);
    if !key.is_ascii() {
        folded = Cow::Owned(key.replace('\u{17f}', "s").replace('\u{212a}', "k"));
    }
    of(route, folded.to_ascii_lowercase().as_bytes()).map(|(_, name)| name)
}

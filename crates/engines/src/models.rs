//! `GET /v1/models` as model servers answer it: which names an endpoint serves.

use serde::Deserialize;
use serde_json::Value;

/// One name that requests may put into `model`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedModel {
    pub id: String,
    /// Set: `id` is an adapter of that base model.
    pub parent: Option<String>,
    /// Longest prompt and answer together, in tokens.
    pub max_model_len: Option<u64>,
}

/// Why an answer is no model list.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    #[error("the model list is not JSON of the form {{\"data\": [{{\"id\": …}}]}}")]
    NotAList(#[source] serde_json::Error),
    #[error("the model list has {0} entries, more than the {MODELS_MAX} that are read")]
    TooMany(usize),
}

/// Entries in a list at most; every adapter is one.
pub const MODELS_MAX: usize = 16_384;

/// Longest name of a model in bytes; entries with longer ones are left out.
pub const MODEL_NAME_BYTES_MAX: usize = 512;

/// Reads a list in the form that OpenAI defined, with the additions of vLLM and SGLang (`parent`,
/// `max_model_len`) and llama.cpp (`meta.n_ctx`). TGI and `trtllm-serve` give `id` alone.
///
/// Entries without a usable `id` are left out, and of equal ones all but the first; a list may be
/// empty. Fields that are not understood never make the list unusable.
///
/// # Errors
/// When `body` is not a JSON object with a list `data`.
pub fn parse(body: &[u8]) -> Result<Vec<ServedModel>, ModelsError> {
    let list: List = serde_json::from_slice(body).map_err(ModelsError::NotAList)?;
    if list.data.len() > MODELS_MAX {
        return Err(ModelsError::TooMany(list.data.len()));
    }
    let mut seen = std::collections::HashSet::new();
    let models = list.data.iter().filter_map(served);
    Ok(models.filter(|model| seen.insert(model.id.clone())).collect())
}

#[derive(Deserialize)]
struct List {
    data: Vec<Value>,
}

fn served(entry: &Value) -> Option<ServedModel> {
    let usable = |name: &&str| !name.is_empty() && name.len() <= MODEL_NAME_BYTES_MAX;
    let id = entry.get("id")?.as_str().filter(usable)?;
    let parent = entry.get("parent").and_then(Value::as_str).filter(usable);
    let context = entry.pointer("/meta/n_ctx");
    let length = entry.get("max_model_len").and_then(Value::as_u64);
    Some(ServedModel {
        id: id.to_owned(),
        parent: parent.filter(|parent| *parent != id).map(str::to_owned),
        max_model_len: length.or_else(|| context?.as_u64()).filter(|length| *length > 0),
    })
}

#[cfg(test)]
mod tests;

//! Requests that only read the prompt: embeddings, rerank, score.

use serde_json::{Value, json};

use super::ask::plain;
use super::{ApiError, Naming};
use crate::tokens::Tokens;
use crate::words::Words;

/// APIs that answer with numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pooling {
    Embeddings,
    Rerank,
    Score,
}

/// Numbers in one embedding unless the request says otherwise.
const DIMENSIONS: u64 = 64;

impl Pooling {
    /// The texts to read, one engine request each.
    pub(crate) fn prompts(self, body: &Value) -> Result<Vec<Tokens>, ApiError> {
        let pairs = |query: &Value, documents: &Value| {
            let documents = plain(documents);
            let query = plain(query).into_iter().next().unwrap_or_default();
            documents
                .into_iter()
                .map(|document| Tokens(query.0.iter().chain(&document.0).copied().collect()))
                .collect::<Vec<_>>()
        };
        let prompts = match self {
            Self::Embeddings => plain(&body["input"]),
            Self::Rerank => pairs(&body["query"], &body["documents"]),
            Self::Score => pairs(&body["text_1"], &body["text_2"]),
        };
        if prompts.is_empty() || prompts.iter().any(Tokens::is_empty) || prompts.len() > 2048 {
            return Err(ApiError::bad_request("The input is missing, empty or too long a list."));
        }
        Ok(prompts)
    }

    pub(crate) fn answer(
        self,
        body: &Value,
        prompts: &[Tokens],
        seed: u64,
        naming: &Naming,
    ) -> Vec<u8> {
        let Naming { id, created, .. } = naming;
        let model = &body["model"];
        let tokens: u32 = prompts.iter().map(Tokens::len).sum();
        let usage = json!({
            "prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0,
            "prompt_tokens_details": null,
        });
        let score = |prompt: &Tokens| Words::new(prompt, seed, 0).draw();
        let answer = match self {
            Self::Embeddings => {
                let dimensions = body["dimensions"].as_u64().unwrap_or(DIMENSIONS).clamp(1, 4096);
                let vector = |prompt: &Tokens| -> Vec<f64> {
                    let draw = |at| Words::new(prompt, seed, at).draw() * 2.0 - 1.0;
                    (0..dimensions as u32).map(draw).collect()
                };
                let data: Vec<Value> = prompts
                    .iter()
                    .enumerate()
                    .map(|(index, prompt)| {
                        json!({"index": index, "object": "embedding", "embedding": vector(prompt)})
                    })
                    .collect();
                json!({
                    "id": format!("embd-{id}"), "object": "list", "created": created,
                    "model": model, "data": data, "usage": usage,
                })
            }
            Self::Rerank => {
                let texts: Vec<&Value> = body["documents"]
                    .as_array()
                    .map(|all| all.iter().collect())
                    .unwrap_or_default();
                let mut results: Vec<Value> = prompts
                    .iter()
                    .enumerate()
                    .map(|(index, prompt)| {
                        json!({
                            "index": index, "relevance_score": score(prompt),
                            "document": {"text": texts.get(index)},
                        })
                    })
                    .collect();
                let relevance =
                    |result: &Value| result["relevance_score"].as_f64().unwrap_or_default();
                results.sort_by(|one, other| relevance(other).total_cmp(&relevance(one)));
                if let Some(most) = body["top_n"].as_u64() {
                    results.truncate(usize::try_from(most).unwrap_or(usize::MAX));
                }
                json!({
                    "id": format!("rerank-{id}"), "model": model, "results": results,
                    "usage": {"total_tokens": tokens},
                })
            }
            Self::Score => {
                let data: Vec<Value> = prompts
                    .iter()
                    .enumerate()
                    .map(|(index, prompt)| {
                        json!({"index": index, "object": "score", "score": score(prompt)})
                    })
                    .collect();
                json!({
                    "id": format!("score-{id}"), "object": "list", "created": created,
                    "model": model, "data": data, "usage": usage,
                })
            }
        };
        answer.to_string().into_bytes()
    }
}

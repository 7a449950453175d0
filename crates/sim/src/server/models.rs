//! What a server says about itself, and adapters that come and go.

use std::time::Duration;

use serde_json::{Value, json};
use types::{AdapterId, EngineKind};

use super::Server;
use crate::dialect::ApiError;
use crate::tokens::Tokens;

impl Server {
    /// `GET /v1/models`.
    pub(super) fn models(&self) -> Value {
        let core = self.core();
        let mut data = vec![self.card(&self.spec.model, None)];
        data.extend(core.adapters.keys().map(|name| self.card(name, Some(&self.spec.model))));
        json!({"object": "list", "data": data})
    }

    /// `GET /v1/models/{id}`.
    pub(super) fn model(&self, id: &str) -> Result<Value, ApiError> {
        match self.models()["data"]
            .as_array()
            .and_then(|all| all.iter().find(|card| card["id"] == id))
        {
            Some(card) => Ok(card.clone()),
            None => Err(ApiError::model_not_found(id)),
        }
    }

    fn card(&self, id: &str, parent: Option<&str>) -> Value {
        let owner = match self.spec.engine {
            EngineKind::Sglang => "sglang",
            EngineKind::Tgi => "tgi",
            EngineKind::TensorRtLlm => "tensorrt_llm",
            _ => "vllm",
        };
        let created = self.clock.wall() as u64;
        let length = self.hardware.model_len_max;
        let length = self.spec.max_model_len.map_or(length, |most| most.min(length));
        let root = parent.map_or_else(|| id.to_owned(), |_| format!("/adapters/{id}"));
        json!({
            "id": id, "object": "model", "created": created, "owned_by": owner, "root": root,
            "parent": parent, "max_model_len": if parent.is_none() { json!(length) } else { Value::Null },
        })
    }

    /// `GET /version` and the engines' own ways to say the same.
    pub(super) fn about(&self) -> Value {
        let model = &self.spec.model;
        let mut about = match self.spec.engine {
            EngineKind::Tgi => json!({
                "model_id": model, "model_dtype": "bfloat16", "max_concurrent_requests": 128,
                "max_input_tokens": self.hardware.model_len_max - 1,
                "max_total_tokens": self.hardware.model_len_max, "version": "3.3.6",
                "router": "text-generation-router", "max_client_batch_size": 4,
            }),
            EngineKind::Sglang => json!({
                "model_path": model, "tokenizer_path": model, "is_generation": true,
                "version": "0.5.23",
            }),
            EngineKind::TensorRtLlm => json!({"version": "1.3.0"}),
            _ => json!({"version": "0.33.0"}),
        };
        if let Some(version) = &self.spec.quirks.version {
            about["version"] = version.as_str().into();
        }
        about
    }

    /// `POST /v1/load_lora_adapter`. Returns how long loading takes in real time.
    pub(super) fn load_adapter(&self, body: &Value) -> Result<Duration, ApiError> {
        let name = body["lora_name"].as_str().unwrap_or_default();
        if name.is_empty() || body["lora_path"].as_str().unwrap_or_default().is_empty() {
            return Err(ApiError::bad_request(
                "Both 'lora_name' and 'lora_path' must be provided.",
            ));
        }
        let mut core = self.core();
        if core.engine.spec().lora.gpu_slots == 0 {
            return Err(ApiError::bad_request("LoRA is not enabled."));
        }
        if core.adapters.contains_key(name) {
            return Err(ApiError::bad_request(format!(
                "The lora adapter '{name}' has already been loaded."
            )));
        }
        let id = AdapterId::of(name);
        core.adapters.insert(name.to_owned(), id);
        let took = core.engine.fetch_adapter(id);
        Ok(self.clock.real(took))
    }

    /// `POST /v1/unload_lora_adapter`.
    pub(super) fn unload_adapter(&self, body: &Value) -> Result<String, ApiError> {
        let name = body["lora_name"].as_str().unwrap_or_default();
        let mut core = self.core();
        if !core.adapters.contains_key(name) {
            return Err(ApiError::new(404, format!("The lora adapter '{name}' cannot be found.")));
        }
        core.unload(name);
        Ok(format!("Success: LoRA adapter '{name}' removed successfully."))
    }

    /// `POST /tokenize`: a text or a conversation.
    pub(super) fn tokenize(&self, body: &Value, prompt: &Tokens) -> Value {
        let mut answer = json!({
            "count": prompt.len(), "max_model_len": self.hardware.model_len_max,
            "tokens": prompt.0, "token_strs": null,
        });
        if let Some(model) = body["model"].as_str() {
            answer["model"] = model.into();
        }
        answer
    }
}

/// `POST /detokenize`.
pub(super) fn detokenize(body: &Value) -> Value {
    let ids = body["tokens"].as_array().map(Vec::as_slice).unwrap_or_default();
    let id = |id: &Value| u32::try_from(id.as_u64()?).ok();
    let tokens = Tokens(ids.iter().filter_map(id).collect());
    json!({"prompt": tokens.spell()})
}

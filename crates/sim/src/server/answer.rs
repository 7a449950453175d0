//! From what is asked to what the engine gets: model, lengths, hashes, words.

use types::{AdapterId, EngineKind, Timestamp};

use super::Server;
use crate::dialect::{ApiError, Ask};
use crate::engine::{RequestId, RequestSpec, SubmitError};
use crate::metrics::Finish;
use crate::tokens::{BlockHasher, Tokens};
use crate::words::Words;

/// Longest answer that nobody asked for.
const NATURAL_TOKENS_MAX: f64 = 4096.0;

/// One choice of an answer before it is generated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) words: Words,
    pub(super) finish: Finish,
}

/// Base model or adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) adapter: Option<(String, AdapterId)>,
}

impl Server {
    /// Finds the model that a request names. Nobody named: the base model, as the engines do.
    pub(super) fn resolve(&self, model: Option<&str>) -> Result<Served, ApiError> {
        let core = self.core();
        let adapter = |name: &str| {
            let id = core.adapters.get(name)?;
            Some(Served { adapter: Some((name.to_owned(), *id)) })
        };
        let base = Served { adapter: None };
        match model {
            None => Ok(base),
            Some(name) if name == self.spec.model => Ok(base),
            Some(name) => {
                let of_base = || name.strip_prefix(&self.spec.model)?.strip_prefix(':');
                let found = adapter(name).or_else(|| adapter(of_base()?));
                match (found, self.spec.engine) {
                    (Some(served), _) => Ok(served),
                    // TGI serves one model and does not look at the name.
                    (None, EngineKind::Tgi) => Ok(base),
                    (None, _) => Err(ApiError::model_not_found(name)),
                }
            }
        }
    }

    /// The engine requests for an ask: one for each prompt and choice.
    pub(super) fn prepare(
        &self,
        ask: &Ask,
        served: &Served,
    ) -> Result<(Vec<RequestSpec>, Vec<Choice>), ApiError> {
        let (limit, block_size) = {
            let core = self.core();
            let spec = core.engine.spec();
            (spec.context_tokens_max(), spec.block_size)
        };
        let adapter = served.adapter.as_ref();
        let (mut specs, mut choices) = (Vec::new(), Vec::new());
        for prompt in &ask.prompts {
            let room = limit.saturating_sub(prompt.len());
            let wanted = ask.tokens_max.unwrap_or(1);
            if room < wanted.max(1) {
                return Err(self.too_long(prompt.len(), ask.tokens_max.unwrap_or(0), limit));
            }
            let most = ask.tokens_max.unwrap_or(room).min(room);
            let name = adapter.map(|(name, _)| name.as_str());
            let mut hasher = BlockHasher::new(block_size, name, ask.salt.as_deref());
            let prompt_blocks = hasher.push(&prompt.0);
            for choice in 0..ask.n.max(1) {
                let words = Words::new(prompt, self.spec.seed, choice);
                let (output_tokens, finish) = self.answer_length(ask, &words, most);
                specs.push(RequestSpec {
                    id: RequestId(0),
                    prompt_blocks: prompt_blocks.clone(),
                    answer_blocks: hasher.clone().push(&words.tokens(output_tokens)),
                    prompt_tokens: prompt.len(),
                    output_tokens,
                    output_tokens_max: most,
                    adapter: adapter.map(|(_, id)| *id),
                    arrived: Timestamp::ZERO,
                });
                choices.push(Choice { words, finish });
            }
        }
        Ok((specs, choices))
    }

    /// Engine requests that only read their prompts.
    pub(super) fn prepare_pooling(
        &self,
        prompts: &[Tokens],
        served: &Served,
    ) -> Result<Vec<RequestSpec>, ApiError> {
        let ask = Ask {
            prompts: prompts.to_vec(),
            tokens_max: Some(1),
            ignore_eos: true,
            n: 1,
            ..Ask::default()
        };
        Ok(self.prepare(&ask, served)?.0)
    }

    /// Drawn from a log-logistic distribution around the configured median, unless the request
    /// forbids to stop before its limit.
    fn answer_length(&self, ask: &Ask, words: &Words, most: u32) -> (u32, Finish) {
        if ask.ignore_eos && ask.tokens_max.is_some() {
            return (most, Finish::Length);
        }
        let share = words.draw().clamp(1e-6, 1.0 - 1e-6);
        let spread = (share / (1.0 - share)).powf(0.45);
        let natural = (f64::from(self.spec.answer_tokens) * spread).clamp(1.0, NATURAL_TOKENS_MAX);
        let natural = (natural as u32).max(ask.tokens_min);
        if natural < most { (natural, Finish::Stop) } else { (most, Finish::Length) }
    }

    fn too_long(&self, prompt: u32, output: u32, limit: u32) -> ApiError {
        match self.spec.engine {
            EngineKind::Tgi => ApiError::new(
                422,
                format!(
                    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= \
                     {limit}. Given: {prompt} `inputs` tokens and {output} `max_new_tokens`"
                ),
            ),
            _ => ApiError::bad_request(format!(
                "This model's maximum context length is {limit} tokens. However, you requested \
                 {} tokens ({prompt} in the messages, {output} in the completion). Please reduce \
                 the length of the messages or completion.",
                u64::from(prompt) + u64::from(output)
            )),
        }
    }

    /// The engine's own refusal.
    pub(super) fn refusal(&self, error: SubmitError) -> ApiError {
        match error {
            SubmitError::QueueFull if self.spec.engine == EngineKind::Tgi => {
                ApiError::new(429, "Model is overloaded")
            }
            SubmitError::QueueFull => {
                ApiError::new(503, "The engine's waiting queue is full. Please retry later.")
            }
            SubmitError::TooLong { tokens, limit } => self.too_long(tokens, 0, limit),
            SubmitError::LoraDisabled => ApiError::bad_request("LoRA is not enabled."),
            SubmitError::Duplicate => ApiError::new(500, "Duplicate request id."),
        }
    }
}

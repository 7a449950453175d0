//! What a request asks for, from any API's body.

use serde_json::Value;

use super::{Api, ApiError};
use crate::tokens::{Special, Tokens};

/// Most choices and prompts of one request.
const CHOICES_MAX: u64 = 128;

/// A request to generate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub(crate) model: Option<String>,
    /// One, or several where the API takes a list of prompts.
    pub(crate) prompts: Vec<Tokens>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) tokens_max: Option<u32>,
    pub(crate) tokens_min: u32,
    pub(crate) ignore_eos: bool,
    /// Choices for each prompt.
    pub(crate) n: u32,
    pub(crate) salt: Option<String>,
    /// TGI: answer with details.
    pub(crate) details: bool,
}

impl Ask {
    /// Reads a JSON body. Unknown fields are ignored, as the engines do.
    pub(crate) fn parse(api: Api, body: &Value) -> Result<Self, ApiError> {
        let limits = match api {
            Api::SglangGenerate => &body["sampling_params"],
            Api::TgiGenerate => &body["parameters"],
            _ => body,
        };
        let names: &[&str] = match api {
            Api::Chat => &["max_completion_tokens", "max_tokens"],
            Api::Responses => &["max_output_tokens"],
            Api::SglangGenerate | Api::TgiGenerate => &["max_new_tokens"],
            Api::Completions | Api::Messages | Api::Transcription => &["max_tokens"],
        };
        let mut tokens_max = names.iter().find_map(|name| count(&limits[*name]));
        tokens_max = tokens_max.or(match api {
            Api::Completions => Some(16),
            Api::SglangGenerate => Some(128),
            Api::TgiGenerate => Some(100),
            _ => None,
        });
        if tokens_max == Some(0) {
            return Err(ApiError::bad_request("max_tokens must be at least 1, got 0."));
        }
        let min_name = if api == Api::SglangGenerate { "min_new_tokens" } else { "min_tokens" };
        let n = if body["n"].is_null() { &limits["n"] } else { &body["n"] };
        let n = match n.as_u64() {
            None | Some(1) => 1,
            Some(n) if (1..=CHOICES_MAX).contains(&n) => n as u32,
            Some(n) => return Err(ApiError::bad_request(format!("n must be 1 to 128, got {n}."))),
        };
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        Ok(Self {
            model: text("model"),
            prompts: prompts(api, body)?,
            stream: body["stream"].as_bool().unwrap_or(false),
            include_usage: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
            tokens_max,
            tokens_min: count(&limits[min_name]).unwrap_or(0),
            ignore_eos: limits["ignore_eos"].as_bool().unwrap_or(false),
            n,
            salt: text("cache_salt"),
            details: limits["details"].as_bool().unwrap_or(false),
        })
    }
}

fn count(value: &Value) -> Option<u32> {
    value.as_u64().map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

fn prompts(api: Api, body: &Value) -> Result<Vec<Tokens>, ApiError> {
    let prompts = match api {
        Api::Chat | Api::Messages => vec![conversation(&body["system"], body, "messages")?],
        Api::Responses => vec![conversation(&body["instructions"], body, "input")?],
        Api::Completions => plain(&body["prompt"]),
        Api::SglangGenerate if !body["input_ids"].is_null() => plain(&body["input_ids"]),
        Api::SglangGenerate => plain(&body["text"]),
        Api::TgiGenerate => plain(&body["inputs"]),
        Api::Transcription => vec![],
    };
    if api != Api::Transcription && prompts.iter().all(Tokens::is_empty) {
        return Err(ApiError::bad_request("The prompt is missing or empty."));
    }
    if prompts.len() as u64 > CHOICES_MAX {
        return Err(ApiError::bad_request("Too many prompts in one request."));
    }
    Ok(prompts)
}

/// Tools, system text and messages, as a chat template renders them.
fn conversation(system: &Value, body: &Value, name: &str) -> Result<Tokens, ApiError> {
    let mut tokens = Tokens::default();
    if let Some(tools) = body["tools"].as_array().filter(|tools| !tools.is_empty()) {
        tokens.special(Special::Tools);
        for tool in tools {
            tokens.text(&tool.to_string());
        }
        tokens.special(Special::End);
    }
    if !system.is_null() {
        tokens.special(Special::System);
        content(&mut tokens, system);
        tokens.special(Special::End);
    }
    match &body[name] {
        Value::String(text) => {
            tokens.special(Special::User);
            tokens.text(text);
            tokens.special(Special::End);
        }
        Value::Array(messages) if !messages.is_empty() => {
            for message in messages {
                tokens.special(Special::of_role(message["role"].as_str().unwrap_or("user")));
                content(&mut tokens, &message["content"]);
                for rest in ["tool_calls", "arguments", "output"] {
                    if !message[rest].is_null() {
                        tokens.text(&message[rest].to_string());
                    }
                }
                tokens.special(Special::End);
            }
        }
        _ => return Err(ApiError::bad_request(format!("`{name}` is missing or empty."))),
    }
    tokens.special(Special::Assistant);
    Ok(tokens)
}

fn content(tokens: &mut Tokens, content: &Value) {
    match content {
        Value::String(text) => tokens.text(text),
        Value::Array(parts) => {
            for part in parts {
                match part["text"].as_str() {
                    Some(text) => tokens.text(text),
                    None => {
                        tokens.special(Special::Media);
                        tokens.text(&part.to_string());
                    }
                }
            }
        }
        _ => {}
    }
}

/// A text, token ids, or a list of either.
pub(super) fn plain(prompt: &Value) -> Vec<Tokens> {
    let one = |value: &Value| match value {
        Value::String(text) => {
            let mut tokens = Tokens::default();
            tokens.text(text);
            tokens
        }
        Value::Array(ids) => Tokens(ids.iter().filter_map(count).collect()),
        _ => Tokens::default(),
    };
    match prompt {
        Value::Array(list) if list.iter().any(|item| !item.is_number()) => {
            list.iter().map(one).collect()
        }
        value => vec![one(value)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt(api: Api, body: Value) -> Vec<u32> {
        Ask::parse(api, &body).unwrap().prompts[0].0.clone()
    }

    #[test]
    fn the_next_turn_begins_with_the_tokens_of_this_one_and_its_answer() {
        let first =
            prompt(Api::Chat, json!({"messages": [{"role": "user", "content": "seven c"}]}));
        let mut with_answer = Tokens(first);
        with_answer.text("kel bam tis ");
        let second = prompt(
            Api::Chat,
            json!({"messages": [
                {"role": "user", "content": [{"type": "text", "text": "seven c"}]},
                {"role": "assistant", "content": "kel bam tis "},
                {"role": "user", "content": "go on"},
            ]}),
        );
        assert_eq!(second[..with_answer.0.len()], with_answer.0[..]);
    }

    #[test]
    fn limits_are_read_where_each_api_has_them() {
        for (api, body) in [
            (Api::Chat, json!({"messages": "x", "max_completion_tokens": 7})),
            (Api::Completions, json!({"prompt": "x", "max_tokens": 7})),
            (Api::Responses, json!({"input": "x", "max_output_tokens": 7})),
            (Api::SglangGenerate, json!({"text": "x", "sampling_params": {"max_new_tokens": 7}})),
            (Api::TgiGenerate, json!({"inputs": "x", "parameters": {"max_new_tokens": 7}})),
        ] {
            assert_eq!(Ask::parse(api, &body).unwrap().tokens_max, Some(7), "{api:?}");
        }
    }

    #[test]
    fn a_completion_takes_texts_ids_and_lists_of_them() {
        let prompts = |prompt| plain(&prompt).iter().map(Tokens::len).collect::<Vec<_>>();
        assert_eq!(prompts(json!("12345")), [2]);
        assert_eq!(prompts(json!([1, 2, 3])), [3]);
        assert_eq!(prompts(json!(["1234", "12345678"])), [1, 2]);
        assert_eq!(prompts(json!([[1, 2], [3]])), [2, 1]);
    }

    #[test]
    fn a_request_without_a_prompt_is_refused() {
        for body in [json!({}), json!({"messages": []}), json!({"messages": 3})] {
            assert_eq!(Ask::parse(Api::Chat, &body).unwrap_err().status, 400, "{body}");
        }
    }
}

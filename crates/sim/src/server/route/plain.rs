//! Answers that take the engine no time.

use serde_json::Value;
use tokio::time::sleep;

use super::{Target, json_body};
use crate::dialect::{Api, ApiError, Ask};
use crate::server::{Shared, models};
use crate::tokens::Tokens;
use crate::wire::Request;

pub(super) async fn answer(
    server: &Shared,
    target: Target,
    path: &str,
    request: &Request,
) -> Result<String, ApiError> {
    let body = || json_body(request);
    let answer = match target {
        Target::Health => return Ok(String::new()),
        Target::Models => server.models(),
        Target::Model => server.model(&percent_decoded(path.trim_start_matches("/v1/models/")))?,
        Target::About => server.about(),
        Target::Tokenize => {
            let body = body()?;
            let prompt = text_or_conversation(&body)?;
            server.tokenize(&body, &prompt)
        }
        Target::Detokenize => models::detokenize(&body()?),
        Target::CountTokens => {
            let ask = Ask::parse(Api::Messages, &body()?)?;
            server.resolve(ask.model.as_deref())?;
            let tokens: u32 = ask.prompts.iter().map(Tokens::len).sum();
            serde_json::json!({"input_tokens": tokens})
        }
        Target::LoadAdapter => {
            let body = body()?;
            sleep(server.load_adapter(&body)?).await;
            let name = body["lora_name"].as_str().unwrap_or_default();
            return Ok(format!("Success: LoRA adapter '{name}' added successfully."));
        }
        Target::UnloadAdapter => return server.unload_adapter(&body()?),
        Target::Generate(_) | Target::Pool(_) | Target::Metrics | Target::Admin => Value::Null,
    };
    Ok(answer.to_string())
}

fn text_or_conversation(body: &Value) -> Result<Tokens, ApiError> {
    let api = if body["messages"].is_array() { Api::Chat } else { Api::Completions };
    let ask = Ask::parse(api, body)?;
    ask.prompts.into_iter().next().ok_or_else(|| ApiError::bad_request("Nothing to tokenize."))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = others.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            _ => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

//! The answers to `/v1/models`: one list over all pools, adapters included.

use bytes::Bytes;
use serde::Serialize;

/// One model or adapter that clients can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCard {
    pub id: String,
    pub owned_by: String,
    /// For an adapter: its base model.
    pub parent: Option<String>,
    /// Tokens of context, as the engine says.
    pub max_model_len: Option<u64>,
    /// Seconds since 1970.
    pub created: u64,
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Card<'a>>,
}

/// OpenAI's four fields, then those that vLLM adds.
#[derive(Serialize)]
struct Card<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'a str,
    root: &'a str,
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_model_len: Option<u64>,
}

impl<'a> From<&'a ModelCard> for Card<'a> {
    fn from(card: &'a ModelCard) -> Self {
        Self {
            id: &card.id,
            object: "model",
            created: card.created,
            owned_by: &card.owned_by,
            root: &card.id,
            parent: card.parent.as_deref(),
            max_model_len: card.max_model_len,
        }
    }
}

/// The list object, in the order given.
pub fn list(cards: &[ModelCard]) -> Bytes {
    json(&List { object: "list", data: cards.iter().map(Card::from).collect() })
}

/// One model object.
pub fn card(card: &ModelCard) -> Bytes {
    json(&Card::from(card))
}

fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("strings and numbers always serialise").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_listed_as_openai_objects() {
        let base = ModelCard {
            id: "org/base".into(),
            owned_by: "vllm".into(),
            parent: None,
            max_model_len: Some(32768),
            created: 1_700_000_000,
        };
        let adapter = ModelCard {
            id: "sql".into(),
            parent: Some("org/base".into()),
            max_model_len: None,
            ..base.clone()
        };
        let base_json = r#"{"id":"org/base","object":"model","created":1700000000,"owned_by":"vllm","root":"org/base","parent":null,"max_model_len":32768}"#;
        let adapter_json = r#"{"id":"sql","object":"model","created":1700000000,"owned_by":"vllm","root":"sql","parent":"org/base"}"#;
        assert_eq!(card(&base), base_json);
        assert_eq!(
            list(&[base, adapter]),
            format!(r#"{{"object":"list","data":[{base_json},{adapter_json}]}}"#)
        );
        assert_eq!(list(&[]), r#"{"object":"list","data":[]}"#);
    }
}

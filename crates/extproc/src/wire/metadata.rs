//! Metadata: values by namespace and key.

use std::collections::{BTreeMap, HashMap};

use prost_types::value::Kind;
use prost_types::{Struct, Value};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Metadata {
    #[prost(map = "string, message", tag = "1")]
    pub filter_metadata: HashMap<String, Struct>,
}

/// A value that is text.
pub fn string(text: impl Into<String>) -> Value {
    Value { kind: Some(Kind::StringValue(text.into())) }
}

/// A structure of these fields.
pub fn structure<const N: usize>(fields: [(&str, Value); N]) -> Struct {
    let fields: BTreeMap<_, _> =
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Struct { fields }
}

/// The text below `key`.
pub fn string_field<'a>(of: &'a Struct, key: &str) -> Option<&'a str> {
    match of.fields.get(key)?.kind.as_ref()? {
        Kind::StringValue(text) => Some(text),
        _ => None,
    }
}

/// The texts below `key`: a list, or one text with commas. `None` when there is no such key; what
/// is no text in a list is skipped.
pub fn list_field<'a>(of: &'a Struct, key: &str) -> Option<Vec<&'a str>> {
    let texts = match of.fields.get(key)?.kind.as_ref() {
        Some(Kind::ListValue(list)) => list
            .values
            .iter()
            .filter_map(|value| match value.kind.as_ref()? {
                Kind::StringValue(text) => Some(text.trim()),
                _ => None,
            })
            .collect(),
        Some(Kind::StringValue(text)) => text.split(',').map(str::trim).collect(),
        _ => Vec::new(),
    };
    Some(texts)
}

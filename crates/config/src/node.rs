//! A document as a tree that remembers where each value stands.
//!
//! Deserialising into structs would end at the first mistake; the tree lets the later steps find
//! them all. Input is bounded in bytes, depth and nodes, and aliases in what they expand to.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, MergeKeyPolicy, Spanned};

/// Where a value stands in the text. Line and column from 1, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) width: usize,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        Self {
            line: u32::try_from(location.line()).unwrap_or(u32::MAX),
            column: u32::try_from(location.column()).unwrap_or(u32::MAX),
            width: usize::try_from(location.span().len()).unwrap_or(usize::MAX),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Flag(bool),
    Integer(i128),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    /// In document order; keys may repeat, which the schema check reports.
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) place: Place,
    pub(crate) text: String,
}

impl Node {
    /// The value of a map's key, the first if it repeats. A null value counts as absent, as it
    /// does for Kubernetes.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        let (_, node) = entries.iter().find(|(known, _)| known.text == key)?;
        (!matches!(node.value, Value::Null)).then_some(node)
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Value {
    /// Whether it is the scalar that the schema writes as `text`.
    pub(crate) fn is(&self, text: Option<&str>) -> bool {
        text.is_some_and(|text| match self {
            Self::Flag(flag) => flag.to_string() == text,
            Self::Integer(number) => number.to_string() == text,
            Self::Text(own) => own == text,
            _ => false,
        })
    }

    /// What stands there, for messages: "text `abc`", "a list".
    pub(crate) fn found(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Flag(flag) => format!("`{flag}`"),
            Self::Integer(number) => format!("the number {number}"),
            Self::Number(number) => format!("the number {number}"),
            Self::Text(text) => format!("the text `{}`", shortened(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// At most 40 characters of a text that came from the document, without line breaks.
pub(crate) fn shortened(text: &str) -> String {
    let mut short: String =
        text.chars().take(40).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { place: spanned.referenced.into(), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Integer(number.into()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Value, E> {
        Ok(i128::try_from(number).map_or(Value::Number(number as f64), Value::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Node, Node>()? {
            let text = match key.value {
                Value::Text(text) => text,
                other => other.found(),
            };
            map.push((Key { place: key.place, text }, value));
        }
        Ok(Value::Map(map))
    }
}

/// Containers within containers that a document may have; the schema needs 9.
pub(crate) const DEPTH_MAX: usize = 32;

/// Scalars, lists and mappings together; 16,384 schedulers with an endpoint each need 180,000.
pub(crate) const NODES_MAX: usize = 400_000;

/// The text's documents, empty ones left out.
pub(crate) fn read(text: &str) -> Result<Vec<Node>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_documents: 16,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Merge,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

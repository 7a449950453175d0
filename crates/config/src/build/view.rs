//! Reads values out of the tree; what is absent or of another type is `None`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use types::{Priority, Ratio};

use crate::format;
use crate::node::{Node, Place, Value};

/// A value that may not be there.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(Option<&'a Node>);

impl<'a> View<'a> {
    pub(crate) fn new(node: Option<&'a Node>) -> Self {
        Self(node)
    }

    pub(crate) fn get(self, key: &str) -> Self {
        Self(self.0.and_then(|node| node.get(key)))
    }

    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        self.0.map(Node::items).unwrap_or_default().iter().map(|node| Self(Some(node)))
    }

    pub(crate) fn item(self, index: usize) -> Self {
        Self(self.0.and_then(|node| node.items().get(index)))
    }

    pub(crate) fn present(self) -> Option<Self> {
        self.0.map(|_| self)
    }

    pub(crate) fn is_present(self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn node(self) -> Option<&'a Node> {
        self.0
    }

    /// Where it stands; nowhere if it is absent.
    pub(crate) fn place(self) -> Place {
        self.0.map(|node| node.place).unwrap_or_default()
    }

    pub(crate) fn flag(self) -> Option<bool> {
        match self.0?.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    pub(crate) fn integer<T: TryFrom<i128>>(self) -> Option<T> {
        match self.0?.value {
            Value::Integer(number) => T::try_from(number).ok(),
            _ => None,
        }
    }

    pub(crate) fn positive(self) -> Option<NonZeroU32> {
        self.integer().and_then(NonZeroU32::new)
    }

    pub(crate) fn ratio(self) -> Option<Ratio> {
        match self.0?.value {
            Value::Integer(0) => Some(Ratio::ZERO),
            Value::Integer(1) => Some(Ratio::ONE),
            Value::Number(number) => Ratio::new(number).ok(),
            _ => None,
        }
    }

    /// A finite number, whole or not.
    pub(crate) fn number(self) -> Option<f64> {
        match self.0?.value {
            Value::Integer(number) => Some(number as f64),
            Value::Number(number) => Some(number).filter(|number| number.is_finite()),
            _ => None,
        }
    }

    pub(crate) fn bytes<T: TryFrom<u64>>(self) -> Option<T> {
        let bytes = match &self.0?.value {
            Value::Integer(number) => u64::try_from(*number).ok()?,
            Value::Text(text) => format::bytes(text)?,
            _ => return None,
        };
        T::try_from(bytes).ok()
    }

    pub(crate) fn duration(self) -> Option<Duration> {
        format::duration(self.word()?)
    }

    /// A name or a number.
    pub(crate) fn priority(self) -> Option<Priority> {
        self.integer().map(Priority).or_else(|| Priority::parse(self.word()?))
    }

    pub(crate) fn word(self) -> Option<&'a str> {
        self.0?.text()
    }

    pub(crate) fn text(self) -> Option<String> {
        self.word().map(str::to_owned)
    }

    pub(crate) fn texts(self) -> Vec<String> {
        self.items().filter_map(Self::text).collect()
    }

    pub(crate) fn parsed<T: std::str::FromStr>(self) -> Option<T> {
        self.word()?.parse().ok()
    }

    pub(crate) fn labels(self) -> BTreeMap<String, String> {
        let Some(Node { value: Value::Map(entries), .. }) = self.0 else { return BTreeMap::new() };
        let pair = |(key, node): &(crate::node::Key, Node)| {
            Some((key.text.clone(), node.text()?.to_owned()))
        };
        entries.iter().filter_map(pair).collect()
    }
}

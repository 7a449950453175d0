//! What all resources have.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty: that in which the gateway is at home.
    pub namespace: String,
    pub name: String,
}

/// A text that is no `[NAMESPACE/]NAME`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no NAME or NAMESPACE/NAME of a resource")]
pub struct KeyError(String);

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let fits = |part: &str| {
            let bytes_fit =
                part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
            !part.is_empty() && part.len() <= 253 && bytes_fit
        };
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) if fits(namespace) => (namespace, name),
            None => ("", text),
            Some(_) => return Err(KeyError(text.to_owned())),
        };
        if !fits(name) {
            return Err(KeyError(text.to_owned()));
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Key {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// `None` for an object without a name, which the API server never sends.
    pub(super) fn of(object: &DynamicObject) -> Option<Self> {
        let name = object.metadata.name.clone()?;
        Some(Self { namespace: object.metadata.namespace.clone().unwrap_or_default(), name })
    }

    /// What it is called by a gateway at home in `home`: without its namespace there.
    pub(super) fn seen_from(&self, home: &str) -> String {
        if self.namespace == home { self.name.clone() } else { self.to_string() }
    }
}

/// A resource, as far as we read it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object<S> {
    pub(super) key: Key,
    pub(super) generation: i64,
    /// Seconds since 1970.
    pub(super) created: i64,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) spec: S,
    /// As it is; `null` if there is none.
    pub(super) status: Value,
}

impl<S: DeserializeOwned> Object<S> {
    /// # Errors
    /// Its `spec` is not of this kind, or it has no name.
    pub(super) fn read(mut object: DynamicObject) -> Result<Self, serde_json::Error> {
        let key = Key::of(&object).unwrap_or_else(|| Key::new("", ""));
        let metadata = object.metadata;
        let mut take =
            |field: &str| object.data.get_mut(field).map(Value::take).unwrap_or_default();
        Ok(Self {
            key,
            generation: metadata.generation.unwrap_or_default(),
            created: metadata.creation_timestamp.map_or(0, |time| time.0.as_second()),
            resource_version: metadata.resource_version.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            spec: serde_json::from_value(take("spec"))?,
            status: take("status"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_named_with_or_without_its_namespace() {
        assert_eq!("chat".parse(), Ok(Key::new("", "chat")));
        assert_eq!("models/chat".parse(), Ok(Key::new("models", "chat")));
        for wrong in ["", "/", "a/", "/a", "a/b/c", "a b", "a\n"] {
            let error = wrong.parse::<Key>().unwrap_err();
            assert!(error.to_string().contains("NAMESPACE/NAME"), "{wrong:?}");
        }
    }

    #[test]
    fn at_home_the_namespace_is_left_out() {
        let key = Key::new("models", "chat");
        assert_eq!(key.seen_from("models"), "chat");
        assert_eq!(key.seen_from("web"), "models/chat");
    }
}

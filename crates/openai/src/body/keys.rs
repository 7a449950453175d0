//! The keys of the top-level object: each once, and each read the same by every reader.

use std::borrow::Cow;

use super::decode::decoded;
use super::scanner::Literal;
use super::{BodyError, BodyErrorKind, field};
use crate::Route;

/// Longest top-level key. Engines know none near it; it bounds the search for duplicates.
const KEY_BYTES_MAX: usize = 1024;

/// The top-level keys so far, decoded: `"\u006dodel"` is `model`.
pub(super) struct Keys<'a> {
    seen: Vec<Cow<'a, str>>,
    count_max: usize,
}

impl<'a> Keys<'a> {
    pub(super) fn new(count_max: usize) -> Self {
        Self { seen: Vec::with_capacity(16), count_max }
    }

    /// The decoded key. Refuses one that was given before or that readers would disagree about.
    pub(super) fn add(
        &mut self,
        route: Route,
        body: &'a [u8],
        key: &Literal,
    ) -> Result<Cow<'a, str>, BodyError> {
        let at = key.inside.start - 1;
        if key.inside.len() > KEY_BYTES_MAX {
            return Err(BodyError::json(at, "a field name may have 1024 bytes"));
        }
        let text = decoded(body, key)
            .ok_or_else(|| BodyError::json(at, "a field name holds half of a surrogate pair"))?;
        if let Some(name) = field::misspelt(route, &text) {
            let wanted = "write it in lower case";
            return Err(BodyError::new(BodyErrorKind::MisspeltField, at, wanted).about(name));
        }
        if self.seen.contains(&text) {
            let error = BodyError::new(BodyErrorKind::DuplicateField, at, "give each field once");
            let known = field::of(route, text.as_bytes());
            return Err(BodyError { param: known.map(|(_, name)| name), ..error });
        }
        if self.seen.len() >= self.count_max {
            let wanted = "send fewer top-level fields";
            return Err(BodyError::new(BodyErrorKind::TooManyFields, at, wanted));
        }
        self.seen.push(text.clone());
        Ok(text)
    }
}

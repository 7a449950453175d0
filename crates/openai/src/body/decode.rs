//! Turns string literals into text; only for the few that are read.

use std::borrow::Cow;

use super::scanner::Literal;

/// The text of a literal, or `None` when it holds half of a surrogate pair.
pub(super) fn decoded<'a>(body: &'a [u8], literal: &Literal) -> Option<Cow<'a, str>> {
    if literal.escaped {
        return serde_json::from_slice(body.get(literal.with_quotes())?).ok().map(Cow::Owned);
    }
    std::str::from_utf8(body.get(literal.inside.clone())?).ok().map(Cow::Borrowed)
}

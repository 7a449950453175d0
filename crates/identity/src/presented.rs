//! What a request shows of itself.

use crate::{Certificate, Denied};

/// Credentials as they came; nothing of it is verified but the certificate.
#[derive(Clone, Copy, Default)]
pub struct Presented<'a> {
    pub authorization: Option<&'a [u8]>,
    /// Where Anthropic's SDKs put a key.
    pub x_api_key: Option<&'a [u8]>,
    /// Where Azure's put it.
    pub api_key: Option<&'a [u8]>,
    /// What the client proved to hold the key of.
    pub certificate: Option<&'a Certificate>,
    /// The request only asks which models there are.
    pub lists_models: bool,
}

/// The one secret that a request shows in its header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secret<'a> {
    Token(&'a str),
    Key(&'a str),
}

/// Longest secret that is looked at, bytes. Tokens with many groups reach 8 KiB.
const SECRET_BYTES_MAX: usize = 16 * 1024;

impl<'a> Presented<'a> {
    /// The secret, if there is one.
    ///
    /// One that stands in several fields is one; different ones are not weighed against each other,
    /// since whoever stands before or behind us might choose another.
    pub(crate) fn secret(&self) -> Result<Option<Secret<'a>>, Denied> {
        let bearer = self.authorization.map(bearer).transpose()?;
        let mut found: Option<&[u8]> = bearer;
        for other in [self.x_api_key, self.api_key].into_iter().flatten() {
            let other = other.trim_ascii();
            if found.is_some_and(|first| first != other) {
                return Err(Denied::Ambiguous);
            }
            found = Some(other);
        }
        let Some(found) = found else { return Ok(None) };
        let text = std::str::from_utf8(found).map_err(|_| Denied::Malformed)?;
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > SECRET_BYTES_MAX || !is_plain {
            return Err(Denied::Malformed);
        }
        Ok(Some(if is_token(text) { Secret::Token(text) } else { Secret::Key(text) }))
    }
}

/// What stands after `Bearer`, in any letter case (RFC 9110 §11.1).
fn bearer(value: &[u8]) -> Result<&[u8], Denied> {
    let value = value.trim_ascii();
    match value.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => Ok(rest.trim_ascii()),
        _ => Err(Denied::Malformed),
    }
}

/// Whether it looks like a JWS in its compact form: three parts, the first one an object.
fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret<'a>(
        authorization: &'a str,
        x_api_key: &'a str,
    ) -> Result<Option<Secret<'a>>, Denied> {
        let field = |value: &'a str| (!value.is_empty()).then_some(value.as_bytes());
        let (authorization, x_api_key) = (field(authorization), field(x_api_key));
        Presented { authorization, x_api_key, ..Presented::default() }.secret()
    }

    #[test]
    fn a_key_is_found_wherever_an_sdk_puts_it() {
        for (authorization, x_api_key) in
            [("Bearer wg-a", ""), ("bearer  wg-a ", ""), ("", "wg-a"), ("BEARER wg-a", "wg-a")]
        {
            assert!(secret(authorization, x_api_key) == Ok(Some(Secret::Key("wg-a"))));
        }
        assert!(secret("", "") == Ok(None));
    }

    #[test]
    fn different_secrets_in_one_request_are_refused() {
        assert!(secret("Bearer wg-a", "wg-b") == Err(Denied::Ambiguous));
    }

    #[test]
    fn what_is_no_bearer_token_is_malformed() {
        for value in
            ["Basic dXNlcjpwYXNz", "wg-a", "Bearer", "Bearer ", "Bearer a b", "Bearer \u{e4}"]
        {
            assert!(secret(value, "") == Err(Denied::Malformed), "{value}");
        }
        let long = format!("Bearer {}", "x".repeat(SECRET_BYTES_MAX + 1));
        assert!(secret(&long, "") == Err(Denied::Malformed));
    }

    #[test]
    fn three_parts_of_which_the_first_is_an_object_are_a_token() {
        assert!(secret("Bearer eyJh.eyJi.c", "") == Ok(Some(Secret::Token("eyJh.eyJi.c"))));
        assert!(secret("Bearer eyJh.eyJi", "") == Ok(Some(Secret::Key("eyJh.eyJi"))));
    }
}

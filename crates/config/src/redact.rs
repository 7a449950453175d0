//! Nothing that is printed of a document shows who it lets in: a URL may hold a user name and a password.

use std::borrow::Cow;

/// Ends a URL's text wherever it is quoted.
const ENDS: [char; 5] = ['"', '\'', '`', '<', '>'];

/// The text with `*` for each character between `://` and the last `@` of each URL, so that places in it stay.
///
/// The last one, because passwords are written with an `@` or a `/` in them that should have been escaped: such a URL
/// is wrong, and is shown for that reason.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    if !text.contains("://") || !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let (before, after) = rest.split_at(scheme + 3);
        shown.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || ENDS.contains(&c));
        let url = &after[..end.unwrap_or(after.len())];
        // A list without spaces between its URLs: each has its own.
        let own = url.find("://").and_then(|next| url[..next].rfind(',')).unwrap_or(url.len());
        let hidden = url[..own].rfind('@').unwrap_or(0);
        shown.extend(url[..hidden].chars().map(|_| '*'));
        rest = &after[hidden..];
        let (host, next) = rest.split_at(own - hidden);
        shown.push_str(host);
        rest = next;
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_between_the_scheme_and_the_host_of_a_url_is_shown() {
        for (text, shown) in [
            ("url: redis://:secret@store:6379/0", "url: redis://*******@store:6379/0"),
            ("url: \"redis://u:p@h\" # x@y", "url: \"redis://***@h\" # x@y"),
            ("`https://u:p/w@rd@h/p` is no URL", "`https://********@h/p` is no URL"),
            ("[http://a:b@c,http://d:e@f]", "[http://***@c,http://***@f]"),
            ("http://h/p mail x@y.z", "http://h/p mail x@y.z"),
            ("no url, a@b", "no url, a@b"),
            ("redis://ü:é@h", "redis://***@h"),
        ] {
            assert_eq!(redact(text), shown);
            assert_eq!(redact(text).chars().count(), text.chars().count());
        }
    }
}

//! Texts with a form: durations, sizes, names, paths, addresses.

use std::net::SocketAddr;
use std::time::Duration;

use types::{AddressError, EndpointAddress};

/// What a text must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// 1 to this many characters.
    Any(usize),
    /// Names objects of a cluster and metrics: `a-z`, `0-9` and `-`, at most 63.
    DnsLabel,
    /// Labels joined by dots, at most 253.
    DnsName,
    Https,
    /// An endpoint, `http://HOST:PORT`.
    EndpointUrl,
    /// `IP:PORT`.
    SocketAddress,
    /// The path of a URL, exact.
    HttpPath,
    File,
    /// `stdout`, `stderr`, `off` or a file.
    LogTarget,
}

impl Format {
    /// `Err`: what is wrong with it, and how to mend it if that is not plain.
    pub(crate) fn check(self, text: &str) -> Result<(), (String, Option<String>)> {
        let shown = crate::node::shortened(text);
        let plain = |message: String| Err((message, None));
        let hinted = |message: String, hint: &str| Err((message, Some(hint.to_owned())));
        let length = text.chars().count();
        match self {
            _ if text.is_empty() => plain("must not be empty".to_owned()),
            Self::Any(max) if length > max => {
                plain(format!("has {length} characters, at most {max} are allowed"))
            }
            Self::Any(_) | Self::File | Self::LogTarget => {
                if text.chars().any(char::is_control) {
                    return plain("must not contain control characters".to_owned());
                }
                Ok(())
            }
            Self::DnsLabel if length > 63 => {
                plain(format!("has {length} characters, at most 63 are allowed"))
            }
            Self::DnsLabel if !is_dns_label(text) => hinted(
                format!("`{shown}` is no name"),
                "use a-z, 0-9 and `-`, beginning and ending with a letter or digit",
            ),
            Self::DnsName if length > 253 => {
                plain(format!("has {length} characters, at most 253 are allowed"))
            }
            Self::DnsName if !text.split('.').all(is_dns_label) => hinted(
                format!("`{shown}` is no name"),
                "use a-z, 0-9, `-` and `.`, beginning and ending with a letter or digit",
            ),
            Self::DnsLabel | Self::DnsName => Ok(()),
            Self::Https => match text.strip_prefix("https://") {
                Some(rest) if !rest.is_empty() && !rest.starts_with('/') && is_visible(rest) => {
                    Ok(())
                }
                _ => hinted(format!("`{shown}` is no https URL"), "write https://HOST/PATH"),
            },
            Self::EndpointUrl => match text.parse::<EndpointAddress>() {
                Ok(_) => Ok(()),
                // This one's text tells how to mend it already.
                Err(error @ AddressError::NoScheme(_)) => plain(error.to_string()),
                Err(error) => hinted(error.to_string(), "write http://HOST:PORT"),
            },
            Self::SocketAddress => match text.parse::<SocketAddr>() {
                Ok(_) => Ok(()),
                Err(_) => hinted(
                    format!("`{shown}` is no address to listen on"),
                    "write IP:PORT, such as 0.0.0.0:8080, 127.0.0.1:8080 or [::]:8080",
                ),
            },
            Self::HttpPath => match path_fault(text) {
                None => Ok(()),
                Some(fault) => hinted(
                    format!("`{shown}` {fault}"),
                    "paths are compared byte for byte: write the exact path, such as /v1/rerank",
                ),
            },
        }
    }
}

fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_visible(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic())
}

fn path_fault(text: &str) -> Option<&'static str> {
    if !text.starts_with('/') {
        return Some("does not begin with `/`");
    }
    if !is_visible(text) || text.contains(['?', '#', '%', ';', '\\', '*', '{', '}']) {
        return Some("contains a character that an exact path cannot have");
    }
    let ambiguous = |segment: &str| segment.is_empty() || segment == "." || segment == "..";
    let inner = text[1..].strip_suffix('/').unwrap_or(&text[1..]);
    (inner.split('/').any(ambiguous) && text != "/").then_some("has an empty, `.` or `..` segment")
}

/// The Gateway API's durations (GEP-2257): one to four times a number of at most five digits with
/// `h`, `m`, `s` or `ms`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    for part in 0.. {
        if rest.is_empty() {
            return (part > 0).then_some(total);
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        if part == 4 || !(1..=5).contains(&digits) {
            return None;
        }
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += match &rest[..unit] {
            "h" => Duration::from_secs(number * 3600),
            "m" => Duration::from_secs(number * 60),
            "s" => Duration::from_secs(number),
            "ms" => Duration::from_millis(number),
            _ => return None,
        };
        rest = &rest[unit..];
    }
    None
}

/// As [`duration`] reads it.
pub(crate) fn show_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        _ if millis.is_multiple_of(3_600_000) => format!("{}h", millis / 3_600_000),
        _ if millis.is_multiple_of(60_000) => format!("{}m", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        _ => format!("{millis}ms"),
    }
}

/// A size with a unit: `64KiB`, `64Ki`, `64kB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim_start() {
        "B" => 1,
        "kB" | "KB" | "k" => 1_000,
        "KiB" | "Ki" => 1 << 10,
        "MB" | "M" => 1_000_000,
        "MiB" | "Mi" => 1 << 20,
        "GB" | "G" => 1_000_000_000,
        "GiB" | "Gi" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// As [`bytes`] reads it.
pub(crate) fn show_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_the_gateway_api_defines_them() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("30s", 30_000), ("1h1m1s1ms", 3_661_001), ("10m", 600_000)]
        {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "30", "s", "1.5s", "-1s", "1d", "100000s", "1s1s1s1s1s", "1 s", "1S", "ü"]
        {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_read_in_binary_and_decimal_units() {
        assert_eq!(bytes("64KiB"), Some(65_536));
        assert_eq!(bytes("64Ki"), Some(65_536));
        assert_eq!(bytes("10 MB"), Some(10_000_000));
        for text in ["", "MiB", "10", "1.5MiB", "10mib", "99999999999999999999GiB", "-1MiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for millis in [0, 1, 999, 1_000, 61_000, 120_000, 7_200_000] {
            let value = Duration::from_millis(millis);
            assert_eq!(duration(&show_duration(value)), Some(value));
        }
        for size in [1 << 10, 3 << 20, 1 << 30] {
            assert_eq!(bytes(&show_bytes(size)), Some(size));
        }
    }

    #[test]
    fn a_path_that_could_be_read_in_two_ways_is_refused() {
        for path in
            ["v1", "/a//b", "/a/../b", "/a/.", "/a%2fb", "/a;b", "/a?b", "/a b", "/a\\b", "/ä"]
        {
            assert!(Format::HttpPath.check(path).is_err(), "{path}");
        }
        for path in ["/", "/v1/rerank", "/v1/rerank/", "/a.b/c-d_e"] {
            assert!(Format::HttpPath.check(path).is_ok(), "{path}");
        }
    }
}

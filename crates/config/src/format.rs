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
    /// 1 to 256 bytes of printable ASCII without a space at either end: what a body's `model` can be.
    ModelName,
    /// A collector, `http://` or `https://`, HOST, with or without port and path.
    CollectorUrl,
    /// An endpoint, `http://HOST:PORT`.
    EndpointUrl,
    /// Another cluster's gateway, `http://HOST:PORT` or `https://HOST:PORT`.
    ClusterUrl,
    /// A time of the day, `HH:MM`.
    TimeOfDay,
    /// `IP:PORT`.
    SocketAddress,
    /// `HOST:PORT`, a name or an address.
    HostPort,
    /// The path of a URL, exact.
    HttpPath,
    File,
    /// `stdout`, `stderr`, `off` or a file.
    LogTarget,
    /// A variable of the environment.
    EnvName,
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
            Self::ModelName if text.len() > 256 => {
                plain(format!("has {length} characters, at most 256 are allowed"))
            }
            Self::ModelName if !is_model_name(text) => hinted(
                format!("`{shown}` cannot be a model's name"),
                "use printable ASCII, without a space at the beginning or the end",
            ),
            Self::ModelName => Ok(()),
            Self::Https => match text.strip_prefix("https://") {
                Some(rest) if !rest.is_empty() && !rest.starts_with('/') && is_visible(rest) => {
                    Ok(())
                }
                _ => hinted(format!("`{shown}` is no https URL"), "write https://HOST/PATH"),
            },
            Self::CollectorUrl => {
                let rest = text.strip_prefix("http://").or(text.strip_prefix("https://"));
                let authority = rest.and_then(|rest| rest.split('/').next());
                let fits = |authority: &str| {
                    !authority.is_empty()
                        && is_visible(text)
                        && !authority.contains('@')
                        && !text.contains(['?', '#'])
                };
                if authority.is_some_and(fits) {
                    return Ok(());
                }
                hinted(
                    format!("`{shown}` is no collector"),
                    "write http://HOST:4318 or https://HOST",
                )
            }
            Self::EndpointUrl => match text.parse::<EndpointAddress>() {
                Ok(_) => Ok(()),
                // This one's text tells how to mend it already.
                Err(error @ AddressError::NoScheme(_)) => plain(error.to_string()),
                Err(error) => hinted(error.to_string(), "write http://HOST:PORT"),
            },
            Self::ClusterUrl => match EndpointAddress::of_cluster(text) {
                Ok(_) => Ok(()),
                Err(error @ AddressError::NoScheme(_)) => plain(error.to_string()),
                Err(error) => {
                    hinted(error.to_string(), "write https://HOST:PORT or http://HOST:PORT")
                }
            },
            Self::TimeOfDay if time_of_day(text).is_none() => hinted(
                format!("`{shown}` is no time of the day"),
                "write HH:MM in UTC, such as 22:30",
            ),
            Self::TimeOfDay => Ok(()),
            Self::SocketAddress => match text.parse::<SocketAddr>() {
                Ok(_) => Ok(()),
                Err(_) => hinted(
                    format!("`{shown}` is no address to listen on"),
                    "write IP:PORT, such as 0.0.0.0:8080, 127.0.0.1:8080 or [::]:8080",
                ),
            },
            Self::HostPort if !is_host_port(text) => hinted(
                format!("`{shown}` is no host with a port"),
                "write HOST:PORT, such as gateway-peers.default.svc:9004, 10.0.0.1:9004 or [fd00::1]:9004",
            ),
            Self::HostPort => Ok(()),
            Self::EnvName if !is_env_name(text) => hinted(
                format!("`{shown}` is no name of a variable"),
                "use A-Z, a-z, 0-9 and `_`, not beginning with a digit",
            ),
            Self::EnvName => Ok(()),
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

fn is_model_name(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim_matches(' ') == text
}

fn is_host_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_v6 = || {
        let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !host.is_empty() && host.chars().all(plain);
    port.parse::<u16>().is_ok_and(|port| port != 0) && (is_name || is_v6())
}

fn is_env_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
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

/// `HH:MM` as minutes from midnight.
pub(crate) fn time_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let of_day = hours * 60 + minutes;
    (minutes < 60 && of_day < 24 * 60).then_some(of_day)
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
    fn a_time_of_the_day_is_hours_and_minutes() {
        assert_eq!(time_of_day("00:00"), Some(0));
        assert_eq!(time_of_day("22:30"), Some(1350));
        for text in ["", "7:00", "24:00", "12:60", "ab:cd", "12", "12:00:00"] {
            assert_eq!(time_of_day(text), None, "{text}");
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

//! Who may change something: programs and people at a terminal, no page of another origin.
//!
//! The administration listener asks for no password, so a browser on the same machine must not be a
//! way in. A change needs `content-type: application/json`, which a page of another origin can only
//! send after a preflight that we do not answer; its `Origin`, if there is one, must be the host
//! that was asked; and that host an address or `localhost`, since a name can be made to point here
//! (DNS rebinding).

use std::net::IpAddr;

use crate::fields::{Class, Fields};

/// Why a change is refused; `None`: it may go on.
pub(super) fn objection(fields: &Fields) -> Option<&'static str> {
    let content_type = fields.get_str(Class::ContentType).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Some("changes are sent as `content-type: application/json`");
    }
    let host = fields.get_str(Class::Host).unwrap_or_default();
    match fields.find("origin") {
        None => None,
        Some(origin) if !is_address(host) || !is_same(origin, host) => {
            Some("changes from pages of another origin are refused")
        }
        Some(_) => None,
    }
}

fn is_same(origin: &[u8], host: &str) -> bool {
    let of_host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    of_host.is_some_and(|of_host| of_host.eq_ignore_ascii_case(host.as_bytes()))
}

/// Whether a host (with or without a port) is an address, or `localhost`.
fn is_address(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn fields(of: &[(&str, &str)]) -> Fields {
        let mut bytes = Vec::new();
        let mut places = Vec::new();
        for (name, value) in of {
            let from = bytes.len();
            bytes.extend_from_slice(name.as_bytes());
            let middle = bytes.len();
            bytes.extend_from_slice(value.as_bytes());
            places.push((from..middle, middle..bytes.len()));
        }
        let mut fields = Fields::with_bytes(Bytes::from(bytes));
        for (name, value) in places {
            fields.push(name, value);
        }
        fields
    }

    fn may(origin: Option<&str>, host: &str, content_type: &str) -> bool {
        let mut all = vec![("host", host), ("content-type", content_type)];
        all.extend(origin.map(|origin| ("origin", origin)));
        objection(&fields(&all)).is_none()
    }

    #[test]
    fn a_program_and_the_listeners_own_page_may() {
        let json = "application/json";
        assert!(may(None, "gateway-admin:9090", json));
        assert!(may(
            Some("http://127.0.0.1:9090"),
            "127.0.0.1:9090",
            "application/json; charset=utf-8"
        ));
        assert!(may(Some("http://localhost:9090"), "localhost:9090", json));
        assert!(may(Some("http://[::1]:9090"), "[::1]:9090", json));
    }

    #[test]
    fn a_page_of_another_origin_may_not() {
        let json = "application/json";
        for (origin, host) in [
            ("http://evil.example", "127.0.0.1:9090"),
            ("null", "127.0.0.1:9090"),
            ("http://127.0.0.1:8000", "127.0.0.1:9090"),
            // A name that points here: same origin to the browser.
            ("http://evil.example:9090", "evil.example:9090"),
            ("", ""),
        ] {
            assert!(!may(Some(origin), host, json), "{origin} at {host}");
        }
    }

    #[test]
    fn what_a_form_can_send_changes_nothing() {
        for content_type in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
        {
            assert!(!may(None, "127.0.0.1:9090", content_type), "{content_type}");
        }
    }
}

use proptest::prelude::*;

use super::*;

const LIMITS: HeadLimits =
    HeadLimits { bytes_max: 64 * 1024, fields_max: 100, target_bytes_max: 8192 };

fn judge(head: impl AsRef<[u8]>) -> Result<RequestHead, Turned> {
    read(Bytes::copy_from_slice(head.as_ref()), LIMITS)
}

fn status(head: impl AsRef<[u8]>) -> u16 {
    judge(head).map_or_else(|turned| turned.status, |_| 200)
}

fn post(fields: &str) -> String {
    format!("POST /v1/completions HTTP/1.1\r\nHost: gateway\r\n{fields}\r\n")
}

#[test]
fn a_plain_request_passes_with_all_its_fields() {
    let head = judge(post("Content-Length: 5\r\nX-Foo: bar\r\n")).unwrap();
    assert_eq!(head.body, BodyLength::Known(5));
    assert_eq!(head.path_and_query(), ("/v1/completions", None));
    assert!(!head.close && !head.expects_continue);
    let names: Vec<_> = head.fields.iter().map(|field| head.fields.name(field).to_vec()).collect();
    assert_eq!(names, [b"Host".to_vec(), b"Content-Length".to_vec(), b"X-Foo".to_vec()]);
    assert_eq!(head.fields.get(Class::Host), Some(&b"gateway"[..]));
}

#[test]
fn framing_that_could_be_read_in_two_ways_is_refused() {
    for (fields, expected) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", 400),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", 400),
        ("Content-Length: 5, 5\r\n", 400),
        ("Content-Length: 05\r\n", 400),
        ("Content-Length: +5\r\n", 400),
        ("Content-Length: 0x5\r\n", 400),
        ("Content-Length: 5 5\r\n", 400),
        ("Content-Length: \r\n", 400),
        ("Content-Length: 99999999999999999999\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 501),
        ("Transfer-Encoding: identity\r\n", 501),
        ("Transfer-Encoding: xchunked\r\n", 501),
        ("Transfer-Encoding: chunked, chunked\r\n", 400),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Content-Length : 5\r\n", 400),
        (" Content-Length: 5\r\n", 400),
        ("X-A: 1\r\n folded\r\n", 400),
    ] {
        assert_eq!(status(post(fields)), expected, "{fields:?}");
    }
    assert_eq!(status("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
}

#[test]
fn a_request_must_name_exactly_one_plain_host() {
    for (host, expected) in [
        ("", 400),
        ("Host: a\r\nHost: a\r\n", 400),
        ("Host: \r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: a/b\r\n", 400),
        ("Host: a@b\r\n", 400),
        ("Host: a?b\r\n", 400),
        ("Host: a#b\r\n", 400),
        ("Host: a\\b\r\n", 400),
        ("Host: gateway:8080\r\n", 200),
        ("Host: [::1]:8080\r\n", 200),
    ] {
        assert_eq!(status(format!("GET /v1/models HTTP/1.1\r\n{host}\r\n")), expected, "{host:?}");
    }
    let long = "a".repeat(256);
    assert_eq!(status(format!("GET / HTTP/1.1\r\nHost: {long}\r\n\r\n")), 400);
    assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), 200, "HTTP/1.0 has none");
}

#[test]
fn the_target_is_a_path_or_names_the_same_host() {
    for (target, expected) in [
        ("/v1/models?x=1", 200),
        ("http://gateway/v1/models", 200),
        ("HTTP://GATEWAY/v1/models", 200),
        ("http://other/v1/models", 400),
        ("http://gateway", 400),
        ("ftp://gateway/v1/models", 400),
        ("*", 400),
        ("v1/models", 400),
        ("/v1/models#top", 400),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: gateway\r\n\r\n");
        assert_eq!(status(head), expected, "{target}");
    }
    assert_eq!(status("CONNECT gateway:443 HTTP/1.1\r\nHost: gateway:443\r\n\r\n"), 405);
    let long = "a".repeat(9000);
    assert_eq!(status(format!("GET /{long} HTTP/1.1\r\nHost: gateway\r\n\r\n")), 414);
    let absolute = judge("GET http://gateway/v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n").unwrap();
    assert_eq!(absolute.path_and_query().0, "/v1/models");
}

#[test]
fn line_ends_and_characters_that_parsers_disagree_about_are_refused() {
    for head in [
        &b"GET / HTTP/1.1\nHost: a\n\n"[..],
        b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: caf\xe9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nx_gateway_destination_endpoint: b\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /caf\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(status(head), 400, "{}", String::from_utf8_lossy(head));
    }
    for version in ["HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3"] {
        let refused = status(format!("GET / {version}\r\nHost: a\r\n\r\n"));
        assert!(matches!(refused, 400 | 505), "{version}: {refused}");
    }
}

#[test]
fn the_head_is_bounded_in_fields() {
    let fields = |count: usize| (0..count).map(|n| format!("X-{n}: 1\r\n")).collect::<String>();
    assert_eq!(status(post(&fields(99))), 200);
    assert_eq!(status(post(&fields(100))), 431);
}

#[test]
fn fields_that_policy_reads_may_come_once() {
    for name in ["Authorization", "Content-Type", "X-Request-Id", "Expect", "X-Session-Id"] {
        let value = if name == "Expect" { "100-continue" } else { "a" };
        assert_eq!(status(post(&format!("{name}: {value}\r\n"))), 200, "{name}");
        assert_eq!(status(post(&format!("{name}: {value}\r\n{name}: {value}\r\n"))), 400, "{name}");
    }
}

#[test]
fn the_connection_field_cannot_take_framing_or_identity_away() {
    for (options, expected) in [
        ("close", 200),
        ("keep-alive, x-foo", 200),
        ("content-length", 400),
        ("host", 400),
        ("transfer-encoding", 400),
        ("Authorization", 400),
    ] {
        assert_eq!(status(post(&format!("Connection: {options}\r\n"))), expected, "{options}");
    }
    assert!(judge(post("Connection: close\r\n")).unwrap().close);
    assert!(judge("GET / HTTP/1.0\r\n\r\n").unwrap().close);
    assert!(!judge("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").unwrap().close);
}

#[test]
fn only_100_continue_can_be_expected_and_h2c_cannot_be_upgraded_to() {
    assert!(judge(post("Expect: 100-continue\r\n")).unwrap().expects_continue);
    assert_eq!(status(post("Expect: foo\r\n")), 417);
    assert_eq!(status(post("Upgrade: h2c\r\nConnection: upgrade\r\n")), 400);
    assert_eq!(status(post("Upgrade: websocket\r\nConnection: upgrade\r\n")), 200);
}

#[test]
fn the_end_of_a_head_is_found_across_any_split() {
    let bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nbody";
    let end = head_end(bytes, 0).unwrap();
    assert_eq!(&bytes[end..], b"body");
    for searched in 0..end {
        assert_eq!(head_end(bytes, searched), Some(end), "after {searched} bytes were searched");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_gate_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = judge(&bytes);
    }

    #[test]
    fn what_passes_has_one_reading(
        name in "[A-Za-z][A-Za-z0-9-]{0,12}",
        value in "[ -~]{0,24}",
    ) {
        if let Ok(head) = judge(post(&format!("{name}: {value}\r\n"))) {
            prop_assert!(head.fields.count(Class::Host) == 1);
            prop_assert!(head.fields.count(Class::ContentLength) + head.fields.count(Class::TransferEncoding) <= 1);
        }
    }
}

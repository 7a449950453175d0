//! The head of an endpoint's answer, read as strictly as a client's request.
//!
//! An endpoint is not trusted to frame its answers: what could be read in two ways would let one
//! client see another's answer on a reused connection.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::Bytes;

use crate::fields::{Class, Fields, place_of};
use crate::h1::{Chunked, parse_length};

/// Most fields in an answer's head.
const FIELDS_MAX: usize = 128;
/// Most bytes in an answer's head.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;

/// An answer's status and fields.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) fields: Fields,
}

/// How the body of an answer ends.
#[derive(Debug)]
pub(crate) enum Framing {
    Empty,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// Why no answer could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadFault {
    #[error("the endpoint closed the connection before it answered")]
    Closed,
    #[error("the endpoint's answer is not valid HTTP")]
    Malformed,
    #[error("the endpoint did not answer in time")]
    Timeout,
    #[error("the connection to the endpoint broke")]
    Io(#[source] std::io::Error),
}

/// Why an answer's body ended too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("the endpoint closed the connection in the middle of its answer")]
    Cut,
    #[error("the endpoint's answer is framed wrongly")]
    Framing,
}

/// What came of reading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Payload,
    End,
}

/// Result of looking for a head at the start of what was read.
pub(crate) enum Parsed {
    /// More bytes are needed.
    Partial,
    /// An interim answer (1xx) of this many bytes, to be passed over.
    Interim(usize),
    Head {
        head: ResponseHead,
        framing: Framing,
        keeps_alive: bool,
        length: usize,
    },
}

/// Reads the head of an answer.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, HeadFault> {
    let mut slots = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut slots) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_BYTES_MAX => {
            return Ok(Parsed::Partial);
        }
        _ => return Err(HeadFault::Malformed),
    };
    let (Some(status), Some(version)) = (parsed.code, parsed.version) else {
        return Err(HeadFault::Malformed);
    };
    match status {
        101 | 0..100 => return Err(HeadFault::Malformed),
        100..200 => return Ok(Parsed::Interim(length)),
        _ => {}
    }
    let mut fields = Fields::with_bytes(Bytes::copy_from_slice(&bytes[..length]));
    for field in parsed.headers.iter() {
        fields.push(place_of(bytes, field.name.as_bytes()), place_of(bytes, field.value));
    }
    let framing = framing(status, &fields)?;
    let keeps_alive = version == 1
        && !matches!(framing, Framing::UntilClose)
        && !fields.iter().any(|field| {
            field.class == Class::Connection
                && fields
                    .value(field)
                    .to_ascii_lowercase()
                    .split(|b| *b == b',')
                    .any(|o| o.trim_ascii() == b"close")
        });
    Ok(Parsed::Head { head: ResponseHead { status, fields }, framing, keeps_alive, length })
}

fn framing(status: u16, fields: &Fields) -> Result<Framing, HeadFault> {
    let lengths = fields.count(Class::ContentLength);
    let codings = fields.count(Class::TransferEncoding);
    if lengths > 1 || codings > 1 || (lengths == 1 && codings == 1) {
        return Err(HeadFault::Malformed);
    }
    if matches!(status, 204 | 304) {
        return Ok(Framing::Empty);
    }
    if codings == 1 {
        let coding = fields.get(Class::TransferEncoding).unwrap_or_default();
        return if coding.eq_ignore_ascii_case(b"chunked") {
            Ok(Framing::Chunked(Chunked::default()))
        } else {
            Err(HeadFault::Malformed)
        };
    }
    match fields.get(Class::ContentLength) {
        None => Ok(Framing::UntilClose),
        Some(digits) => match parse_length(digits).ok_or(HeadFault::Malformed)? {
            0 => Ok(Framing::Empty),
            length => Ok(Framing::Length(length)),
        },
    }
}

impl Framing {
    pub(crate) fn ended(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Length(remaining) => *remaining == 0,
            Self::Chunked(chunked) => chunked.ended(),
            Self::UntilClose => false,
        }
    }

    /// Reads on; gives runs of payload and answers how many bytes were used. Bytes beyond the end
    /// are not used: nobody asked for them.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        mut payload: impl FnMut(Range<usize>),
    ) -> Result<usize, BodyFault> {
        match self {
            Self::Empty => Ok(0),
            Self::UntilClose => {
                payload(0..input.len());
                Ok(input.len())
            }
            Self::Length(remaining) => {
                let run = usize::try_from(*remaining).map_or(input.len(), |r| r.min(input.len()));
                if run > 0 {
                    payload(0..run);
                }
                *remaining -= run as u64;
                Ok(run)
            }
            Self::Chunked(chunked) => chunked.read(input, payload).map_err(|_| BodyFault::Framing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(head: &str) -> &'static str {
        match parse(head.as_bytes()) {
            Err(_) => "refused",
            Ok(Parsed::Partial) => "partial",
            Ok(Parsed::Interim(_)) => "interim",
            Ok(Parsed::Head { framing, keeps_alive, .. }) => match (framing, keeps_alive) {
                (Framing::Empty, _) => "empty",
                (Framing::Length(_), true) => "length",
                (Framing::Chunked(_), true) => "chunked",
                (Framing::UntilClose, false) => "until close",
                _ => "length or chunked, then close",
            },
        }
    }

    #[test]
    fn an_answer_that_could_be_read_in_two_ways_is_refused() {
        for fields in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\n",
            "Content-Length: 3, 3\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: 03\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert_eq!(kind(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")), "refused", "{fields}");
        }
        assert_eq!(kind("HTTP/1.1 101 Switching Protocols\r\n\r\n"), "refused");
    }

    #[test]
    fn framing_follows_the_fields() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "chunked"),
            ("HTTP/1.1 200 OK\r\n\r\n", "until close"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", "length or chunked, then close"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: Close\r\n\r\n",
                "length or chunked, then close",
            ),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", "empty"),
            ("HTTP/1.1 103 Early Hints\r\n\r\n", "interim"),
            ("HTTP/1.1 200 OK\r\nContent-Le", "partial"),
        ] {
            assert_eq!(kind(head), expected, "{head:?}");
        }
    }
}

//! W3C Trace Context: `traceparent` read and written, and how much of what travels with it passes.
//!
//! Source: <https://www.w3.org/TR/trace-context/>, level 1 with the flags of level 2 passed over.

use std::fmt;

/// 128 bits, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// 64 bits, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What `traceparent` says: the trace, the span that is our parent, and whether it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace: TraceId,
    pub span: SpanId,
    pub sampled: bool,
}

/// Bytes of a `traceparent` of version 00.
const LENGTH: usize = 55;
const HEX: &[u8; 16] = b"0123456789abcdef";

impl TraceContext {
    /// Reads the value of a `traceparent`; `None` where the specification says to begin a new trace.
    /// Of later versions the first four fields are read.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let version = hex(value.get(..2)?)?;
        let is_longer = value.len() > LENGTH;
        if version == 0xff || (version == 0 && is_longer) || is_longer && value[LENGTH] != b'-' {
            return None;
        }
        let dash = |at: usize| value.get(at) == Some(&b'-');
        if !(dash(2) && dash(35) && dash(52)) {
            return None;
        }
        let trace = hex(value.get(3..35)?)?;
        let span = u64::try_from(hex(value.get(36..52)?)?).ok()?;
        let flags = hex(value.get(53..55)?)?;
        (trace != 0 && span != 0).then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            sampled: flags & 1 == 1,
        })
    }

    /// The value of a `traceparent`.
    pub fn to_header(self) -> [u8; LENGTH] {
        let mut out = *b"00-00000000000000000000000000000000-0000000000000000-00";
        for (at, digit) in out[3..35].iter_mut().rev().enumerate() {
            *digit = HEX[((self.trace.0 >> (4 * at)) & 15) as usize];
        }
        for (at, digit) in out[36..52].iter_mut().rev().enumerate() {
            *digit = HEX[((self.span.0 >> (4 * at)) & 15) as usize];
        }
        out[54] = HEX[usize::from(self.sampled)];
        out
    }
}

/// Lower-case digits only, as the specification demands.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0_u128, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u128::from(digit))
    })
}

/// Fields that travel with a `traceparent`. What is longer is left out as a whole: a part of a list could
/// mean something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baggage {
    /// `tracestate`: 512 bytes over all its fields.
    State,
    /// `baggage`: 8 KiB over all its fields.
    Baggage,
}

impl Baggage {
    /// Longest value that passes, bytes.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::State => 512,
            Self::Baggage => 8192,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_written_as_it_was_read() {
        for text in [GOOD, "00-0000000000000000000000000000000a-0000000000000001-00"] {
            let context = TraceContext::parse(text.as_bytes()).unwrap();
            assert_eq!(std::str::from_utf8(&context.to_header()), Ok(text));
        }
        let context = TraceContext::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(context.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span.to_string(), "00f067aa0ba902b7");
        assert!(context.sampled);
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = format!("cc{}-what-the-future-brings", &GOOD[2..]);
        assert_eq!(TraceContext::parse(later.as_bytes()), TraceContext::parse(GOOD.as_bytes()));
        assert!(TraceContext::parse(format!("cc{}", &GOOD[2..]).as_bytes()).is_some());
    }

    #[test]
    fn what_is_no_context_begins_a_new_trace() {
        for text in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.x",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\r\n",
        ] {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
    }
}

//! Takes HTTP/1.1's chunked framing off a body, however it was split.

/// How far the framing was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    SizeBegin,
    Size(u64),
    /// Behind the size: extensions, up to the line's end.
    Extension(u64),
    Data(u64),
    /// The line end behind the data.
    DataEnd,
    /// Within a trailer line of so many bytes.
    Trailer(usize),
    Over,
}

#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
}

/// The bytes are not chunked framing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Chunked {
    /// The last chunk and its trailers are read.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Reads on; hands the data to `sink` as it lies in `bytes`.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if let State::Data(left) = self.state {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                sink(&bytes[..length]);
                bytes = &bytes[length..];
                let left = left - length as u64;
                self.state = if left == 0 { State::DataEnd } else { State::Data(left) };
                continue;
            }
            bytes = rest;
            self.state = self.next(byte)?;
        }
        Ok(())
    }

    fn next(&self, byte: u8) -> Result<State, Malformed> {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        Ok(match (self.state, byte) {
            (State::SizeBegin, _) => State::Size(digit.ok_or(Malformed)?),
            (State::Size(0) | State::Extension(0), b'\n') => State::Trailer(0),
            (State::Size(size) | State::Extension(size), b'\n') => State::Data(size),
            (State::Size(size), b'\r' | b';' | b' ') => State::Extension(size),
            (State::Size(size), _) => {
                let size = size.checked_mul(16).ok_or(Malformed)?;
                State::Size(size + digit.ok_or(Malformed)?)
            }
            (State::Extension(size), _) => State::Extension(size),
            (State::DataEnd, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::SizeBegin,
            (State::Trailer(0), b'\n') => State::Over,
            (State::Trailer(_), b'\n') => State::Trailer(0),
            (State::Trailer(seen), b'\r') => State::Trailer(seen),
            (State::Trailer(seen), _) => State::Trailer(seen.saturating_add(1)),
            (State::DataEnd | State::Data(_) | State::Over, _) => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"5\r\nhello\r\n1;a=b\r\n \r\nA\r\nwide world\r\n0\r\nx: y\r\n\r\n";

    #[test]
    fn data_is_the_same_for_every_split() {
        for size in 1..BODY.len() {
            let (mut chunked, mut data) = (Chunked::default(), Vec::new());
            for piece in BODY.chunks(size) {
                assert!(!chunked.is_over());
                chunked.push(piece, |bytes| data.extend_from_slice(bytes)).unwrap();
            }
            assert!(chunked.is_over(), "pieces of {size}");
            assert_eq!(data, b"hello wide world", "pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_framing_is_refused() {
        for body in [&b"x\r\n"[..], b"5\r\nhelloX", b"0\r\n\r\nmore", b"fffffffffffffffff\r\n"] {
            assert_eq!(Chunked::default().push(body, |_| ()), Err(Malformed), "{body:?}");
        }
    }
}

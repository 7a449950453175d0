//! The chunked coding, strictly: of requests from clients and of answers from endpoints.

use std::ops::Range;

/// Bytes of chunk extensions that one body may have in all; they are read past, never passed on.
const EXTENSION_BYTES_MAX: u32 = 1024;
/// Bytes that the trailers of one body may have; they are dropped.
const TRAILER_BYTES_MAX: u32 = 8 * 1024;
/// Hex digits of a chunk size: more than 15 could not be a real size.
const SIZE_DIGITS_MAX: u8 = 15;

/// Reads a chunked body in pieces of any size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunked {
    state: State,
    remaining: u64,
    digits: u8,
    extension_bytes: u32,
    trailer_bytes: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the start of a trailer line, or of the empty line that ends the body.
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    End,
}

/// The coding is broken. What follows on the connection means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunked coding is broken")]
pub(crate) struct BadChunk;

impl Chunked {
    pub(crate) fn ended(&self) -> bool {
        self.state == State::End
    }

    /// Reads on; gives each run of payload to `payload` and answers how much of `input` was used.
    /// All of it, unless the body ended within.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        mut payload: impl FnMut(Range<usize>),
    ) -> Result<usize, BadChunk> {
        let mut at = 0;
        while at < input.len() && self.state != State::End {
            if self.state == State::Data {
                let left = input.len() - at;
                let run =
                    usize::try_from(self.remaining).map_or(left, |remaining| remaining.min(left));
                payload(at..at + run);
                self.remaining -= run as u64;
                at += run;
                if self.remaining == 0 {
                    self.state = State::DataCr;
                }
                continue;
            }
            self.step(input[at])?;
            at += 1;
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<(), BadChunk> {
        self.state = match (self.state, byte) {
            (State::Size, b'\r') if self.digits > 0 => State::SizeLf,
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Size, digit) => {
                let value = char::from(digit).to_digit(16).ok_or(BadChunk)?;
                self.digits += 1;
                if self.digits > SIZE_DIGITS_MAX {
                    return Err(BadChunk);
                }
                self.remaining = self.remaining * 16 + u64::from(value);
                State::Size
            }
            (State::Extension, b'\r') => State::SizeLf,
            (State::Extension, b'\n') => return Err(BadChunk),
            (State::Extension, _) => {
                self.extension_bytes += 1;
                if self.extension_bytes > EXTENSION_BYTES_MAX {
                    return Err(BadChunk);
                }
                State::Extension
            }
            (State::SizeLf, b'\n') => {
                self.digits = 0;
                if self.remaining == 0 { State::TrailerStart } else { State::Data }
            }
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size,
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::Trailer, b'\n') => return Err(BadChunk),
            (State::Trailer, b'\r') => State::TrailerLf,
            (State::TrailerStart | State::Trailer, _) => {
                self.trailer_bytes += 1;
                if self.trailer_bytes > TRAILER_BYTES_MAX {
                    return Err(BadChunk);
                }
                State::Trailer
            }
            (State::TrailerLf, b'\n') => State::TrailerStart,
            (State::EndLf, b'\n') => State::End,
            _ => return Err(BadChunk),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), BadChunk> {
        let mut chunked = Chunked::default();
        let mut out = Vec::new();
        for piece in pieces {
            chunked.read(piece, |run| out.extend_from_slice(&piece[run]))?;
        }
        Ok((out, chunked.ended()))
    }

    #[test]
    fn a_chunked_body_is_read_with_extensions_and_trailers_dropped() {
        let body = b"4;name=value\r\nWiki\r\n5\r\npedia\r\n0\r\nHost: x\r\n\r\n";
        assert_eq!(decode(&[body]).unwrap(), (b"Wikipedia".to_vec(), true));
    }

    #[test]
    fn what_other_parsers_read_differently_is_refused() {
        for body in [
            &b"4\nWiki\r\n0\r\n\r\n"[..],
            b"4 \r\nWiki\r\n0\r\n\r\n",
            b"0x4\r\nWiki\r\n0\r\n\r\n",
            b"+4\r\nWiki\r\n0\r\n\r\n",
            b"-4\r\nWiki\r\n0\r\n\r\n",
            b"\r\nWiki\r\n0\r\n\r\n",
            b"4\r\nWikiX\r\n0\r\n\r\n",
            b"4\r\nWiki\n0\r\n\r\n",
            b"00000000000000000004\r\nWiki\r\n0\r\n\r\n",
            b"ffffffffffffffffff\r\nWiki",
            b"0\r\nTrailer: x\n\r\n",
            b"4;a\n\r\nWiki\r\n0\r\n\r\n",
        ] {
            assert_eq!(decode(&[body]), Err(BadChunk), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let extension = [b"1;".to_vec(), vec![b'x'; 2000], b"\r\na\r\n0\r\n\r\n".to_vec()].concat();
        assert_eq!(decode(&[&extension]), Err(BadChunk));
        let trailer = [b"0\r\n".to_vec(), vec![b'x'; 10_000]].concat();
        assert_eq!(decode(&[&trailer]), Err(BadChunk));
    }

    #[test]
    fn bytes_after_the_end_are_left_for_the_next_request() {
        let mut chunked = Chunked::default();
        assert_eq!(chunked.read(b"0\r\n\r\nGET", |_| {}), Ok(5));
    }

    proptest! {
        #[test]
        fn the_payload_is_the_same_for_any_split(
            payload in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in proptest::collection::vec(0_usize..300, 0..8),
        ) {
            let mut wire = Vec::new();
            for chunk in &payload {
                wire.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(wire.len())).collect();
            cuts.extend([0, wire.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &wire[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&pieces).unwrap(), (payload.concat(), true));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&bytes]);
        }
    }
}

//! Chunked request bodies, in whatever pieces they arrive.

use bytes::{Buf, BytesMut};

use super::ReadError;

/// Where in a chunked body the reader is.
#[derive(Debug, Default)]
pub(super) enum Chunked {
    #[default]
    Size,
    /// Bytes of the chunk still to come, its line end excluded.
    Data(usize),
    DataEnd,
    Trailers,
}

pub(super) enum Progress {
    Done,
    /// More bytes are needed.
    More,
}

impl Chunked {
    /// Moves what `input` holds of the body into `body`.
    pub(super) fn advance(
        &mut self,
        input: &mut BytesMut,
        body: &mut BytesMut,
    ) -> Result<Progress, ReadError> {
        loop {
            match self {
                Self::Size => {
                    let Some(line) = take_line(input) else { return Ok(Progress::More) };
                    let text = std::str::from_utf8(&line).unwrap_or_default();
                    let digits = text.split(';').next().unwrap_or_default().trim();
                    let size = usize::from_str_radix(digits, 16)
                        .map_err(|_| ReadError::Malformed("chunk size"))?;
                    *self = if size == 0 { Self::Trailers } else { Self::Data(size) };
                }
                Self::Data(left) => {
                    let take = input.len().min(*left);
                    body.extend_from_slice(&input[..take]);
                    input.advance(take);
                    *left -= take;
                    if *left > 0 {
                        return Ok(Progress::More);
                    }
                    *self = Self::DataEnd;
                }
                Self::DataEnd => {
                    let Some(line) = take_line(input) else { return Ok(Progress::More) };
                    if !line.is_empty() {
                        return Err(ReadError::Malformed("chunk end"));
                    }
                    *self = Self::Size;
                }
                Self::Trailers => {
                    let Some(line) = take_line(input) else { return Ok(Progress::More) };
                    if line.is_empty() {
                        return Ok(Progress::Done);
                    }
                }
            }
        }
    }
}

fn take_line(input: &mut BytesMut) -> Option<BytesMut> {
    let end = input.windows(2).position(|pair| pair == b"\r\n")?;
    let line = input.split_to(end);
    input.advance(2);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_body_is_the_same_however_it_is_split() {
        let wire = b"5\r\nhello\r\n7;ext=1\r\n, world\r\n0\r\ntrailer: x\r\n\r\nNEXT";
        for piece in 1..wire.len() {
            let (mut input, mut body) = (BytesMut::new(), BytesMut::new());
            let mut chunked = Chunked::default();
            let mut done = false;
            for bytes in wire.chunks(piece) {
                input.extend_from_slice(bytes);
                if !done {
                    done = matches!(chunked.advance(&mut input, &mut body), Ok(Progress::Done));
                }
            }
            assert!(done);
            assert_eq!((&body[..], &input[..]), (&b"hello, world"[..], &b"NEXT"[..]));
        }
    }
}

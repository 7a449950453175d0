//! Reads one HTTP/1.1 answer from bytes in any pieces; no socket in here.

/// What is not an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadAnswer;

/// State of one answer; begin a new one for each request.
#[derive(Default)]
pub(super) struct Answer {
    head: Vec<u8>,
    status: u16,
    closes: bool,
    rest: Rest,
}

#[derive(Default)]
enum Rest {
    #[default]
    Head,
    /// Bytes of body still to come.
    Length(usize),
    /// In the line that says a chunk's size, digits so far.
    ChunkSize(usize),
    /// In the rest of that line.
    ChunkSizeEnd(usize),
    /// In a chunk and the line end behind it.
    Chunk(usize),
    /// Behind the last chunk: the length of the current trailer line.
    Trailer(usize),
}

impl Answer {
    /// Whether the server closes the connection after this answer.
    pub(super) fn closes(&self) -> bool {
        self.closes
    }

    /// Takes the next bytes; `true` when the answer is complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<bool, BadAnswer> {
        let mut bytes = bytes;
        if matches!(self.rest, Rest::Head) {
            let before = self.head.len();
            self.head.extend_from_slice(bytes);
            let Some(head_bytes) = self.parse_head()? else { return Ok(false) };
            bytes = bytes.get(head_bytes.saturating_sub(before)..).ok_or(BadAnswer)?;
            if matches!(self.rest, Rest::Length(0)) {
                return Ok(true);
            }
        }
        self.feed_body(bytes)
    }

    /// The status; 0 until the head is complete.
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    fn parse_head(&mut self) -> Result<Option<usize>, BadAnswer> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&self.head).map_err(|_| BadAnswer)?;
        let httparse::Status::Complete(head_bytes) = parsed else { return Ok(None) };
        self.status = response.code.ok_or(BadAnswer)?;
        self.rest = Rest::Length(0);
        for header in response.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(header.value).map_err(|_| BadAnswer)?;
                self.rest = Rest::Length(text.parse().map_err(|_| BadAnswer)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                self.rest = Rest::ChunkSize(0);
            } else if header.name.eq_ignore_ascii_case("connection") {
                self.closes = header.value.eq_ignore_ascii_case(b"close");
            }
        }
        Ok(Some(head_bytes))
    }

    fn feed_body(&mut self, mut bytes: &[u8]) -> Result<bool, BadAnswer> {
        while let [first, tail @ ..] = bytes {
            match &mut self.rest {
                Rest::Head => return Err(BadAnswer),
                Rest::Length(left) => {
                    *left -= bytes.len().min(*left);
                    return Ok(*left == 0);
                }
                Rest::Chunk(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        self.rest = Rest::ChunkSize(0);
                    }
                    continue;
                }
                Rest::ChunkSize(size) => match (*first as char).to_digit(16) {
                    Some(digit) if *size < 1 << 32 => *size = *size * 16 + digit as usize,
                    Some(_) => return Err(BadAnswer),
                    None => self.rest = Rest::ChunkSizeEnd(*size),
                },
                Rest::ChunkSizeEnd(size) if *first == b'\n' => {
                    self.rest = if *size == 0 { Rest::Trailer(0) } else { Rest::Chunk(*size + 2) };
                }
                Rest::ChunkSizeEnd(_) => {}
                Rest::Trailer(length) => match first {
                    b'\n' if *length == 0 => return Ok(true),
                    b'\n' => *length = 0,
                    b'\r' => {}
                    _ => *length += 1,
                },
            }
            bytes = tail;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1A;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n",
    ];

    #[test]
    fn an_answer_is_complete_at_its_last_byte_for_any_split() {
        for bytes in ANSWERS {
            for cut in 0..bytes.len() {
                let mut answer = Answer::default();
                assert_eq!(answer.feed(&bytes[..cut]), Ok(false), "{cut}");
                assert_eq!(answer.feed(&bytes[cut..]), Ok(true), "{cut}");
                assert_eq!(answer.status(), 200);
            }
        }
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert_eq!(Answer::default().feed(b"SSH-2.0-x\r\n\r\n"), Err(BadAnswer));
    }
}

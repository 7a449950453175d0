//! The body behind a head: by length, in chunks, or to the end of the connection.

use super::{Answer, HttpError};

/// Reads it whole.
///
/// * `input`: what came behind the head already.
/// * `more`: appends what comes next; 0 at the end of the connection.
pub(super) fn read(
    answer: &Answer,
    mut input: Vec<u8>,
    bytes_max: usize,
    mut more: impl FnMut(&mut Vec<u8>) -> Result<usize, HttpError>,
) -> Result<Vec<u8>, HttpError> {
    let chunked = answer
        .field("transfer-encoding")
        .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"));
    if chunked {
        return chunks(input, bytes_max, more);
    }
    let length = match (answer.status, answer.field("content-length")) {
        (204 | 304, _) => Some(0),
        (_, Some(length)) => Some(length.parse::<usize>().map_err(|_| HttpError::NotHttp)?),
        (_, None) => None,
    };
    loop {
        if length.unwrap_or(0).max(input.len()) > bytes_max {
            return Err(HttpError::TooLarge(bytes_max));
        }
        if length.is_some_and(|length| input.len() >= length) {
            input.truncate(length.unwrap_or(0));
            return Ok(input);
        }
        if more(&mut input)? == 0 {
            return if length.is_none() { Ok(input) } else { Err(HttpError::NotHttp) };
        }
    }
}

fn chunks(
    mut input: Vec<u8>,
    bytes_max: usize,
    mut more: impl FnMut(&mut Vec<u8>) -> Result<usize, HttpError>,
) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    loop {
        match httparse::parse_chunk_size(&input).map_err(|_| HttpError::NotHttp)? {
            httparse::Status::Complete((used, 0)) => {
                // Trailers may follow; nobody reads them, and the connection's next answer would: take
                // what is up to the empty line.
                input.drain(..used);
                while !(input.starts_with(b"\r\n")
                    || input.windows(4).any(|end| end == b"\r\n\r\n"))
                {
                    if more(&mut input)? == 0 {
                        break;
                    }
                }
                return Ok(body);
            }
            httparse::Status::Complete((used, size)) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                if size > bytes_max || body.len() + size > bytes_max {
                    return Err(HttpError::TooLarge(bytes_max));
                }
                while input.len() < used + size + 2 {
                    if more(&mut input)? == 0 {
                        return Err(HttpError::NotHttp);
                    }
                }
                body.extend_from_slice(&input[used..used + size]);
                input.drain(..used + size + 2);
            }
            httparse::Status::Partial => {
                if more(&mut input)? == 0 {
                    return Err(HttpError::NotHttp);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that comes in pieces of `step` bytes.
    fn read_in(step: usize, field: (&str, &str), wire: &[u8]) -> Result<Vec<u8>, HttpError> {
        let answer = Answer {
            status: 200,
            fields: vec![(field.0.to_owned(), field.1.to_owned())],
            body: Vec::new(),
        };
        let mut at = 0;
        read(&answer, Vec::new(), 1000, |into| {
            let end = (at + step).min(wire.len());
            into.extend_from_slice(&wire[at..end]);
            Ok(end - std::mem::replace(&mut at, end))
        })
    }

    #[test]
    fn a_body_is_the_same_in_whatever_pieces_it_comes() {
        for step in [1, 2, 3, 7, 100] {
            let chunked = b"4\r\nwick\r\n6;x=1\r\netgate\r\n0\r\nt: 1\r\n\r\n";
            let read = read_in(step, ("transfer-encoding", "chunked"), chunked).unwrap();
            assert_eq!(read, b"wicketgate", "{step}");
            let read = read_in(step, ("content-length", "4"), b"gate and more").unwrap();
            assert_eq!(read, b"gate");
            assert_eq!(read_in(step, ("x", "y"), b"to the end").unwrap(), b"to the end");
        }
    }

    #[test]
    fn a_body_that_ends_early_or_is_too_large_is_no_body() {
        assert!(read_in(9, ("content-length", "40"), b"short").is_err());
        assert!(read_in(9, ("transfer-encoding", "chunked"), b"40\r\nshort").is_err());
        assert!(matches!(
            read_in(9, ("content-length", "2000"), b""),
            Err(HttpError::TooLarge(1000))
        ));
        let endless = b"fffffffffffffff\r\n";
        assert!(matches!(
            read_in(9, ("transfer-encoding", "chunked"), endless),
            Err(HttpError::TooLarge(1000))
        ));
        assert!(read_in(9, ("content-length", "many"), b"").is_err());
    }
}

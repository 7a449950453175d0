//! Reading requests.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Connection;
use super::body::{Chunked, Progress};

const HEAD_BYTES_MAX: usize = 256 * 1024;
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;
const HEADERS_MAX: usize = 256;

/// One request, body included.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// As sent: path and query.
    pub(crate) target: String,
    /// In order and as spelt; a value that is no UTF-8 is shown with replacements.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) keep_alive: bool,
}

/// Why no request could be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("connection failed")]
    Io(#[from] io::Error),
    #[error("the peer left in the middle of a request")]
    Truncated,
    #[error("not HTTP/1.1: {0}")]
    Malformed(&'static str),
    #[error("too large")]
    TooLarge,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split_once('?').map_or(&self.target, |(path, _)| path)
    }

    /// The value of a query parameter, as written.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }
}

impl Connection {
    /// The next request; `None` when the peer has closed between two.
    pub(crate) async fn read(&mut self) -> Result<Option<Request>, ReadError> {
        let (mut request, body) = loop {
            if let Some(parsed) = parse_head(&mut self.input)? {
                break parsed;
            }
            if self.input.len() > HEAD_BYTES_MAX {
                return Err(ReadError::TooLarge);
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return if self.input.is_empty() { Ok(None) } else { Err(ReadError::Truncated) };
            }
        };
        let awaits = request
            .header("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if awaits && body != BodyLength::None {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        request.body = match body {
            BodyLength::None => Bytes::new(),
            BodyLength::Known(length) => {
                self.input.reserve(length.saturating_sub(self.input.len()));
                while self.input.len() < length {
                    self.fill().await?;
                }
                self.input.split_to(length).freeze()
            }
            BodyLength::Chunked => self.read_chunked().await?,
        };
        Ok(Some(request))
    }

    async fn read_chunked(&mut self) -> Result<Bytes, ReadError> {
        let mut body = BytesMut::new();
        let mut chunked = Chunked::default();
        loop {
            match chunked.advance(&mut self.input, &mut body)? {
                Progress::Done => return Ok(body.freeze()),
                Progress::More if body.len() > BODY_BYTES_MAX => return Err(ReadError::TooLarge),
                Progress::More => self.fill().await?,
            }
        }
    }

    async fn fill(&mut self) -> Result<(), ReadError> {
        match self.stream.read_buf(&mut self.input).await? {
            0 => Err(ReadError::Truncated),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    None,
    Known(usize),
    Chunked,
}

fn parse_head(input: &mut BytesMut) -> Result<Option<(Request, BodyLength)>, ReadError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(ReadError::Malformed("request head")),
    };
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()))
        .collect();
    let mut request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        target: head.path.unwrap_or_default().to_owned(),
        headers,
        body: Bytes::new(),
        keep_alive: true,
    };
    let asks = |what: &str| {
        let connection = request.header("connection").unwrap_or_default();
        connection.split(',').any(|token| token.trim().eq_ignore_ascii_case(what))
    };
    request.keep_alive = if head.version == Some(1) { !asks("close") } else { asks("keep-alive") };
    let body = if request.header("transfer-encoding").is_some() {
        BodyLength::Chunked
    } else {
        match request.header("content-length").map(str::parse::<usize>) {
            None | Some(Ok(0)) => BodyLength::None,
            Some(Ok(length)) if length <= BODY_BYTES_MAX => BodyLength::Known(length),
            Some(Ok(_)) => return Err(ReadError::TooLarge),
            Some(Err(_)) => return Err(ReadError::Malformed("content-length")),
        }
    };
    let _ = input.split_to(length);
    Ok(Some((request, body)))
}

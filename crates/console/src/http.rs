//! One HTTP/1.1 request at a time, blocking, with a deadline for the whole exchange.
//!
//! Only plain HTTP: gateways and endpoints are looked at from inside the trusted network. A connection
//! stays in the caller's hands, who may want to know how long the other side keeps it.

mod body;

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use telemetry::clock;
use types::{EndpointAddress, Timestamp};

/// Head of an answer at most.
const HEAD_BYTES_MAX: usize = 64 << 10;
const FIELDS_MAX: usize = 100;

/// An answer with its whole body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the name {0} cannot be resolved")]
    Resolve(String, #[source] std::io::Error),
    #[error("nothing answers at {0}")]
    Connect(String, #[source] std::io::Error),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("the connection broke")]
    Broken(#[source] std::io::Error),
    #[error("the answer is no HTTP/1.1")]
    NotHttp,
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
}

/// What to ask for, and how much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// With query; the address's own prefix goes before it.
    pub(crate) path: &'a str,
    /// Sent as `Authorization: Bearer …`.
    pub(crate) token: Option<&'a str>,
    pub(crate) bytes_max: usize,
    pub(crate) timeout: Duration,
}

impl Answer {
    /// The first field of this name, in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the other side closes the connection behind this answer.
    pub(crate) fn closes(&self) -> bool {
        self.field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Asks once on a connection of its own.
pub(crate) fn get(address: &EndpointAddress, ask: Ask<'_>) -> Result<Answer, HttpError> {
    Connection::open(address, ask.timeout)?.get(ask, false)
}

/// A connection to one server.
pub(crate) struct Connection {
    stream: TcpStream,
    authority: String,
    prefix: String,
}

impl Connection {
    pub(crate) fn open(address: &EndpointAddress, timeout: Duration) -> Result<Self, HttpError> {
        let authority = address.authority();
        let resolved = (address.host(), address.port())
            .to_socket_addrs()
            .map_err(|source| HttpError::Resolve(address.host().to_owned(), source))?;
        let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
        for candidate in resolved {
            match TcpStream::connect_timeout(&candidate, timeout) {
                Ok(stream) => {
                    // Without it a request waits for an acknowledgement; if it fails it does.
                    let _ = stream.set_nodelay(true);
                    let prefix = address.path_prefix().to_owned();
                    return Ok(Self { stream, authority, prefix });
                }
                Err(error) => last = error,
            }
        }
        Err(HttpError::Connect(authority, last))
    }

    /// * `keep`: leave the connection open behind the answer.
    pub(crate) fn get(&mut self, ask: Ask<'_>, keep: bool) -> Result<Answer, HttpError> {
        let ends = clock::now() + ask.timeout;
        let mut head =
            format!("GET {}{} HTTP/1.1\r\nhost: {}\r\n", self.prefix, ask.path, self.authority);
        head.push_str("user-agent: wicketgate\r\naccept: */*\r\n");
        if let Some(token) = ask.token {
            head.push_str(&format!("authorization: Bearer {token}\r\n"));
        }
        if !keep {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        self.stream.set_write_timeout(Some(ask.timeout)).map_err(HttpError::Broken)?;
        self.stream.write_all(head.as_bytes()).map_err(|error| self.failure(error, ask.timeout))?;
        let mut input = Vec::new();
        loop {
            if let Some((mut answer, used)) = parse_head(&input)? {
                // 1xx: the answer is still to come.
                if (100..200).contains(&answer.status) && answer.status != 101 {
                    input.drain(..used);
                    continue;
                }
                input.drain(..used);
                answer.body = body::read(&answer, input, ask.bytes_max, |into| {
                    self.read_more(into, ends, ask.timeout)
                })?;
                return Ok(answer);
            }
            if input.len() > HEAD_BYTES_MAX {
                return Err(HttpError::NotHttp);
            }
            if self.read_more(&mut input, ends, ask.timeout)? == 0 {
                return Err(HttpError::NotHttp);
            }
        }
    }

    /// Waits until the other side closes the idle connection: after how long, or `None` if it has not
    /// within `most`.
    pub(crate) fn closes_within(&mut self, most: Duration) -> Option<Duration> {
        let begun = clock::now();
        let ends = begun + most;
        let mut byte = [0; 64];
        loop {
            let left = ends.since(clock::now());
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return None;
            }
            match self.stream.read(&mut byte) {
                Err(error) if is_timeout(&error) => return None,
                // Unasked bytes before the end, such as a 408.
                Ok(count) if count > 0 => {}
                Ok(_) | Err(_) => return Some(clock::now().since(begun)),
            }
        }
    }

    /// Reads what is there; 0 at the end of the connection.
    fn read_more(
        &mut self,
        into: &mut Vec<u8>,
        ends: Timestamp,
        timeout: Duration,
    ) -> Result<usize, HttpError> {
        let left = ends.since(clock::now());
        if left.is_zero() {
            return Err(HttpError::Timeout(timeout));
        }
        self.stream.set_read_timeout(Some(left)).map_err(HttpError::Broken)?;
        let mut piece = [0; 16 << 10];
        let count = self.stream.read(&mut piece).map_err(|error| self.failure(error, timeout))?;
        into.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    fn failure(&self, error: std::io::Error, timeout: Duration) -> HttpError {
        if is_timeout(&error) { HttpError::Timeout(timeout) } else { HttpError::Broken(error) }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// A head and its length, once it is whole.
fn parse_head(input: &[u8]) -> Result<Option<(Answer, usize)>, HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let used = match response.parse(input).map_err(|_| HttpError::NotHttp)? {
        httparse::Status::Complete(used) => used,
        httparse::Status::Partial => return Ok(None),
    };
    let fields = response.headers.iter().map(|field| {
        let value = String::from_utf8_lossy(field.value).trim().to_owned();
        (field.name.to_ascii_lowercase(), value)
    });
    let answer = Answer {
        status: response.code.ok_or(HttpError::NotHttp)?,
        fields: fields.collect(),
        body: Vec::new(),
    };
    Ok(Some((answer, used)))
}

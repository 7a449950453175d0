//! HTTP/1.1 as the proxy reads and writes it.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::Gone;

/// The first line and the fields of a message, names in lower case.
pub(crate) struct Head {
    /// Method, target and version, or version, status and reason.
    line: [String; 3],
    pub(crate) fields: Vec<(String, String)>,
}

impl Head {
    /// Reads a head that is not an interim one; and what came with it of the body.
    pub(crate) async fn read(from: &mut TcpStream) -> Result<(Self, Vec<u8>), Gone> {
        let mut bytes = Vec::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = bytes.split_off(end + 4);
                let head = Self::parse(&bytes).ok_or(Gone(line!()))?;
                if head.line[1].starts_with('1') {
                    bytes = rest;
                    continue;
                }
                return Ok((head, rest));
            }
            if !matches!(from.read_buf(&mut bytes).await, Ok(1..)) {
                return Err(Gone(line!()));
            }
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.splitn(3, ' ').map(str::to_owned);
        let line = [words.next()?, words.next()?, words.next().unwrap_or_default()];
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self { line, fields })
    }

    pub(crate) fn method(&self) -> &str {
        &self.line[0]
    }

    /// The target of a request, the status of an answer.
    pub(crate) fn second(&self) -> &str {
        &self.line[1]
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.fields.iter().position(|(known, _)| known == name)?;
        Some(self.fields.remove(at).1)
    }

    pub(crate) fn content_length(&self) -> Option<usize> {
        self.get("content-length")?.parse().ok()
    }

    /// As an endpoint gets it.
    pub(crate) fn for_endpoint(&self, body_bytes: usize) -> Vec<u8> {
        let [method, target, _] = &self.line;
        let mut out = format!("{method} {target} HTTP/1.1\r\n");
        self.write_fields(&mut out);
        out.push_str(&format!("content-length: {body_bytes}\r\n\r\n"));
        out.into_bytes()
    }

    /// As a client gets it: chunked, and the last on its connection.
    pub(crate) fn for_client(&self) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} -\r\n", self.second());
        self.write_fields(&mut out);
        out.push_str("transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
        out.into_bytes()
    }

    fn write_fields(&self, out: &mut String) {
        const OURS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "keep-alive"];
        for (name, value) in &self.fields {
            if !OURS.contains(&name.as_str()) && !name.starts_with(':') {
                out.push_str(&format!("{name}: {value}\r\n"));
            }
        }
    }
}

/// The body of an answer, piece by piece.
pub(crate) struct Framing {
    kind: Kind,
    buffer: Vec<u8>,
}

enum Kind {
    /// Bytes that are left.
    Length(usize),
    Chunked,
    UntilEnd,
}

impl Framing {
    pub(crate) fn of(head: &Head, rest: Vec<u8>) -> Self {
        let is_chunked = head.get("transfer-encoding") == Some("chunked");
        let kind = match head.content_length() {
            _ if is_chunked => Kind::Chunked,
            Some(length) => Kind::Length(length),
            None => Kind::UntilEnd,
        };
        Self { kind, buffer: rest }
    }

    /// The next piece; `None`: the body is whole. An error: it ended before.
    ///
    /// Can be dropped while it waits: nothing that was read is lost.
    pub(crate) async fn next(&mut self, from: &mut TcpStream) -> Result<Option<Vec<u8>>, Gone> {
        loop {
            match &mut self.kind {
                Kind::Length(0) => return Ok(None),
                Kind::Length(left) if !self.buffer.is_empty() => {
                    let piece = std::mem::take(&mut self.buffer);
                    *left = left.saturating_sub(piece.len());
                    return Ok(Some(piece));
                }
                Kind::UntilEnd if !self.buffer.is_empty() => {
                    return Ok(Some(std::mem::take(&mut self.buffer)));
                }
                Kind::Chunked => {
                    if let Some(chunk) = take_chunk(&mut self.buffer)? {
                        return Ok(Some(chunk).filter(|chunk| !chunk.is_empty()));
                    }
                }
                _ => {}
            }
            match from.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                Ok(0) if matches!(self.kind, Kind::UntilEnd) => return Ok(None),
                _ => return Err(Gone(line!())),
            }
        }
    }
}

/// A whole chunk, if it is here; the last one is empty.
fn take_chunk(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Gone> {
    let Some(line_end) = buffer.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    let size = std::str::from_utf8(&buffer[..line_end]).map_err(|_| Gone(line!()))?;
    let size = usize::from_str_radix(size, 16).map_err(|_| Gone(line!()))?;
    let whole = line_end + 2 + size + 2;
    if buffer.len() < whole {
        return Ok(None);
    }
    let chunk = buffer[line_end + 2..line_end + 2 + size].to_vec();
    buffer.drain(..whole);
    Ok(Some(chunk))
}

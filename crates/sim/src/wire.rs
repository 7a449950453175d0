//! HTTP/1.1 on one connection, written by hand so that the simulator can also write it wrongly.
//!
//! Reading is ordinary; writing goes through [`Connection::head`], [`Connection::chunk`] and
//! friends into a buffer that [`Connection::flush`] sends, so a fault can stop at any byte.

mod body;
mod request;

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) use request::{ReadError, Request};

/// Bytes that a peer may send ahead while its request is being answered.
const AHEAD_MAX: usize = 64 * 1024;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    /// By the end of the connection.
    Close,
    /// No body at all (1xx, 204, 304).
    None,
}

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    /// FIN.
    Close,
    /// RST.
    Reset,
}

pub(crate) struct Connection {
    stream: TcpStream,
    input: BytesMut,
    output: Vec<u8>,
    framing: Framing,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        // Without it small SSE events wait for the peer's acknowledgement; if it fails they do.
        let _ = stream.set_nodelay(true);
        Self { stream, input: BytesMut::new(), output: Vec::new(), framing: Framing::None }
    }

    /// Returns when the peer has closed or reset the connection, not before.
    pub(crate) async fn gone(&mut self) {
        while self.input.len() < AHEAD_MAX {
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        std::future::pending().await
    }

    /// Waits for the first byte of a request. False: none came within `idle`.
    pub(crate) async fn awaits_request(&mut self, idle: Duration) -> bool {
        if !self.input.is_empty() {
            return true;
        }
        let first = self.stream.read_buf(&mut self.input);
        matches!(tokio::time::timeout(idle, first).await, Ok(Ok(count)) if count > 0)
    }

    /// Writes a response head.
    pub(crate) fn head(&mut self, status: u16, headers: &[(&str, &str)], framing: Framing) {
        self.framing = framing;
        let out = &mut self.output;
        out.extend(format!("HTTP/1.1 {status} {}\r\n", reason(status)).as_bytes());
        for (name, value) in headers {
            for part in [*name, ": ", *value, "\r\n"] {
                out.extend(part.as_bytes());
            }
        }
        match framing {
            Framing::Length(length) => {
                out.extend(format!("content-length: {length}\r\n").as_bytes());
            }
            Framing::Chunked => out.extend(b"transfer-encoding: chunked\r\n"),
            Framing::Close => out.extend(b"connection: close\r\n"),
            Framing::None => {}
        }
        out.extend(b"\r\n");
    }

    /// Writes a piece of the body, framed as the head said.
    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.framing == Framing::Chunked {
            self.output.extend(format!("{:x}\r\n", bytes.len()).as_bytes());
            self.output.extend(bytes);
            self.output.extend(b"\r\n");
        } else {
            self.output.extend(bytes);
        }
    }

    /// Ends a chunked body.
    pub(crate) fn end(&mut self, trailers: &[(&str, &str)]) {
        if self.framing == Framing::Chunked {
            self.output.extend(b"0\r\n");
            for (name, value) in trailers {
                self.output.extend(format!("{name}: {value}\r\n").as_bytes());
            }
            self.output.extend(b"\r\n");
        }
    }

    /// Sends what was written since the last time.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let result = self.stream.write_all(&self.output).await;
        self.output.clear();
        result
    }

    /// Sends what was written, a byte each `pause`.
    pub(crate) async fn drip(&mut self, pause: Duration) -> io::Result<()> {
        let output = std::mem::take(&mut self.output);
        for byte in output {
            self.stream.write_all(&[byte]).await?;
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    /// Ends the connection: FIN, or RST, which makes the peer lose what it has not read.
    pub(crate) fn close(self, after: After) {
        if after == After::Reset {
            // On failure the peer sees a FIN instead.
            let _ = self.stream.set_zero_linger();
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

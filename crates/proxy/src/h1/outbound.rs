//! Writing answers to a client connection.

use std::io::{IoSlice, Write};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::AsyncWrite;

use crate::answer::reason;
use crate::head::Version;

/// How the body of an answer is framed for this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Length(u64),
    Chunked,
    /// HTTP/1.0 and no known length: the end of the connection is the end of the body.
    UntilClose,
    /// A status that has no body.
    None,
}

/// Writes an answer's head.
pub(crate) fn write_head(
    out: &mut Vec<u8>,
    status: u16,
    lines: &[u8],
    frame: Frame,
    close: bool,
    version: Version,
) {
    out.reserve(lines.len() + 96);
    // Writing into a Vec cannot fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason(status));
    out.extend_from_slice(lines);
    match frame {
        Frame::Length(length) => {
            let _ = write!(out, "content-length: {length}\r\n");
        }
        Frame::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Frame::UntilClose | Frame::None => {}
    }
    if close {
        out.extend_from_slice(b"connection: close\r\n");
    } else if version == Version::Http10 {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// What could not be written at once.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: BytesMut,
}

impl Outbox {
    /// Writes the parts; keeps what the client does not take now. An error shows at the next flush.
    pub(crate) fn write<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
        parts: &[&[u8]],
    ) {
        let mut skip = 0;
        if self.bytes.is_empty() {
            let mut slices = [IoSlice::new(&[]); 8];
            for (slice, part) in slices.iter_mut().zip(parts) {
                *slice = IoSlice::new(part);
            }
            let count = parts.len().min(8);
            if let Poll::Ready(Ok(written)) = Pin::new(io).poll_write_vectored(cx, &slices[..count])
            {
                skip = written;
            }
        }
        for part in parts {
            let skipped = skip.min(part.len());
            skip -= skipped;
            if skipped < part.len() {
                self.bytes.extend_from_slice(&part[skipped..]);
            }
        }
    }

    /// Writes runs of payload as one chunk (or bare, where the frame has no chunks), `head` first.
    pub(crate) fn write_payload<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
        head: &[u8],
        frame: Frame,
        bytes: &[u8],
        runs: &[Range<usize>],
    ) {
        let mut size = [0_u8; 18];
        let total: usize = runs.iter().map(ExactSizeIterator::len).sum();
        let (size, end): (&[u8], &[u8]) = match frame {
            Frame::Chunked => (chunk_size(&mut size, total), b"\r\n"),
            _ => (&[], &[]),
        };
        match runs {
            [] => self.write(io, cx, &[head]),
            [run] => self.write(io, cx, &[head, size, &bytes[run.clone()], end]),
            [one, two] => {
                self.write(io, cx, &[head, size, &bytes[one.clone()], &bytes[two.clone()], end])
            }
            runs => {
                // Many small chunks arrived together: one copy costs less than many slices.
                let joined: Vec<u8> =
                    runs.iter().flat_map(|run| &bytes[run.clone()]).copied().collect();
                self.write(io, cx, &[head, size, &joined, end]);
            }
        }
    }

    /// Ready once all is written.
    pub(crate) fn poll_flush<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        while !self.bytes.is_empty() {
            match Pin::new(&mut *io).poll_write(cx, &self.bytes) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(written)) => self.bytes.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        if self.bytes.capacity() > 0 {
            self.bytes = BytesMut::new();
        }
        Pin::new(io).poll_flush(cx)
    }
}

/// `total` in hex and a line end, at the end of `buffer`.
fn chunk_size(buffer: &mut [u8; 18], mut total: usize) -> &[u8] {
    buffer[16] = b'\r';
    buffer[17] = b'\n';
    let mut at = 16;
    loop {
        at -= 1;
        buffer[at] = b"0123456789abcdef"[total & 15];
        total >>= 4;
        if total == 0 || at == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_are_written_in_hex() {
        for total in [0, 1, 15, 16, 255, 4096, usize::MAX] {
            let mut buffer = [0; 18];
            assert_eq!(chunk_size(&mut buffer, total), format!("{total:x}\r\n").as_bytes());
        }
    }
}

//! Tells HTTP/2 with prior knowledge from HTTP/1, by the first bytes of a connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::timer::Timer;

/// What an HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a connection speaks, with the bytes that told.
pub(crate) enum Spoken {
    Http1(BytesMut),
    Http2(Bytes),
    /// Nothing came, or the client left.
    Nothing,
}

/// Reads until it is clear.
pub(crate) async fn sniff<S: AsyncRead + Unpin>(
    io: &mut S,
    deadline: tokio::time::Instant,
    timer: &mut Timer,
) -> Spoken {
    let mut read = BytesMut::new();
    loop {
        match timer.within(deadline, io.read_buf(&mut read)).await {
            None | Some(Ok(0) | Err(_)) => return Spoken::Nothing,
            Some(Ok(_)) => {}
        }
        let compared = read.len().min(PREFACE.len());
        if read[..compared] != PREFACE[..compared] {
            return Spoken::Http1(read);
        }
        if compared == PREFACE.len() {
            return Spoken::Http2(read.freeze());
        }
    }
}

/// A stream whose first bytes were read already.
#[derive(Debug)]
pub(crate) struct Rewound<S> {
    first: Bytes,
    io: S,
}

impl<S> Rewound<S> {
    pub(crate) fn new(first: Bytes, io: S) -> Self {
        Self { first, io }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buffer);
        }
        let count = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..count]);
        self.first.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

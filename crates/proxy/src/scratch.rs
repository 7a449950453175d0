//! One read buffer for each thread, lent for the length of one poll.
//!
//! A stream that waits for its next chunk owns no buffer: what arrives is read here, looked at, and
//! written on. Only what a slow client leaves over is copied. This is what keeps thousands of
//! open streams small.

use std::cell::RefCell;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of the buffer: what one read can take at the most.
pub(crate) const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Reads once and hands what came to `with`; an empty slice is the end of the stream.
///
/// `with` must not read through this function again.
pub(crate) fn poll_read_with<S, T>(
    io: &mut S,
    cx: &mut Context<'_>,
    with: impl FnOnce(&[u8]) -> T,
) -> Poll<std::io::Result<T>>
where
    S: AsyncRead + Unpin,
{
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        match std::pin::Pin::new(io).poll_read(cx, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(with(buffer.filled()))),
        }
    })
}

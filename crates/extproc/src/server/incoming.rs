//! Connections as they come, with their TLS handshakes beside each other.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tonic::transport::server::Connected;

use tls::Server;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Handshakes under way at most; further connections wait.
const HANDSHAKES_MAX: usize = 256;
/// How long a failed accept (no file descriptor left, mostly) holds back the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepted connections, ready to speak HTTP/2.
pub(super) struct Incoming {
    listener: TcpListener,
    tls: Option<Arc<Server>>,
    /// Dropped, and so ended, with the listener.
    handshakes: JoinSet<Option<TlsStream<TcpStream>>>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    pub(super) fn new(listener: TcpListener, tls: Option<Arc<Server>>) -> Self {
        Self { listener, tls, handshakes: JoinSet::new(), pause: None }
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<TcpStream> {
        loop {
            if let Some(pause) = &mut self.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match std::task::ready!(self.listener.poll_accept(cx)) {
                Ok((io, _)) => {
                    let _ = io.set_nodelay(true);
                    return Poll::Ready(io);
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "accept failed");
                    self.pause = Some(Box::pin(tokio::time::sleep(ACCEPT_PAUSE)));
                }
            }
        }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(tls) = this.tls.clone() else {
            return this.poll_accept(cx).map(|io| Some(Ok(Connection::Plain(io))));
        };
        while this.handshakes.len() < HANDSHAKES_MAX
            && let Poll::Ready(io) = this.poll_accept(cx)
        {
            let acceptor = TlsAcceptor::from(tls.config());
            this.handshakes.spawn(async move {
                let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(io)).await;
                match shaken {
                    Ok(Ok(stream)) => Some(stream),
                    Ok(Err(error)) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::debug!(error, "TLS handshake failed");
                        None
                    }
                    Err(_) => None,
                }
            });
        }
        while let Poll::Ready(Some(joined)) = this.handshakes.poll_join_next(cx) {
            if let Ok(Some(stream)) = joined {
                return Poll::Ready(Some(Ok(Connection::Tls(Box::new(stream)))));
            }
        }
        Poll::Pending
    }
}

/// A proxy's connection.
pub(super) enum Connection {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(io) => Pin::new(io).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Self::Tls(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write_vectored(cx, slices),
            Self::Tls(io) => Pin::new(io).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}

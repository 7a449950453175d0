//! One connection to an endpoint: TCP, or TLS where it is another cluster's gateway.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;
use types::EndpointAddress;

use super::tls::UpstreamTls;

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the endpoint did not accept a connection in time")]
    Timeout,
    #[error("the endpoint refused the connection")]
    Refused(#[source] std::io::Error),
    #[error("the endpoint's name has no address")]
    Name(#[source] std::io::Error),
    #[error("no TLS connection came about")]
    Tls(#[source] std::io::Error),
}

/// Until the kernel gives up a connection on which nothing is acknowledged: a network that swallows
/// packets looks like a busy engine otherwise.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(6);
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(3);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// How connections are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Means {
    pub(crate) tls: Option<UpstreamTls>,
    /// The way there may fall silent: other clusters.
    pub(crate) is_far: bool,
}

/// What carries the bytes.
#[derive(Debug)]
pub(crate) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection and when it was last used.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) io: Io,
    pub(crate) idle_since: Instant,
    /// It served a request before, so the endpoint may be closing it just now.
    pub(crate) reused: bool,
}

impl Connection {
    pub(crate) async fn open(
        address: &EndpointAddress,
        means: &Means,
    ) -> Result<Self, ConnectError> {
        let target = resolve(address).await?;
        let io = TcpStream::connect(target).await.map_err(ConnectError::Refused)?;
        // Nagle would hold a small request back; failing to switch it off costs only time.
        let _ = io.set_nodelay(true);
        if means.is_far {
            give_up_when_silent(&io);
        }
        let io = match &means.tls {
            Some(tls) if address.is_tls() => {
                Io::Tls(Box::new(tls.connect(address.host(), io).await.map_err(ConnectError::Tls)?))
            }
            None if address.is_tls() => {
                return Err(ConnectError::Tls(std::io::ErrorKind::Unsupported.into()));
            }
            _ => Io::Plain(io),
        };
        Ok(Self { io, idle_since: Instant::now(), reused: false })
    }

    /// Whether an idle connection still is what it was: open, and silent.
    pub(crate) fn is_fresh(&mut self) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let io = match &self.io {
            Io::Plain(io) => io,
            Io::Tls(io) => io.get_ref().0,
        };
        io.poll_read_ready(&mut context).is_pending()
    }

    /// Writes on; answers how much of `parts` went out.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        match &mut self.io {
            Io::Plain(io) => Pin::new(io).poll_write_vectored(cx, parts),
            Io::Tls(io) => Pin::new(io).poll_write_vectored(cx, parts),
        }
    }

    /// Sends what is written and still held back here.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match &mut self.io {
            Io::Plain(_) => Poll::Ready(Ok(())),
            Io::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match &mut *self {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buffer),
            // An end that TLS does not announce is an error: a body could be cut short.
            Self::Tls(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

/// Lets the kernel tell when the other side is unreachable. Failing to ask for it costs only time.
fn give_up_when_silent(io: &TcpStream) {
    let socket = SockRef::from(io);
    let keep_alive =
        TcpKeepalive::new().with_time(KEEP_ALIVE_AFTER).with_interval(KEEP_ALIVE_INTERVAL);
    let _ = socket.set_tcp_keepalive(&keep_alive);
    #[cfg(target_os = "linux")]
    let _ = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
}

async fn resolve(address: &EndpointAddress) -> Result<SocketAddr, ConnectError> {
    if let Ok(ip) = address.host().parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, address.port()));
    }
    tokio::net::lookup_host((address.host(), address.port()))
        .await
        .map_err(ConnectError::Name)?
        .next()
        .ok_or_else(|| ConnectError::Name(std::io::ErrorKind::NotFound.into()))
}

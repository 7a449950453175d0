//! One TCP connection to an endpoint.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::time::Instant;
use types::EndpointAddress;

/// Why no connection came about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the endpoint did not accept a connection in time")]
    Timeout,
    #[error("the endpoint refused the connection")]
    Refused(#[source] std::io::Error),
    #[error("the endpoint's name has no address")]
    Name(#[source] std::io::Error),
}

/// A connection and when it was last used.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) io: TcpStream,
    pub(crate) idle_since: Instant,
    /// It served a request before, so the endpoint may be closing it just now.
    pub(crate) reused: bool,
}

impl Connection {
    pub(crate) async fn open(address: &EndpointAddress) -> Result<Self, ConnectError> {
        let target = resolve(address).await?;
        let io = TcpStream::connect(target).await.map_err(ConnectError::Refused)?;
        // Nagle would hold a small request back; failing to switch it off costs only time.
        let _ = io.set_nodelay(true);
        Ok(Self { io, idle_since: Instant::now(), reused: false })
    }

    /// Whether an idle connection still is what it was: open, and silent.
    pub(crate) fn is_fresh(&mut self) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        self.io.poll_read_ready(&mut context).is_pending()
    }

    /// Writes on; answers how much of `parts` went out.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }
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

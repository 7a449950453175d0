//! Answers probes and Prometheus: a process that waits to lead is healthy and ready, it is there to take over.

use std::time::Duration;

use telemetry::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections at once; probes are few.
const CONNECTIONS_MAX: usize = 32;
/// Longest that a probe may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A request's head is at most this long.
const HEAD_MAX: usize = 2048;

/// Never ends.
pub(super) async fn serve(listener: TcpListener, metrics: Metrics) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((io, _)) => {
                connections.spawn(timeout(PATIENCE, answer(io, metrics.clone())));
            }
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn answer(mut io: TcpStream, metrics: Metrics) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_MAX {
        if io.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let asks = |path: &str| head.starts_with(format!("GET {path} ").as_bytes());
    let (status, body) = if asks("/healthz") || asks("/readyz") {
        ("200 OK", "ok\n".to_owned())
    } else if asks("/metrics") {
        ("200 OK", metrics.encode())
    } else {
        ("404 Not Found", "there are /healthz, /readyz and /metrics\n".to_owned())
    };
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    io.write_all(text.as_bytes()).await?;
    io.shutdown().await
}

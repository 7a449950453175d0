//! Passes bytes on, until it is told to hold them: a network that swallows what it takes.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    is_open: watch::Sender<bool>,
    resets: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_open, opened) = watch::channel(true);
        let (resets, resetting) = watch::channel(false);
        let task = tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let (opened, resetting) = (opened.clone(), resetting.clone());
                tokio::spawn(async move {
                    let mut ends = resetting.clone();
                    if *resetting.borrow() {
                        return reset(from).await;
                    }
                    tokio::select! {
                        () = pass(from, to, opened) => {}
                        _ = ends.wait_for(|resets| *resets) => {}
                    }
                });
            }
        });
        Self { address, is_open, resets, task }
    }

    /// Ends all connections, and resets each new one as soon as something comes.
    pub(crate) fn reset(&self) {
        self.resets.send_replace(true);
    }

    pub(crate) fn stall(&self) {
        self.is_open.send_replace(false);
    }

    pub(crate) fn resume(&self) {
        self.is_open.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection that is closed with bytes unread is reset.
async fn reset(from: TcpStream) {
    let _ = from.readable().await;
}

async fn pass(from: TcpStream, to: SocketAddr, opened: watch::Receiver<bool>) {
    let Ok(there) = TcpStream::connect(to).await else { return };
    let (from_read, from_write) = from.into_split();
    let (there_read, there_write) = there.into_split();
    let one = copy(from_read, there_write, opened.clone());
    let other = copy(there_read, from_write, opened);
    tokio::join!(one, other);
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut opened: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if opened.wait_for(|is_open| *is_open).await.is_err() {
            return;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
    let _ = opened.wait_for(|is_open| *is_open).await;
    let _ = to.shutdown().await;
}

//! A connection to the API server that a test can cut.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Forwards to one address until it is cut, and again when it is mended.
pub(crate) struct Cable {
    pub(crate) address: SocketAddr,
    is_whole: Arc<watch::Sender<bool>>,
    _task: JoinSet<()>,
}

impl Cable {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_whole = Arc::new(watch::Sender::new(true));
        let mut task = JoinSet::new();
        task.spawn(forward(listener, target, is_whole.clone()));
        Self { address, is_whole, _task: task }
    }

    /// Ends all connections; new ones are accepted and closed at once.
    pub(crate) fn cut(&self) {
        self.is_whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.is_whole.send_replace(true);
    }
}

async fn forward(listener: TcpListener, target: SocketAddr, is_whole: Arc<watch::Sender<bool>>) {
    let mut connections = JoinSet::new();
    while let Ok((mut near, _)) = listener.accept().await {
        let mut whole = is_whole.subscribe();
        if !*whole.borrow() {
            continue;
        }
        connections.spawn(async move {
            let Ok(mut far) = TcpStream::connect(target).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut near, &mut far) => {}
                _ = whole.wait_for(|whole| !whole) => {}
            }
        });
    }
}

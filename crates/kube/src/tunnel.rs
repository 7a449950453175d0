//! A port of a pod on this machine, through the API server and the pod's kubelet: what `kubectl port-forward` does.
//!
//! It reaches listeners on a pod's loopback, needs no way into the cluster's network, and no policy of the network
//! stands in its way: the rights are those on `pods/portforward`.

use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Connections on the loopback address become connections to the pod, until dropped.
pub struct Tunnel {
    pub address: SocketAddr,
    _task: JoinSet<()>,
}

/// Why there is no way to the pod.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    #[error("cannot listen on this machine")]
    Listen(#[source] std::io::Error),
    #[error(
        "cannot forward port {port} of pod {pod}; it needs `get` and `create` on pods/portforward"
    )]
    Forward {
        pod: String,
        port: u16,
        #[source]
        source: Box<kube::Error>,
    },
}

impl Tunnel {
    /// # Errors
    /// There is no such pod, or we may not.
    pub async fn open(
        client: Client,
        namespace: &str,
        pod: &str,
        port: u16,
    ) -> Result<Self, TunnelError> {
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        // Once before anybody connects, so that it can be told why not.
        let first = pods.portforward(pod, &[port]).await;
        first.map_err(|source| TunnelError::Forward {
            pod: pod.to_owned(),
            port,
            source: Box::new(source),
        })?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(TunnelError::Listen)?;
        let address = listener.local_addr().map_err(TunnelError::Listen)?;
        let mut task = JoinSet::new();
        task.spawn(accept(listener, pods, pod.to_owned(), port));
        Ok(Self { address, _task: task })
    }
}

async fn accept(listener: TcpListener, pods: Api<Pod>, pod: String, port: u16) {
    let mut connections = JoinSet::new();
    while let Ok((io, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(carry(io, pods.clone(), pod.clone(), port));
    }
}

/// One connection. Who asks sees it end when anything on the way fails.
async fn carry(mut io: TcpStream, pods: Api<Pod>, pod: String, port: u16) {
    let mut forwarder = match pods.portforward(&pod, &[port]).await {
        Ok(forwarder) => forwarder,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, pod, port, "the pod's port cannot be forwarded");
            return;
        }
    };
    if let Some(mut upstream) = forwarder.take_stream(port) {
        let _ = copy_bidirectional(&mut io, &mut upstream).await;
    }
    forwarder.abort();
}

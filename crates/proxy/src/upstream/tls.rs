//! TLS towards the gateways of other clusters.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tls::{Client, ClientFiles, TlsError};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// What all threads share for it.
#[derive(Clone, Debug)]
pub struct UpstreamTls {
    client: Arc<Client>,
    /// Name that the other side must have, if it is not the host's.
    server_name: Option<String>,
}

impl UpstreamTls {
    /// # Errors
    /// A file cannot be read or used.
    pub fn load(files: ClientFiles, server_name: Option<String>) -> Result<Self, TlsError> {
        Ok(Self { client: Arc::new(Client::load(files)?), server_name })
    }

    /// Takes new certificates into use, for ever.
    pub async fn follow(&self) {
        self.client.follow().await;
    }

    pub(crate) async fn connect(
        &self,
        host: &str,
        io: TcpStream,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = self.server_name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(std::io::Error::other)?;
        TlsConnector::from(self.client.config()).connect(name, io).await
    }
}

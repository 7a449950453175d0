//! TLS towards the gateways of other clusters.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls::{TlsError, certificates};

/// Where certificates towards members are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamFiles {
    /// PEM: whom to trust. `None`: the system's authorities.
    pub ca: Option<PathBuf>,
    /// PEM: our own chain and its key; `None`: none is shown.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Name that the other side must have, if it is not the host's.
    pub server_name: Option<String>,
}

/// What is in force of the files; all threads share it.
#[derive(Clone, Debug)]
pub struct UpstreamTls {
    files: Arc<UpstreamFiles>,
    current: Arc<ArcSwap<Current>>,
}

#[derive(Debug)]
struct Current {
    seen: Vec<CertificateDer<'static>>,
    config: Arc<rustls::ClientConfig>,
}

impl UpstreamTls {
    /// # Errors
    /// A file cannot be read or used.
    pub fn load(files: UpstreamFiles) -> Result<Self, TlsError> {
        let current = Arc::new(ArcSwap::from_pointee(Current::load(&files)?));
        Ok(Self { files: Arc::new(files), current })
    }

    /// Reads the files again. Whether they had changed.
    ///
    /// # Errors
    /// A file cannot be read or used: the old ones stay in force.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let fresh = Current::load(&self.files)?;
        let changed = self.current.load().seen != fresh.seen;
        if changed {
            self.current.store(Arc::new(fresh));
        }
        Ok(changed)
    }

    pub(crate) async fn connect(
        &self,
        host: &str,
        io: TcpStream,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = self.files.server_name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(std::io::Error::other)?;
        let config = self.current.load().config.clone();
        TlsConnector::from(config).connect(name, io).await
    }
}

impl Current {
    fn load(files: &UpstreamFiles) -> Result<Self, TlsError> {
        let mut roots = rustls::RootCertStore::empty();
        let mut seen = Vec::new();
        match &files.ca {
            Some(path) => {
                seen = certificates("members' authorities", path)?;
                for authority in &seen {
                    roots
                        .add(authority.clone())
                        .map_err(|source| TlsError::ClientCa { path: path.clone(), source })?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Mismatch)?
            .with_root_certificates(roots);
        let config =
            match &files.own {
                None => builder.with_no_client_auth(),
                Some((cert, key)) => {
                    let chain = certificates("certificate", cert)?;
                    seen.extend(chain.iter().cloned());
                    let key = PrivateKeyDer::from_pem_file(key).map_err(|source| {
                        TlsError::Pem { what: "key", path: key.clone(), source }
                    })?;
                    builder.with_client_auth_cert(chain, key).map_err(TlsError::Mismatch)?
                }
            };
        Ok(Self { seen, config: Arc::new(config) })
    }
}

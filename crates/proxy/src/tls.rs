//! TLS towards clients, with certificates that change while we run.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// PEM: who may have signed clients' certificates, and whether a client needs one. `None`: clients
    /// show none.
    pub client_ca: Option<(PathBuf, bool)>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read the {what} in {}", path.display())]
    Pem {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    #[error("{} holds no certificate", .0.display())]
    Empty(PathBuf),
    #[error("the certificate and the key do not fit together")]
    Mismatch(#[source] rustls::Error),
    #[error("the authorities in {} cannot be used", path.display())]
    ClientCa {
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("clients' certificates cannot be verified")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

/// What is in force of the files.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: TlsFiles,
    current: ArcSwap<Current>,
}

#[derive(Debug)]
struct Current {
    chain: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
    config: Arc<rustls::ServerConfig>,
}

impl Certificate {
    pub(crate) fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let current = ArcSwap::from_pointee(Current::load(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// Reads the files again. Whether they had changed; on an error the old ones stay in force.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        let fresh = Current::load(&self.files)?;
        let current = self.current.load();
        let changed = current.chain != fresh.chain || current.authorities != fresh.authorities;
        if changed {
            self.current.store(Arc::new(fresh));
        }
        Ok(changed)
    }

    /// The leaf of the chain in force.
    pub(crate) fn leaf(&self) -> Option<CertificateDer<'static>> {
        self.current.load().chain.first().cloned()
    }

    /// For the next connection.
    pub(crate) fn server_config(&self) -> Arc<rustls::ServerConfig> {
        self.current.load().config.clone()
    }
}

impl Current {
    fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let certified = Arc::new(read(files)?);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Mismatch)?;
        let mut authorities = Vec::new();
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some((path, required)) => {
                authorities = certificates("client authorities", path)?;
                let mut roots = rustls::RootCertStore::empty();
                for authority in &authorities {
                    roots
                        .add(authority.clone())
                        .map_err(|source| TlsError::ClientCa { path: path.clone(), source })?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if *required { verifier } else { verifier.allow_unauthenticated() };
                builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Verifier)?)
            }
        };
        let chain = certified.cert.clone();
        let mut config = builder.with_cert_resolver(Arc::new(Always(certified)));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { chain, authorities, config: Arc::new(config) })
    }
}

/// One certificate, whatever name a client asks for.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let pem = |what, path: &PathBuf| {
        let path = path.clone();
        move |source| TlsError::Pem { what, path, source }
    };
    let chain = certificates("certificate", &files.cert)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(pem("key", &files.key))?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(TlsError::Mismatch)
}

pub(crate) fn certificates(
    what: &'static str,
    path: &PathBuf,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| TlsError::Pem { what, path: path.clone(), source })?;
    if chain.is_empty() { Err(TlsError::Empty(path.clone())) } else { Ok(chain) }
}

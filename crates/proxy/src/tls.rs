//! TLS towards clients, with certificates that change while we run.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Where the certificate and its key are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
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
}

/// The certificate in force.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: TlsFiles,
    current: ArcSwap<CertifiedKey>,
}

impl Certificate {
    pub(crate) fn load(files: TlsFiles) -> Result<Arc<Self>, TlsError> {
        let current = ArcSwap::from_pointee(read(&files)?);
        Ok(Arc::new(Self { files, current }))
    }

    /// Reads the files again. Whether they had changed; on an error the old pair stays in force.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        let fresh = read(&self.files)?;
        let changed = self.current.load().cert != fresh.cert;
        if changed {
            self.current.store(Arc::new(fresh));
        }
        Ok(changed)
    }

    pub(crate) fn server_config(self: &Arc<Self>) -> Result<Arc<rustls::ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Mismatch)?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

fn read(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let pem = |what, path: &PathBuf| {
        let path = path.clone();
        move |source| TlsError::Pem { what, path, source }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(pem("certificate", &files.cert))?;
    if chain.is_empty() {
        return Err(TlsError::Empty(files.cert.clone()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(pem("key", &files.key))?;
    CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())
        .map_err(TlsError::Mismatch)
}

//! Mutual TLS between members and routers, with certificates that change while we run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::MutualTls;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Why certificates cannot be used.
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
    #[error("an authority in {} cannot be used", path.display())]
    Authority {
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
    #[error("the certificate and the key cannot be used")]
    Unusable(#[source] rustls::Error),
    #[error("certificates of the other side cannot be verified")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

struct Read {
    roots: RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn read(files: &MutualTls) -> Result<Read, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates("authorities", &files.ca_file)? {
        roots
            .add(authority)
            .map_err(|source| TlsError::Authority { path: files.ca_file.clone(), source })?;
    }
    let chain = certificates("certificate", &files.cert_file)?;
    let key = PrivateKeyDer::from_pem_file(&files.key_file).map_err(|source| TlsError::Pem {
        what: "key",
        path: files.key_file.clone(),
        source,
    })?;
    Ok(Read { roots, chain, key })
}

/// For who listens: the other side must show a certificate of these authorities.
pub(crate) fn server(files: &MutualTls) -> Result<Arc<ServerConfig>, TlsError> {
    let Read { roots, chain, key } = read(files)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(TlsError::Verifier)?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    Ok(Arc::new(config))
}

/// For who connects.
pub(crate) fn client(files: &MutualTls) -> Result<Arc<ClientConfig>, TlsError> {
    let Read { roots, chain, key } = read(files)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    Ok(Arc::new(config))
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| TlsError::Pem { what, path: path.to_owned(), source })?;
    if chain.is_empty() { Err(TlsError::Empty(path.to_owned())) } else { Ok(chain) }
}

//! TLS towards proxies: certificates that change while we run, and clients that show theirs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// How the ext_proc listener speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    pub identity: Identity,
    /// PEM: who may have signed a client's certificate. `None`: clients show none.
    pub client_ca: Option<PathBuf>,
}

/// Who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// PEM, leaf first, and its key; read again when they change.
    Files { cert: PathBuf, key: PathBuf },
    /// A certificate made at the start. It encrypts, but proves nothing: clients must skip verification.
    SelfSigned,
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
    #[error("the certificate and the key cannot be used")]
    Unusable(#[source] rustls::Error),
    #[error("the client certificate authorities cannot be used")]
    ClientCa(#[source] rustls::server::VerifierBuilderError),
    #[error("cannot make a certificate")]
    SelfSigned(#[source] rcgen::Error),
}

/// The configuration in force.
pub(crate) struct Tls {
    settings: TlsSettings,
    current: ArcSwap<State>,
}

struct State {
    chain: Vec<CertificateDer<'static>>,
    client_ca: Vec<CertificateDer<'static>>,
    config: Arc<ServerConfig>,
}

impl Tls {
    pub(crate) fn load(settings: TlsSettings) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(State::load(&settings)?);
        Ok(Self { settings, current })
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.current.load().config.clone()
    }

    /// The leaf of the chain in force.
    pub(crate) fn leaf(&self) -> Option<CertificateDer<'static>> {
        self.current.load().chain.first().cloned()
    }

    /// Reads the files again. Whether they had changed; on an error the old ones stay in force.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        if self.settings.identity == Identity::SelfSigned && self.settings.client_ca.is_none() {
            return Ok(false);
        }
        let fresh = State::load(&self.settings)?;
        let current = self.current.load();
        // Keys of the same certificate do not change; a self-signed one is always another.
        let is_new = fresh.client_ca != current.client_ca
            || (self.settings.identity != Identity::SelfSigned && fresh.chain != current.chain);
        if is_new {
            self.current.store(Arc::new(fresh));
        }
        Ok(is_new)
    }
}

impl State {
    fn load(settings: &TlsSettings) -> Result<Self, TlsError> {
        let (chain, key) = match &settings.identity {
            Identity::Files { cert, key } => (certificates(cert)?, read_key(key)?),
            Identity::SelfSigned => self_signed()?,
        };
        let client_ca = match &settings.client_ca {
            Some(path) => certificates(path)?,
            None => Vec::new(),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?;
        let builder = if client_ca.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            for certificate in &client_ca {
                roots.add(certificate.clone()).map_err(TlsError::Unusable)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                .build()
                .map_err(TlsError::ClientCa)?;
            builder.with_client_cert_verifier(verifier)
        };
        let mut config =
            builder.with_single_cert(chain.clone(), key).map_err(TlsError::Unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { chain, client_ca, config: Arc::new(config) })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| TlsError::Pem { what: "certificate", path: path.to_owned(), source })?;
    if chain.is_empty() {
        return Err(TlsError::Empty(path.to_owned()));
    }
    Ok(chain)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| TlsError::Pem {
        what: "key",
        path: path.to_owned(),
        source,
    })
}

fn self_signed() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let names = vec!["wicketgate-epp".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(TlsError::SelfSigned)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (cert, key)
    }

    #[test]
    fn a_new_certificate_takes_force_and_a_broken_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = write(folder.path(), "one");
        let identity = Identity::Files { cert: cert.clone(), key };
        let tls = Tls::load(TlsSettings { identity, client_ca: None }).unwrap();
        let first = tls.config();
        assert!(!tls.reload().unwrap(), "nothing changed");
        write(folder.path(), "two");
        assert!(tls.reload().unwrap());
        assert!(!Arc::ptr_eq(&first, &tls.config()));
        std::fs::write(&cert, "nonsense").unwrap();
        let second = tls.config();
        assert!(tls.reload().is_err());
        assert!(Arc::ptr_eq(&second, &tls.config()));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let identity = Identity::Files { cert: "/nowhere/c".into(), key: "/nowhere/k".into() };
        let error = Tls::load(TlsSettings { identity, client_ca: None }).err().unwrap();
        assert!(error.to_string().contains("/nowhere/c"), "{error}");
    }

    #[test]
    fn a_certificate_can_be_made_at_the_start() {
        let tls = Tls::load(TlsSettings { identity: Identity::SelfSigned, client_ca: None });
        assert!(!tls.unwrap().reload().unwrap());
    }
}

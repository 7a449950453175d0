//! For who listens.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;

use crate::TlsError;
use crate::files::{certificates, key, trusted};
use crate::follow::follow;

/// How a listener speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    pub identity: Identity,
    pub clients: ClientCertificates,
    /// Protocols that are taken, the best first.
    pub protocols: &'static [&'static [u8]],
}

/// Who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// PEM, leaf first, and its key; read again when they change.
    Files { cert: PathBuf, key: PathBuf },
    /// A certificate for this name made at the start. It encrypts, but proves nothing: clients must skip
    /// verification.
    SelfSigned(&'static str),
}

/// What is asked of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    NotAsked,
    /// PEM: who may have signed them. A client may have none.
    Optional(PathBuf),
    /// A client without one is turned away.
    Required(PathBuf),
}

/// The configuration in force.
#[derive(Debug)]
pub struct Server {
    files: ServerFiles,
    current: ArcSwap<Current>,
}

#[derive(Debug)]
struct Current {
    chain: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
    config: Arc<ServerConfig>,
}

impl Server {
    /// # Errors
    /// A file cannot be read or used.
    pub fn load(files: ServerFiles) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(Current::load(&files)?);
        Ok(Self { files, current })
    }

    /// Reads the files again. Whether they had changed; on an error the old ones stay in force.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let is_made = matches!(self.files.identity, Identity::SelfSigned(_));
        if is_made && self.files.clients == ClientCertificates::NotAsked {
            return Ok(false);
        }
        let fresh = Current::load(&self.files)?;
        let current = self.current.load();
        // A certificate that is made is always another.
        let has_changed =
            fresh.authorities != current.authorities || (!is_made && fresh.chain != current.chain);
        if has_changed {
            self.current.store(Arc::new(fresh));
        }
        Ok(has_changed)
    }

    /// Takes new certificates into use, for ever.
    ///
    /// * `show`: told the leaf in force (DER), now and after each change.
    pub async fn follow(&self, show: impl Fn(&[u8])) {
        let tell = || self.current.load().chain.first().map_or((), |leaf| show(leaf));
        tell();
        let renewed = || {
            tell();
            tracing::info!("certificate reloaded");
        };
        follow(|| self.reload(), renewed).await;
    }

    /// For the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.current.load().config.clone()
    }
}

impl Current {
    fn load(files: &ServerFiles) -> Result<Self, TlsError> {
        let (chain, key) = match &files.identity {
            Identity::Files { cert, key: file } => (certificates("certificate", cert)?, key(file)?),
            Identity::SelfSigned(name) => self_signed(name)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?;
        let (ca, is_required) = match &files.clients {
            ClientCertificates::NotAsked => (None, false),
            ClientCertificates::Optional(ca) => (Some(ca), false),
            ClientCertificates::Required(ca) => (Some(ca), true),
        };
        let mut authorities = Vec::new();
        let builder = match ca {
            None => builder.with_no_client_auth(),
            Some(_) => {
                let (roots, held) = trusted(ca)?;
                authorities = held;
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                let verifier =
                    if is_required { verifier } else { verifier.allow_unauthenticated() };
                builder.with_client_cert_verifier(verifier.build().map_err(TlsError::Verifier)?)
            }
        };
        let mut config =
            builder.with_single_cert(chain.clone(), key).map_err(TlsError::Mismatch)?;
        config.alpn_protocols = files.protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Self { chain, authorities, config: Arc::new(config) })
    }
}

type ChainAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn self_signed(name: &str) -> Result<ChainAndKey, TlsError> {
    let made =
        rcgen::generate_simple_self_signed(vec![name.to_owned()]).map_err(TlsError::SelfSigned)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn write(folder: &Path, name: &str) -> Identity {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Identity::Files { cert, key }
    }

    fn server(identity: Identity) -> Result<Server, TlsError> {
        let clients = ClientCertificates::NotAsked;
        Server::load(ServerFiles { identity, clients, protocols: &[b"h2"] })
    }

    #[test]
    fn a_new_certificate_takes_force_and_a_broken_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let server = server(write(folder.path(), "one")).unwrap();
        let first = server.config();
        assert!(!server.reload().unwrap(), "nothing changed");
        write(folder.path(), "two");
        assert!(server.reload().unwrap());
        assert!(!Arc::ptr_eq(&first, &server.config()));
        std::fs::write(folder.path().join("cert.pem"), "nonsense").unwrap();
        let second = server.config();
        assert!(server.reload().is_err());
        assert!(Arc::ptr_eq(&second, &server.config()));
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let identity = write(folder.path(), "one");
        let other = rcgen::KeyPair::generate().unwrap();
        std::fs::write(folder.path().join("key.pem"), other.serialize_pem()).unwrap();
        assert!(matches!(server(identity), Err(TlsError::Mismatch(_))));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let identity = Identity::Files { cert: "/nowhere/c".into(), key: "/nowhere/k".into() };
        let error = server(identity).unwrap_err();
        assert!(error.to_string().contains("/nowhere/c"), "{error}");
    }

    #[test]
    fn a_certificate_can_be_made_at_the_start() {
        assert!(!server(Identity::SelfSigned("test")).unwrap().reload().unwrap());
    }
}

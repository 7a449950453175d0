//! For who connects.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use crate::TlsError;
use crate::files::{certificates, key, trusted};
use crate::follow::follow;

/// Where a client's certificates are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// PEM: whom to trust. `None`: the system's authorities.
    pub ca: Option<PathBuf>,
    /// PEM: our own chain and its key; `None`: none is shown.
    pub own: Option<(PathBuf, PathBuf)>,
    /// Protocols that are offered, the best first; none: none is asked for.
    pub protocols: &'static [&'static [u8]],
}

/// The configuration in force.
#[derive(Debug)]
pub struct Client {
    files: ClientFiles,
    current: ArcSwap<Current>,
}

#[derive(Debug)]
struct Current {
    seen: Vec<CertificateDer<'static>>,
    config: Arc<ClientConfig>,
}

impl Client {
    /// # Errors
    /// A file cannot be read or used.
    pub fn load(files: ClientFiles) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(Current::load(&files)?);
        Ok(Self { files, current })
    }

    /// Reads the files again. Whether they had changed; on an error the old ones stay in force.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let fresh = Current::load(&self.files)?;
        let has_changed = self.current.load().seen != fresh.seen;
        if has_changed {
            self.current.store(Arc::new(fresh));
        }
        Ok(has_changed)
    }

    /// Takes new certificates into use, for ever.
    pub async fn follow(&self) {
        let renewed = || tracing::info!("certificates towards other servers reloaded");
        follow(|| self.reload(), renewed).await;
    }

    /// For the next connection.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.current.load().config.clone()
    }
}

impl Current {
    fn load(files: &ClientFiles) -> Result<Self, TlsError> {
        let (roots, mut seen) = trusted(files.ca.as_ref())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?
            .with_root_certificates(roots);
        let mut config = match &files.own {
            None => builder.with_no_client_auth(),
            Some((chain, own_key)) => {
                let chain = certificates("certificate", chain)?;
                seen.extend(chain.iter().cloned());
                builder.with_client_auth_cert(chain, key(own_key)?).map_err(TlsError::Mismatch)?
            }
        };
        config.alpn_protocols = files.protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Self { seen, config: Arc::new(config) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_authorities_take_force_and_broken_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        let write = |name: &str| {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
            std::fs::write(&ca, made.cert.pem()).unwrap();
        };
        write("one");
        let files = ClientFiles { ca: Some(ca.clone()), ..ClientFiles::default() };
        let client = Client::load(files).unwrap();
        assert!(!client.reload().unwrap(), "nothing changed");
        write("two");
        assert!(client.reload().unwrap());
        let second = client.config();
        std::fs::write(&ca, "nonsense").unwrap();
        let error = client.reload().unwrap_err();
        assert!(error.to_string().contains("ca.pem"), "{error}");
        assert!(Arc::ptr_eq(&second, &client.config()));
    }
}

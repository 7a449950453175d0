//! PEM files: chains, keys, and whom to trust.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::TlsError;

/// A chain, or authorities; at least one.
///
/// * `what`: what they are called where they cannot be read.
pub fn certificates(
    what: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| TlsError::Pem { what, path: path.to_owned(), source })?;
    if found.is_empty() { Err(TlsError::Empty(path.to_owned())) } else { Ok(found) }
}

pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| TlsError::Pem {
        what: "key",
        path: path.to_owned(),
        source,
    })
}

/// Those whom to trust, and the certificates that the file held.
///
/// * `file`: PEM; `None`: the system's authorities.
pub fn trusted(
    file: Option<&PathBuf>,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() {
            Err(TlsError::NoAuthorities)
        } else {
            Ok((roots, Vec::new()))
        };
    };
    let held = certificates("authorities", path)?;
    for authority in &held {
        roots
            .add(authority.clone())
            .map_err(|source| TlsError::Authority { path: path.clone(), source })?;
    }
    Ok((roots, held))
}

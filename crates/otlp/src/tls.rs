//! Whom to trust as the collector.

use std::io;
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::settings::Protocol;
use crate::transport::connector_of;

/// * `ca_file`: PEM; `None`: the system's authorities.
pub(crate) fn connector(ca_file: Option<&Path>, protocol: Protocol) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let named = |error: &dyn std::fmt::Display| {
                io::Error::other(format!(
                    "authorities of the collector, {}: {error}",
                    file.display()
                ))
            };
            let certificates =
                CertificateDer::pem_file_iter(file).map_err(|error| named(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| named(&error))?;
                roots.add(certificate).map_err(|error| named(&error))?;
            }
            if roots.is_empty() {
                return Err(named(&"no certificate is in there"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(io::Error::other(
                    "the system has no authorities to check the collector's certificate with: \
                     set observability.tracing.caFile",
                ));
            }
        }
    }
    let provider = rustls::crypto::ring::default_provider();
    let mut config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if protocol == Protocol::Grpc {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    Ok(connector_of(config))
}

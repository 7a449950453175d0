//! Certificates in files, and TLS configurations that follow them.
//!
//! Every listener and every connection that speaks TLS takes its configuration from here, so that all of
//! them read files, trust authorities and take over new certificates in the same way.

mod client;
mod files;
mod follow;
mod server;

use std::path::PathBuf;

pub use client::{Client, ClientFiles};
pub use files::{certificates, trusted};
pub use server::{ClientCertificates, Identity, Server, ServerFiles};

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
    #[error(
        "this system has no certificate authorities: install its package ca-certificates, or name a file with some"
    )]
    NoAuthorities,
    #[error("the certificate and the key do not fit together")]
    Mismatch(#[source] rustls::Error),
    #[error("clients' certificates cannot be verified")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
    #[error("cannot make a certificate")]
    SelfSigned(#[source] rcgen::Error),
    #[error("TLS cannot be set up")]
    Unusable(#[source] rustls::Error),
}

//! What the chain of credentials needs from us: files, the environment, and HTTP without a proxy's help.
//!
//! In order: environment, shared files, IAM Identity Center, web identity (EKS service accounts), container
//! (ECS, EKS pod identity), instance (IMDSv2). The chain is reqsign's; a command of the shared files
//! (`credential_process`) is not run.

use std::time::Duration;

use bytes::Bytes;
use reqsign_core::{Context, Error, FileRead, HttpSend, OsEnv};

/// For the whole of one request.
const LIMIT: Duration = Duration::from_secs(10);
/// The address of an instance's credentials answers at once, or is not there.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Of an answer.
const BYTES_MAX: u64 = 1 << 20;

pub(crate) fn context(http: &Http) -> Context {
    Context::new().with_env(OsEnv).with_file_read(Files).with_http_send(http.clone())
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let read = std::fs::read(path);
        read.map_err(|error| Error::unexpected(format!("cannot read {path}")).with_source(error))
    }
}

/// HTTP for one thread that waits; connections are kept.
#[derive(Clone, Debug)]
pub(crate) struct Http(ureq::Agent);

impl Http {
    pub(crate) fn new() -> Self {
        use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(LIMIT))
            .timeout_connect(Some(CONNECT_LIMIT))
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Self(config.new_agent())
    }

    pub(crate) fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let answer = if body.is_empty() && parts.method != http::Method::PUT {
            self.0.run(http::Request::from_parts(parts, ()))?
        } else {
            self.0.run(http::Request::from_parts(parts, body.to_vec()))?
        };
        let (parts, mut body) = answer.into_parts();
        let body = body.with_config().limit(BYTES_MAX).read_to_vec()?;
        Ok(http::Response::from_parts(parts, body.into()))
    }
}

impl HttpSend for Http {
    async fn http_send(
        &self,
        request: http::Request<Bytes>,
    ) -> reqsign_core::Result<http::Response<Bytes>> {
        // Blocks, which on this thread nobody minds.
        self.send(request)
            .map_err(|error| Error::unexpected("no credentials over HTTP").with_source(error))
    }
}

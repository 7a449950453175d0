//! Signing keys over HTTPS: one request, one connection, no redirect.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use gateway::{FetchKeys, FetchedKeys, KeysFetchError};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tls::{Client, ClientFiles, TlsError};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Gets signing keys.
///
/// They are fetched every few minutes, so a connection of their own costs less than keeping one.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeysFetcher;

impl FetchKeys for KeysFetcher {
    async fn get(
        &self,
        uri: &str,
        ca_file: Option<&Path>,
        bytes_max: usize,
        timeout: Duration,
    ) -> Result<FetchedKeys, KeysFetchError> {
        let getting = get(uri, ca_file, bytes_max);
        tokio::time::timeout(timeout, getting).await.unwrap_or(Err(KeysFetchError::Timeout))
    }
}

async fn get(
    uri: &str,
    ca_file: Option<&Path>,
    bytes_max: usize,
) -> Result<FetchedKeys, KeysFetchError> {
    let no_uri = || KeysFetchError::Connect("the URI has no host".to_owned());
    let uri: http::Uri = uri.parse().map_err(|_| no_uri())?;
    // The document's form says so too; here nothing could go out in the clear.
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("https"));
    let authority = authority.ok_or_else(no_uri)?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|_| no_uri())?;
    let files = ClientFiles { ca: ca_file.map(Path::to_owned), ..ClientFiles::default() };
    let config = Client::load(files).map_err(unusable)?.config();

    let connecting = TcpStream::connect((host, authority.port_u16().unwrap_or(443)));
    let io = connecting.await.map_err(|error| KeysFetchError::Connect(error.to_string()))?;
    let io = TlsConnector::from(config)
        .connect(name, io)
        .await
        .map_err(|error| KeysFetchError::Tls(error.to_string()))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io))
        .await
        .map_err(|_| KeysFetchError::Broken)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = http::Request::get(path)
        .header("host", authority.as_str())
        .header("accept", "application/jwk-set+json, application/json")
        .header("user-agent", "wicketgate")
        .body(Empty::<Bytes>::new())
        .map_err(|_| KeysFetchError::Broken)?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(|_| KeysFetchError::Broken)?;
        read(response, bytes_max).await
    };
    tokio::pin!(connection);
    tokio::pin!(asking);
    // The connection is driven here and ends with the answer.
    tokio::select! {
        answer = &mut asking => answer,
        _ = &mut connection => asking.await,
    }
}

async fn read(
    response: http::Response<hyper::body::Incoming>,
    bytes_max: usize,
) -> Result<FetchedKeys, KeysFetchError> {
    if response.status() != http::StatusCode::OK {
        return Err(KeysFetchError::Status(response.status().as_u16()));
    }
    let cache_control = response.headers().get("cache-control");
    let max_age = cache_control.and_then(|value| value.to_str().ok()).and_then(max_age);
    let body = Limited::new(response.into_body(), bytes_max).collect().await;
    match body {
        Ok(body) => Ok(FetchedKeys { body: body.to_bytes().to_vec(), max_age }),
        Err(error) if error.is::<LengthLimitError>() => Err(KeysFetchError::TooLarge(bytes_max)),
        Err(_) => Err(KeysFetchError::Broken),
    }
}

/// How long an answer may be kept, by its `Cache-Control` (RFC 9111 §5.2.2).
fn max_age(cache_control: &str) -> Option<Duration> {
    let mut found = None;
    for directive in cache_control.split(',') {
        let directive = directive.trim().to_ascii_lowercase();
        if matches!(directive.as_str(), "no-store" | "no-cache") {
            return Some(Duration::ZERO);
        }
        if let Some(seconds) = directive.strip_prefix("max-age=") {
            found = seconds.trim_matches('"').parse().ok().map(Duration::from_secs);
        }
    }
    found
}

fn unusable(error: TlsError) -> KeysFetchError {
    let hint = match error {
        TlsError::NoAuthorities => ": jwks.caFile",
        _ => "",
    };
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    KeysFetchError::Tls(format!("{error}{hint}{}", cause.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_control_says_how_long_keys_may_be_kept() {
        let seconds = |text| max_age(text).map(|age| age.as_secs());
        assert_eq!(seconds("public, max-age=3600, must-revalidate"), Some(3600));
        assert_eq!(seconds("Max-Age=\"60\""), Some(60));
        assert_eq!(seconds("max-age=60, no-store"), Some(0));
        assert_eq!(seconds("public"), None);
        assert_eq!(seconds("max-age=soon"), None);
    }
}

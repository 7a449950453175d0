//! `PutMetricData`, signed.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, header};
use reqsign_aws_v4::{Credential, DefaultCredentialProvider, RequestSigner};
use reqsign_core::Signer;
use telemetry::metrics::labels::CloudWatchFailure;

use crate::credentials::{Http, context};
use crate::put;
use crate::report::Report;

/// Characters of an answer that are repeated in the log.
const SAID_MAX: usize = 300;

/// Why a report did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("no credentials: set AWS_ACCESS_KEY_ID and its like, or give pod or instance a role")]
    Credentials(#[source] reqsign_core::Error),
    #[error("CloudWatch cannot be reached")]
    Connect(#[source] Box<ureq::Error>),
    #[error("CloudWatch answered {status}: {said}")]
    Refused { status: u16, said: String },
    #[error("the report cannot be written")]
    Write(#[from] std::io::Error),
    #[error("`{0}` is no address")]
    Address(String, #[source] http::Error),
}

impl SendError {
    pub(crate) fn reason(&self) -> CloudWatchFailure {
        match self {
            Self::Credentials(_) => CloudWatchFailure::Credentials,
            Self::Connect(_) => CloudWatchFailure::Connect,
            Self::Refused { .. } => CloudWatchFailure::Refused,
            Self::Write(_) | Self::Address(..) => CloudWatchFailure::Write,
        }
    }
}

/// A client for one region.
#[derive(Debug)]
pub(crate) struct Api {
    endpoint: String,
    http: Http,
    signer: Signer<Credential>,
    runtime: tokio::runtime::Runtime,
}

impl Api {
    /// * `endpoint`: without one, the region's own.
    pub(crate) fn new(region: &str, endpoint: Option<&str>) -> std::io::Result<Self> {
        let http = Http::new();
        let signer = Signer::new(
            context(&http),
            DefaultCredentialProvider::new(),
            RequestSigner::new("monitoring", region),
        );
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        let usual = || format!("https://monitoring.{region}.amazonaws.com{suffix}/");
        Ok(Self {
            endpoint: endpoint.map_or_else(usual, str::to_owned),
            http,
            signer,
            // The signer is written for async; nothing but it runs here.
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
        })
    }

    pub(crate) fn send(
        &self,
        report: &Report,
        namespace: &str,
        dimensions: &BTreeMap<String, String>,
        interval: Duration,
    ) -> Result<(), SendError> {
        for form in put::forms(report, namespace, dimensions, interval) {
            self.put(put::gzipped(&form)?.into())?;
        }
        Ok(())
    }

    fn put(&self, body: Bytes) -> Result<(), SendError> {
        let digest = ring::digest::digest(&ring::digest::SHA256, &body);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let request = http::Request::post(&self.endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))
            .header("x-amz-content-sha256", digest)
            .body(body)
            .map_err(|error| SendError::Address(self.endpoint.clone(), error))?;
        let (mut head, body) = request.into_parts();
        let signed = self.runtime.block_on(self.signer.sign(&mut head, None));
        signed.map_err(SendError::Credentials)?;
        let answer = self.http.send(http::Request::from_parts(head, body));
        let answer = answer.map_err(|error| SendError::Connect(Box::new(error)))?;
        if answer.status().is_success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(answer.body());
        Err(SendError::Refused { status: answer.status().as_u16(), said: reason_in(&said) })
    }
}

/// Code and message of an error document, else its beginning.
fn reason_in(text: &str) -> String {
    let element = |name: &str| {
        let rest = text.split_once(&format!("<{name}>"))?.1;
        rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
    };
    let said = match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        _ => text.to_owned(),
    };
    said.chars().filter(|c| !c.is_control()).take(SAID_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_error_document_code_and_message_are_said() {
        let text = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no\nright</Message></Error></ErrorResponse>";
        assert_eq!(reason_in(text), "AccessDenied: noright");
        assert_eq!(reason_in(&"x".repeat(1000)).len(), SAID_MAX);
    }

    #[test]
    fn without_an_endpoint_the_regions_own_is_asked() {
        let of = |region| Api::new(region, None).unwrap().endpoint;
        assert_eq!(of("eu-west-1"), "https://monitoring.eu-west-1.amazonaws.com/");
        assert_eq!(of("cn-north-1"), "https://monitoring.cn-north-1.amazonaws.com.cn/");
    }
}

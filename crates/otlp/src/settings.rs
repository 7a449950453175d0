//! What to export, and where: the document, and before it OpenTelemetry's own variables.

use std::path::PathBuf;
use std::time::Duration;

use config::{OtlpProtocol, Tracing};
use http::{HeaderName, HeaderValue, Uri};
use telemetry::trace::Sampling;

use crate::environment::Environment;
use crate::wire::KeyValue;

/// How spans travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    HttpProtobuf,
    Grpc,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// With the path, for [`Protocol::HttpProtobuf`].
    pub endpoint: Uri,
    pub protocol: Protocol,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub timeout: Duration,
    pub ca_file: Option<PathBuf>,
    pub resource: Vec<KeyValue>,
    pub sampling: Sampling,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name} is `{value}`: {remedy}")]
pub struct SettingsError {
    pub name: &'static str,
    pub value: String,
    pub remedy: &'static str,
}

impl Settings {
    /// `None`: nothing is to be exported.
    ///
    /// * `lookup`: a variable of the environment by its name.
    ///
    /// # Errors
    /// When a variable has a value that cannot be meant.
    pub fn from(
        document: Option<&Tracing>,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, SettingsError> {
        let environment = Environment::new(&lookup);
        let is_asked_for = document.is_some() || environment.endpoint().is_some();
        if !is_asked_for || environment.is_off() {
            return Ok(None);
        }
        let default = Tracing::default();
        let document = document.unwrap_or(&default);
        let protocol = match environment.protocol()? {
            Some(protocol) => protocol,
            None => match document.protocol {
                OtlpProtocol::HttpProtobuf => Protocol::HttpProtobuf,
                OtlpProtocol::Grpc => Protocol::Grpc,
            },
        };
        let sampling = environment.sampling(Sampling {
            ratio: f64::from(document.sample_ratio.get()),
            follows_parent: document.follow_parent,
            errors: document.sample_errors,
            slower_than: document.sample_slower_than,
        })?;
        Ok(Some(Self {
            endpoint: endpoint(document, &environment, protocol)?,
            protocol,
            headers: environment.headers()?,
            timeout: environment.timeout()?.unwrap_or(document.timeout),
            ca_file: environment.certificate().or_else(|| document.ca_file.clone()),
            resource: environment.resource(&document.service_name)?,
            sampling,
        }))
    }
}

fn endpoint(
    document: &Tracing,
    environment: &Environment<'_>,
    protocol: Protocol,
) -> Result<Uri, SettingsError> {
    const REMEDY: &str = "write http://HOST:4318, or with gRPC http://HOST:4317";
    let (name, text, is_whole) = match environment.endpoint() {
        Some((name, text, is_whole)) => (name, text, is_whole),
        None => {
            let usual = match protocol {
                Protocol::HttpProtobuf => "http://localhost:4318",
                Protocol::Grpc => "http://localhost:4317",
            };
            let text = document.endpoint.clone().unwrap_or_else(|| usual.to_owned());
            ("observability.tracing.endpoint", text, false)
        }
    };
    let whole = match protocol {
        Protocol::HttpProtobuf if !is_whole && !text.ends_with("/v1/traces") => {
            format!("{}/v1/traces", text.trim_end_matches('/'))
        }
        _ => text.clone(),
    };
    let error = || SettingsError { name, value: text.clone(), remedy: REMEDY };
    let uri: Uri = whole.parse().map_err(|_| error())?;
    let is_url = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    if is_url { Ok(uri) } else { Err(error()) }
}

#[cfg(test)]
mod tests;

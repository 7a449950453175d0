//! OpenTelemetry's variables, as its specification has them. Those for traces alone go before those for
//! all signals; an empty one counts as absent.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use telemetry::trace::Sampling;

use crate::settings::{Protocol, SettingsError};
use crate::wire::KeyValue;

pub(crate) struct Environment<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

type Named = (&'static str, String);

impl<'a> Environment<'a> {
    pub(crate) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup }
    }

    fn get(&self, name: &'static str) -> Option<Named> {
        let value = (self.lookup)(name)?.trim().to_owned();
        (!value.is_empty()).then_some((name, value))
    }

    pub(crate) fn is_off(&self) -> bool {
        let is = |name, word: &str| {
            self.get(name).is_some_and(|(_, value)| value.eq_ignore_ascii_case(word))
        };
        is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none")
    }

    /// The variable's name, its value, and whether the value is complete with its path.
    pub(crate) fn endpoint(&self) -> Option<(&'static str, String, bool)> {
        let own = self.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(|(n, v)| (n, v, true));
        own.or_else(|| self.get("OTEL_EXPORTER_OTLP_ENDPOINT").map(|(n, v)| (n, v, false)))
    }

    pub(crate) fn protocol(&self) -> Result<Option<Protocol>, SettingsError> {
        let named = self
            .get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
            .or_else(|| self.get("OTEL_EXPORTER_OTLP_PROTOCOL"));
        match named {
            None => Ok(None),
            Some((_, value)) if value == "grpc" => Ok(Some(Protocol::Grpc)),
            Some((_, value)) if value == "http/protobuf" => Ok(Some(Protocol::HttpProtobuf)),
            Some((name, value)) => {
                Err(SettingsError { name, value, remedy: "write grpc or http/protobuf" })
            }
        }
    }

    /// `name=value,name=value`; values may be percent-encoded.
    pub(crate) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, SettingsError> {
        let named = self
            .get("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
            .or_else(|| self.get("OTEL_EXPORTER_OTLP_HEADERS"));
        let Some((name, list)) = named else { return Ok(Vec::new()) };
        // The value may be a secret, so it is not shown.
        let wrong = || SettingsError {
            name,
            value: "…".to_owned(),
            remedy: "write name=value, several with commas",
        };
        let pairs = pairs(&list).map(|(key, value)| {
            let key = HeaderName::try_from(key).ok()?;
            let mut value = HeaderValue::try_from(value).ok()?;
            value.set_sensitive(true);
            Some((key, value))
        });
        pairs.collect::<Option<Vec<_>>>().ok_or_else(wrong)
    }

    /// Milliseconds.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, SettingsError> {
        let named = self
            .get("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
            .or_else(|| self.get("OTEL_EXPORTER_OTLP_TIMEOUT"));
        let Some((name, value)) = named else { return Ok(None) };
        match value.parse() {
            Ok(millis @ 1..) => Ok(Some(Duration::from_millis(millis))),
            _ => Err(SettingsError { name, value, remedy: "write milliseconds, such as 10000" }),
        }
    }

    pub(crate) fn certificate(&self) -> Option<PathBuf> {
        let named = self
            .get("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE")
            .or_else(|| self.get("OTEL_EXPORTER_OTLP_CERTIFICATE"));
        named.map(|(_, file)| PathBuf::from(file))
    }

    pub(crate) fn resource(&self, service_name: &str) -> Result<Vec<KeyValue>, SettingsError> {
        let mut resource = Vec::new();
        let mut has_name = false;
        if let Some((_, list)) = self.get("OTEL_RESOURCE_ATTRIBUTES") {
            for (key, value) in pairs(&list) {
                has_name |= key == "service.name";
                resource.push(KeyValue::text(&key, value));
            }
        }
        let own = self.get("OTEL_SERVICE_NAME").map(|(_, name)| name);
        if own.is_some() {
            resource.retain(|pair| pair.key != "service.name");
        }
        if own.is_some() || !has_name {
            let name = own.unwrap_or_else(|| service_name.to_owned());
            resource.insert(0, KeyValue::text("service.name", name));
        }
        resource.push(KeyValue::text("service.version", env!("CARGO_PKG_VERSION")));
        resource.push(KeyValue::text("telemetry.sdk.name", "wicketgate"));
        resource.push(KeyValue::text("telemetry.sdk.language", "rust"));
        Ok(resource)
    }

    pub(crate) fn sampling(&self, mut sampling: Sampling) -> Result<Sampling, SettingsError> {
        let Some((name, value)) = self.get("OTEL_TRACES_SAMPLER") else { return Ok(sampling) };
        let kind = value.strip_prefix("parentbased_");
        sampling.follows_parent = kind.is_some();
        sampling.ratio = match kind.unwrap_or(&value) {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => match self.get("OTEL_TRACES_SAMPLER_ARG") {
                None => 1.0,
                Some((name, value)) => match value.parse() {
                    Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
                    _ => {
                        return Err(SettingsError { name, value, remedy: "write a share, 0 to 1" });
                    }
                },
            },
            _ => {
                let remedy = "write always_on, always_off or traceidratio, with or without parentbased_ before";
                return Err(SettingsError { name, value, remedy });
            }
        };
        Ok(sampling)
    }
}

/// The pairs of a list as W3C Baggage writes it; what has no `=` gives an empty key, which fits nowhere.
fn pairs(list: &str) -> impl Iterator<Item = (String, String)> {
    list.split(',').map(str::trim).filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or(("", pair));
        (key.trim().to_owned(), decoded(value.trim()))
    })
}

/// Percent-encoding undone; what is none stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match hex.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

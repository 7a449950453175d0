//! `observability.cloudWatch`: what CloudWatch accepts, and what the two modes share.

use crate::build::View;
use crate::report::Report;

/// CloudWatch's limits: dimensions of a metric, and characters of a name and of a value.
const DIMENSIONS_MAX: usize = 30;
const DIMENSION_NAME_MAX: usize = 255;
const DIMENSION_VALUE_MAX: usize = 1024;

pub(super) fn check(view: View<'_>, report: &mut Report<'_>) {
    let view = view.get("observability").get("cloudWatch");
    const PATH: &str = "spec.observability.cloudWatch";
    let other = match view.get("mode").word() {
        Some("emf") => [("region", "api"), ("endpoint", "api")].as_slice(),
        Some("api") => &[("target", "emf")],
        _ => &[],
    };
    for (key, mode) in other {
        if view.get(key).is_present() {
            report.error_with_hint(
                view.get(key).place(),
                &format!("{PATH}.{key}"),
                format!("`{key}` is for `mode: {mode}` only"),
                format!("remove it, or write `mode: {mode}`"),
            );
        }
    }
    if let Some(endpoint) = view.get("endpoint").word()
        && !["http://", "https://"].iter().any(|scheme| has_host(endpoint, scheme))
    {
        report.error_with_hint(
            view.get("endpoint").place(),
            &format!("{PATH}.endpoint"),
            format!("`{endpoint}` is no address of a service"),
            "write https://HOST or http://HOST:PORT",
        );
    }
    if let Some(address) = view.get("target").word().and_then(|text| text.strip_prefix("tcp://"))
        && !is_host_and_port(address)
    {
        report.error_with_hint(
            view.get("target").place(),
            &format!("{PATH}.target"),
            "an agent is named by host and port",
            "write tcp://HOST:PORT, such as tcp://127.0.0.1:25888",
        );
    }
    let namespace = view.get("namespace");
    if let Some(text) = namespace.word()
        && (text.is_empty() || text.starts_with("AWS/") || !text.bytes().all(is_of_a_namespace))
    {
        report.error_with_hint(
            namespace.place(),
            &format!("{PATH}.namespace"),
            "CloudWatch does not accept this namespace",
            "letters, digits and .-_/#: only, and not beginning with AWS/",
        );
    }
    dimensions(view.get("dimensions"), &format!("{PATH}.dimensions"), report);
}

fn dimensions(view: View<'_>, path: &str, report: &mut Report<'_>) {
    let dimensions = view.labels();
    if dimensions.len() > DIMENSIONS_MAX {
        let message =
            format!("has {} dimensions, CloudWatch takes {DIMENSIONS_MAX}", dimensions.len());
        report.error(view.place(), path, message);
    }
    for (name, value) in &dimensions {
        let fits = |text: &str, max| {
            (1..=max).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
                && !text.trim().is_empty()
        };
        if !fits(name, DIMENSION_NAME_MAX) || name.starts_with(':') {
            let message = format!("CloudWatch does not accept the name `{}`", name.escape_debug());
            report.error_with_hint(
                view.place(),
                path,
                message,
                "1 to 255 printable ASCII characters, the first no colon",
            );
        } else if !fits(value, DIMENSION_VALUE_MAX) {
            report.error_with_hint(
                view.get(name).place(),
                &format!("{path}.{name}"),
                "CloudWatch does not accept this value",
                "1 to 1024 printable ASCII characters",
            );
        }
    }
}

fn has_host(url: &str, scheme: &str) -> bool {
    url.strip_prefix(scheme).is_some_and(|rest| {
        let host = rest.split('/').next().unwrap_or_default();
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@')
    })
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

fn is_of_a_namespace(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_/#:".contains(&byte)
}

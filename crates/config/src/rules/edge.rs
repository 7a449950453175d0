//! Settings of listeners, limits and intervals that contradict each other.

use std::net::SocketAddr;

use crate::build::View;
use crate::format::{show_bytes, show_duration};
use crate::node::Place;
use crate::report::Report;
use crate::spec::Spec;

pub(super) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    addresses(spec, view, report);
    bodies(spec, view, report);
    intervals(spec, view, report);
}

fn addresses(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let listener = view.get("listener");
    let mut used: Vec<(&str, SocketAddr, Place)> =
        vec![("spec.listener.address", spec.listener.address, listener.get("address").place())];
    if let Some(tls) = &spec.listener.tls {
        let place = listener.get("tls").get("address").place();
        used.push(("spec.listener.tls.address", tls.address, place));
    }
    let place = view.get("admin").get("address").place();
    used.push(("spec.admin.address", spec.admin.address, place));
    for (index, (path, address, place)) in used.iter().enumerate() {
        let clash = |other: &SocketAddr| {
            let same_ip = address.ip() == other.ip()
                || address.ip().is_unspecified()
                || other.ip().is_unspecified();
            address.port() != 0 && address.port() == other.port() && same_ip
        };
        let first = used[..index].iter().find(|(_, other, _)| clash(other));
        let Some((taken, other, at)) = first else { continue };
        let place = if *place == Place::default() { *at } else { *place };
        let message = format!("`{address}` overlaps `{taken}`, which is `{other}`");
        report.error_with_hint(place, path, message, "give each its own port");
    }
}

fn bodies(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let limits = view.get("limits");
    let theirs = view.get("bbr").get("maxRequestBodyBytes");
    if limits.get("requestBodyBytesMax").is_present() && theirs.is_present() {
        report.error_with_hint(
            theirs.place(),
            "spec.bbr.maxRequestBodyBytes",
            "the body limit is written twice: here and as `limits.requestBodyBytesMax`",
            "keep one of them",
        );
    }
    let body = spec.limits.request_body_bytes_max;
    for key in ["multipartBodyBytesMax", "bufferedBodyBytesMax"] {
        let own = limits.get(key);
        if own.bytes::<u64>().is_some_and(|bytes| bytes < body) {
            let body = show_bytes(body);
            let message = format!("must be at least `requestBodyBytesMax`, which is {body}");
            report.error(own.place(), &format!("spec.limits.{key}"), message);
        }
    }
}

fn intervals(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let (ejection, scrape) = (&spec.ejection, &spec.scrape);
    let stale_after = scrape.stale_after();
    let pairs = [
        ("ejection", "max", ejection.max, "base", ejection.base),
        ("scrape", "idleInterval", scrape.idle_interval, "busyInterval", scrape.busy_interval),
        ("scrape", "staleAfter", stale_after, "idleInterval", scrape.idle_interval),
    ];
    for (section, key, value, lower_key, least) in pairs {
        if value >= least {
            continue;
        }
        let section_view = view.get(section);
        let written = section_view.get(key).present().unwrap_or(section_view.get(lower_key));
        let least = show_duration(least);
        let message = format!("`{key}` must be at least `{lower_key}`, which is {least}");
        report.error(written.place(), &format!("spec.{section}.{key}"), message);
    }
}

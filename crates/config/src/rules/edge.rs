//! Settings of listeners, limits and intervals that contradict each other.

use std::net::SocketAddr;

use crate::build::View;
use crate::format::{show_bytes, show_duration};
use crate::node::Place;
use crate::report::Report;
use crate::spec::Spec;

pub(crate) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    addresses(spec, view, report);
    bodies(spec, view, report);
    intervals(spec, view, report);
    peers(spec, view.get("peers"), report);
    membership(spec, view.get("global"), report);
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

fn peers(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let Some(peers) = &spec.peers else { return };
    if peers.silence < 3 * peers.flush_interval {
        let written = view.get("silence").present().unwrap_or(view.get("flushInterval"));
        let message = format!(
            "`silence` must be at least three times `flushInterval`, which is {}",
            show_duration(peers.flush_interval)
        );
        report.error(written.place(), "spec.peers.silence", message);
    }
}

/// Reports tell what a cluster holds: beyond the loopback they are encrypted.
fn membership(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let Some(membership) = &spec.global else { return };
    if membership.tls.is_some() {
        return;
    }
    let routers = view.get("routers");
    for (index, router) in membership.routers.iter().enumerate() {
        let host = router.rsplit_once(':').map_or("", |(host, _)| host);
        let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        if host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback()) {
            continue;
        }
        report.error_with_hint(
            routers.item(index).place(),
            &format!("spec.global.routers[{index}]"),
            "without `tls`, reports go to the loopback only",
            "add `tls: { caFile, certFile, keyFile }`: reports tell prices, load and models",
        );
    }
}

//! Rules that span fields.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::spec::{Global, Mode, Store};
use crate::build::View;
use crate::format::{show_duration, time_of_day};
use crate::node::{Place, shortened};
use crate::report::Report;
use crate::rules;
use crate::spec::Spec;
use crate::suggest::closest;

/// How far the sum of AWS's weights may be from 1.
const SUM_TOLERANCE: f64 = 0.001;

/// `view` is the document's `spec`.
pub(super) fn check(spec: &Spec, global: &Global, view: View<'_>, report: &mut Report<'_>) {
    members(view.get("members"), report);
    routing(global, view.get("routing"), report);
    heartbeats(spec, global, view.get("heartbeats"), report);
    store(global, view, report);
    tenants(spec, global, view.get("tenants"), report);
    rules::auth::check(spec, view, report);
    rules::edge::check(spec, view, report);
    rules::rate_limits::check(spec, view.get("rateLimits"), report);
}

fn members(view: View<'_>, report: &mut Report<'_>) {
    let mut names: HashMap<&str, Place> = HashMap::new();
    let mut urls: HashMap<&str, Place> = HashMap::new();
    let mut identities: HashMap<&str, Place> = HashMap::new();
    for (index, member) in view.items().enumerate() {
        let path = |key: &str| format!("spec.members[{index}].{key}");
        for (key, seen) in [("name", &mut names), ("url", &mut urls), ("identity", &mut identities)]
        {
            let Some(text) = member.get(key).word() else { continue };
            let text: &str = text.trim_end_matches('/');
            let place = member.get(key).place();
            if let Some(first) = seen.insert(text, place) {
                let message = format!("Duplicate value: \"{}\"", shortened(text));
                let hint =
                    format!("it stands in line {} already: one gateway is one member", first.line);
                report.error_with_hint(place, &path(key), message, hint);
            }
        }
        rules::auth::secret(member.get("apiKey"), &path("apiKey"), report);
        windows(member.get("price").get("windows"), &path("price.windows"), report);
    }
}

/// No minute of the day may have two prices.
fn windows(view: View<'_>, path: &str, report: &mut Report<'_>) {
    const DAY: u16 = 24 * 60;
    let mut taken = [false; DAY as usize];
    for (index, window) in view.items().enumerate() {
        let time = |key: &str| window.get(key).word().and_then(time_of_day);
        let (Some(from), Some(to)) = (time("from"), time("to")) else { continue };
        let place = window.get("from").place();
        let path = format!("{path}[{index}]");
        if from == to {
            report.error(place, &path, "the window is empty: `from` and `to` are the same");
        }
        let mut minute = from;
        while minute != to {
            if let Some(taken) = taken.get_mut(usize::from(minute))
                && std::mem::replace(taken, true)
            {
                let message =
                    format!("overlaps a window before it at {:02}:{:02}", minute / 60, minute % 60);
                report.error_with_hint(place, &path, message, "give each minute one price");
                break;
            }
            minute = (minute + 1) % DAY;
        }
    }
}

fn routing(global: &Global, view: View<'_>, report: &mut Report<'_>) {
    let weights = view.get("weights");
    let is_by_weights = global.routing.mode == Mode::Weights;
    if is_by_weights && !weights.is_present() {
        report.error_with_hint(
            view.get("mode").place(),
            "spec.routing.weights",
            "`mode: weights` needs all four weights",
            "add `weights: { kvHeadroom: 0.25, queueDepth: 0.25, regionProximity: 0.25, errorRate: 0.25 }`",
        );
    }
    if !weights.is_present() {
        return;
    }
    let sum = global.routing.weights.sum();
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        report.error_with_hint(
            Place { width: 1, ..weights.place() },
            "spec.routing.weights",
            format!("the weights must sum to 1, they sum to {sum:.3}"),
            "0 switches a signal off",
        );
    }
    if !is_by_weights {
        report.warning(
            Place { width: 1, ..weights.place() },
            "spec.routing.weights",
            "the weights act with `mode: weights` only",
            Some("add it, or remove the weights"),
        );
    }
}

fn heartbeats(spec: &Spec, global: &Global, view: View<'_>, report: &mut Report<'_>) {
    let heartbeats = &global.heartbeats;
    if heartbeats.dead_after <= heartbeats.suspect_after {
        let written = view.get("deadAfter").present().unwrap_or(view.get("suspectAfter"));
        let least = show_duration(heartbeats.suspect_after);
        let message = format!("`deadAfter` must be more than `suspectAfter`, which is {least}");
        report.error(written.place(), "spec.heartbeats.deadAfter", message);
    }
    if heartbeats.tls.is_none() && !heartbeats.address.ip().is_loopback() {
        report.error_with_hint(
            Place { width: 1, ..view.place() },
            "spec.heartbeats.tls",
            format!("without `tls`, members report on the loopback only, not on {}", heartbeats.address),
            "add `tls: { caFile, certFile, keyFile }`, or listen on 127.0.0.1: whoever can report can draw \
             all traffic to itself",
        );
    }
    let clashes = |other: SocketAddr| {
        let own = heartbeats.address;
        let same_ip =
            own.ip() == other.ip() || own.ip().is_unspecified() || other.ip().is_unspecified();
        own.port() != 0 && own.port() == other.port() && same_ip
    };
    for (path, other) in [
        ("spec.listener.address", spec.listener.address),
        ("spec.admin.address", spec.admin.address),
    ] {
        if clashes(other) {
            let message = format!("`{}` overlaps `{path}`, which is `{other}`", heartbeats.address);
            let place = view.get("address").place();
            report.error_with_hint(
                place,
                "spec.heartbeats.address",
                message,
                "give each its own port",
            );
        }
    }
}

fn store(global: &Global, view: View<'_>, report: &mut Report<'_>) {
    let store = view.get("store");
    match &global.store {
        Store::Redis(redis) => {
            let place = store.get("url").present().unwrap_or(store.get("type")).place();
            let rest = ["redis://", "rediss://"].iter().find_map(|own| redis.url.strip_prefix(own));
            match rest {
                None => report.error_with_hint(
                    place,
                    "spec.store.url",
                    "`type: redis` needs the address of a Redis or Valkey",
                    "write `url: redis://HOST:6379/0`, or `rediss://…` with TLS",
                ),
                Some(rest) if rest.contains('@') => report.error_with_hint(
                    place,
                    "spec.store.url",
                    "holds a user name or a password",
                    "write `username`, and `password: { file: … }` or `{ env: … }`",
                ),
                Some(_) => {}
            }
            rules::auth::secret(store.get("password"), "spec.store.password", report);
        }
        Store::Embedded => {
            for key in ["url", "username", "password", "prefix", "timeout"] {
                if store.get(key).is_present() {
                    report.warning(
                        store.get(key).place(),
                        &format!("spec.store.{key}"),
                        format!("`{key}` acts with `type: redis` only"),
                        Some("write `type: redis`, or remove it"),
                    );
                }
            }
        }
    }
}

fn tenants(spec: &Spec, global: &Global, view: View<'_>, report: &mut Report<'_>) {
    let mut names: HashMap<&str, Place> = HashMap::new();
    for (index, tenant) in view.items().enumerate() {
        let path = |key: &str| format!("spec.tenants[{index}].{key}");
        let place = tenant.get("tenant").place();
        if let Some(name) = tenant.get("tenant").word() {
            if let Some(first) = names.insert(name, place) {
                let message = format!("Duplicate value: \"{}\"", shortened(name));
                let hint = format!("it stands in line {} already", first.line);
                report.error_with_hint(place, &path("tenant"), message, hint);
            }
            if spec.auth.is_none() && name != "anonymous" {
                report.warning(
                    place,
                    &path("tenant"),
                    format!(
                        "never applies: without `auth` no request has the tenant `{}`",
                        shortened(name)
                    ),
                    Some("add `auth`"),
                );
            }
        }
        let known = || global.members.iter().map(|member| member.name.as_str());
        for (at, item) in tenant.get("members").items().enumerate() {
            let Some(name) = item.word().filter(|name| !known().any(|known| known == *name)) else {
                continue;
            };
            let hint = closest(name, known()).map_or_else(
                || "name one of `members`".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            report.error_with_hint(
                item.place(),
                &path(&format!("members[{at}]")),
                format!("there is no member `{}`", shortened(name)),
                hint,
            );
        }
        let asked = tenant.get("residency").texts();
        let satisfies =
            |member: &super::MemberSpec| asked.iter().all(|label| member.residency.contains(label));
        if !asked.is_empty() && !global.members.iter().any(satisfies) {
            report.error_with_hint(
                tenant.get("residency").place(),
                &path("residency"),
                "no member has all of these labels: every request of this tenant would be refused",
                "add the labels to `members[].residency` where they are true",
            );
        }
    }
}

//! What `auth` must say to be enforceable, and what in it contradicts itself.

use std::collections::HashMap;

use super::names::aliases;
use crate::build::View;
use crate::node::Place;
use crate::report::Report;
use crate::spec::{CallerMatch, ForwardedCertificate, Spec};
use crate::suggest::closest;

pub(crate) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    secret(view.get("admin").get("token"), "spec.admin.token", report);
    for (index, scheduler) in view.get("schedulers").items().enumerate() {
        let path = format!("spec.schedulers[{index}].endpointApiKey");
        secret(scheduler.get("endpointApiKey"), &path, report);
    }
    let tls = view.get("listener").get("tls");
    if tls.get("clientCertificates").is_present() && !tls.get("clientCaFile").is_present() {
        report.error_with_hint(
            tls.get("clientCertificates").place(),
            "spec.listener.tls.clientCertificates",
            "acts with `clientCaFile` only, which is not there",
            "name the authorities that sign clients' certificates",
        );
    }
    let Some(auth) = &spec.auth else { return };
    let view = view.get("auth");
    providers(view.get("jwt"), report);
    callers(spec, view, report);
    let has_certificates = spec.listener.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
        || auth.forwarded_certificate != ForwardedCertificate::Ignore;
    if auth.providers.is_empty() && auth.api_keys.is_none() && !has_certificates {
        report.error_with_hint(
            Place { width: 1, ..view.place() },
            "spec.auth",
            "names no way to authenticate: every request would be refused",
            "add `apiKeys`, `jwt`, or `listener.tls.clientCaFile`",
        );
    }
}

pub(crate) fn secret(view: View<'_>, path: &str, report: &mut Report<'_>) {
    let written = ["file", "env"].iter().filter(|key| view.get(key).is_present()).count();
    if view.is_present() && written != 1 {
        report.error_with_hint(
            Place { width: 1, ..view.place() },
            path,
            "needs one of `file` and `env`",
            "the secret itself never stands in the document",
        );
    }
}

fn providers(jwt: View<'_>, report: &mut Report<'_>) {
    let mut names: HashMap<&str, Place> = HashMap::new();
    let first = jwt.get("provider").present().map(|view| (String::from(".provider"), view));
    let others = jwt.get("providers").items().enumerate();
    let others = others.map(|(index, view)| (format!(".providers[{index}]"), view));
    for (path, provider) in first.into_iter().chain(others) {
        let path = format!("spec.auth.jwt{path}");
        let place = Place { width: 1, ..provider.place() };
        let empty = |key| provider.get(key).items().next().is_none();
        if empty("audiences") && empty("requiredClaims") {
            report.error_with_hint(
                if path.ends_with(".provider") { provider.place() } else { place },
                &path,
                "at least one of audiences or requiredClaims must be specified",
                "else every token of this issuer would do, also those for other services",
            );
        }
        let (remote, file) = (
            provider.get("remoteJWKS").is_present(),
            provider.get("jwks").get("file").is_present(),
        );
        if remote == file && (file || !report.is_aws()) {
            report.error_with_hint(
                place,
                &path,
                "needs one of `remoteJWKS` and `jwks.file`",
                "that is where the signing keys are",
            );
        }
        let name = provider.get("name");
        if let Some(text) = name.word()
            && let Some(first) = names.insert(text, name.place())
        {
            let hint = format!("the name must be unique; first in line {}", first.line);
            let message = format!("Duplicate value: \"{text}\"");
            report.error_with_hint(name.place(), &format!("{path}.name"), message, hint);
        }
    }
}

fn callers(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let Some(auth) = &spec.auth else { return };
    let mut names: HashMap<&str, Place> = HashMap::new();
    let mut catch_all: Option<Place> = None;
    for (index, item) in view.get("callers").items().enumerate() {
        let path = format!("spec.auth.callers[{index}]");
        let name = item.get("name");
        if let Some(text) = name.word()
            && let Some(first) = names.insert(text, name.place())
        {
            let hint = format!("the name must be unique; first in line {}", first.line);
            let message = format!("Duplicate value: \"{text}\"");
            report.error_with_hint(name.place(), &format!("{path}.name"), message, hint);
        }
        one_kind(item.get("match"), &format!("{path}.match"), report);
        let Some(caller) = auth.callers.get(index) else { continue };
        if caller.tenant.is_some() && caller.tenant_claim.is_some() {
            report.error_with_hint(
                item.get("tenantClaim").place(),
                &format!("{path}.tenantClaim"),
                "tenant and tenantClaim are mutually exclusive",
                "keep one of them",
            );
        }
        let provider = item.get("match").get("provider");
        if let Some(text) = provider.word()
            && auth.providers.iter().all(|known| known.name != text)
        {
            let known = || auth.providers.iter().map(|known| known.name.as_str());
            let hint = match closest(text, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("providers: {}", known().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no provider `{}`", crate::node::shortened(text));
            report.error_with_hint(
                provider.place(),
                &format!("{path}.match.provider"),
                message,
                hint,
            );
        }
        if let Some(first) = catch_all
            && matches!(
                caller.matches,
                CallerMatch::Key(_)
                    | CallerMatch::Claim { .. }
                    | CallerMatch::Provider(_)
                    | CallerMatch::Certificate(_)
                    | CallerMatch::Any
            )
        {
            report.warning(
                Place { width: 1, ..item.place() },
                &path,
                format!("never matches: the caller in line {} takes all before it", first.line),
                Some("put the one with `match.any` last"),
            );
        }
        if caller.matches == CallerMatch::Any {
            catch_all.get_or_insert(name.place());
        }
        known_models(spec, item.get("models"), &format!("{path}.models"), report);
    }
}

fn one_kind(view: View<'_>, path: &str, report: &mut Report<'_>) {
    let Some(view) = view.present() else { return };
    let on = |key| view.get(key).flag() == Some(true);
    let claim = view.get("claim").is_present() || view.get("value").is_present();
    let provider_alone = view.get("provider").is_present() && !claim;
    let kinds = [
        view.get("key").is_present(),
        claim,
        provider_alone,
        view.get("certificate").is_present(),
        on("anonymous"),
        on("any"),
    ];
    let place = Place { width: 1, ..view.place() };
    if kinds.into_iter().filter(|kind| *kind).count() != 1 {
        report.error_with_hint(
            place,
            path,
            "needs one of `key`, `claim` with `value`, `provider`, `certificate`, `anonymous` and `any`",
            "write several callers with the same `tenant` for several credentials",
        );
    } else if view.get("claim").is_present() != view.get("value").is_present() {
        let hint = "a claim matches by its value: write both";
        report.error_with_hint(place, path, "`claim` and `value` belong together", hint);
    }
}

/// A name that no scheduler declares may be found at run time; one that looks like a known one is a
/// misspelling.
fn known_models(spec: &Spec, view: View<'_>, path: &str, report: &mut Report<'_>) {
    let known = || {
        let declared = spec.schedulers.iter().flat_map(|scheduler| {
            std::iter::once(&scheduler.model_name).chain(&scheduler.lora_adapters)
        });
        declared.map(|name| name.as_str()).chain(aliases(spec))
    };
    for (index, item) in view.items().enumerate() {
        let Some(text) = item.word() else { continue };
        if known().any(|name| name == text) {
            continue;
        }
        if let Some(near) = closest(text, known()) {
            report.warning(
                item.place(),
                &format!("{path}[{index}]"),
                format!("no scheduler declares `{}`", crate::node::shortened(text)),
                Some(&format!("did you mean `{near}`?")),
            );
        }
    }
}

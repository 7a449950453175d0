//! Rules that no request will ever meet.

use super::super::entitled::{ANONYMOUS, may_be_key, tenants};
use super::super::names::aliases;
use super::Written;
use crate::build::View;
use crate::node::{Place, shortened};
use crate::report::Report;
use crate::spec::Spec;
use crate::suggest::closest;

pub(super) fn check(own: &Written<'_>, spec: &Spec, report: &mut Report<'_>) {
    let lists = std::iter::once((".match".to_owned(), own.view.get("match"))).chain(
        (0..own.rule.overrides.len())
            .map(|at| (format!(".overrides[{at}]"), own.view.get("overrides").item(at))),
    );
    for (rest, view) in lists {
        models(own, &rest, view.get("models"), spec, report);
        if spec.auth.is_none() {
            strangers(own, &rest, view, report);
        } else {
            nobodys(own, &rest, view, spec, report);
        }
    }
    if spec.auth.is_none() && (own.rule.per.tenant || own.rule.per.key) {
        report.warning(
            Place { width: 1, ..own.view.get("per").place() },
            &own.path(".per"),
            format!(
                "without `auth` every request is {ANONYMOUS}: rule `{}` has one bucket for all of them",
                own.rule.name
            ),
            Some("add `auth`, or leave tenant and key out of `per`"),
        );
    }
}

/// Names of tenants and keys, where nobody has one.
fn strangers(own: &Written<'_>, rest: &str, view: View<'_>, report: &mut Report<'_>) {
    for (key, what) in [("tenants", "tenant"), ("keys", "key")] {
        for (at, item) in view.get(key).items().enumerate() {
            let Some(name) = item.word().filter(|name| (key, *name) != ("tenants", ANONYMOUS))
            else {
                continue;
            };
            report.warning(
                item.place(),
                &own.path(&format!("{rest}.{key}[{at}]")),
                format!(
                    "never applies: without `auth` no request has the {what} `{}`",
                    shortened(name)
                ),
                Some("add `auth`"),
            );
        }
    }
}

/// Names of tenants and keys that no caller has.
fn nobodys(own: &Written<'_>, rest: &str, view: View<'_>, spec: &Spec, report: &mut Report<'_>) {
    if let Some(known) = tenants(spec) {
        for (at, item) in view.get("tenants").items().enumerate() {
            let Some(name) = item.word().filter(|name| !known.contains(name)) else { continue };
            let hint = match closest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let most = known.iter().take(8).copied().collect::<Vec<_>>().join(", ");
                    format!("tenants: {most}")
                }
            };
            report.warning(
                item.place(),
                &own.path(&format!("{rest}.tenants[{at}]")),
                format!("never applies: no caller of `auth` is tenant `{}`", shortened(name)),
                Some(&hint),
            );
        }
    }
    for (at, item) in view.get("keys").items().enumerate() {
        let Some(name) = item.word().filter(|name| !may_be_key(spec, name)) else { continue };
        report.warning(
            item.place(),
            &own.path(&format!("{rest}.keys[{at}]")),
            format!("never applies: no credential has the name `{}`", shortened(name)),
            Some("tokens are called PROVIDER:SUBJECT; add `auth.apiKeys` for keys"),
        );
    }
}

/// Names of models that no scheduler has. A warning: endpoints may serve adapters that the document does not name.
fn models(own: &Written<'_>, rest: &str, view: View<'_>, spec: &Spec, report: &mut Report<'_>) {
    let known = || {
        let declared = spec.schedulers.iter().flat_map(|scheduler| {
            let adapters = scheduler.lora_adapters.iter().map(|adapter| adapter.as_str());
            std::iter::once(scheduler.model_name.as_str()).chain(adapters)
        });
        declared.chain(aliases(spec))
    };
    if !spec.discover.is_empty() {
        return;
    }
    for (at, item) in view.items().enumerate() {
        let Some(name) = item.word().filter(|name| !known().any(|known| known == *name)) else {
            continue;
        };
        let hint = match closest(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "it counts once an endpoint serves an adapter of this name".to_owned(),
        };
        report.warning(
            item.place(),
            &own.path(&format!("{rest}.models[{at}]")),
            format!("no scheduler serves a model `{}`, and no rewrite is for it", shortened(name)),
            Some(&hint),
        );
    }
}

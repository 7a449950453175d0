//! Which tenants, keys and priorities requests can have at all, and what in a document is for others.

use std::collections::BTreeSet;

use types::Priority;

use super::names::unknown;
use crate::build::View;
use crate::node::shortened;
use crate::report::Report;
use crate::spec::{Anonymous, Auth, CallerMatch, CallerSpec, ForwardedCertificate, Spec};

/// The tenant of requests without credentials.
pub(super) const ANONYMOUS: &str = "anonymous";

/// The names that requests can have for tenant; `None`: keys, tokens or certificates bring others.
pub(super) fn tenants(spec: &Spec) -> Option<BTreeSet<&str>> {
    let Some(auth) = &spec.auth else { return Some(BTreeSet::from([ANONYMOUS])) };
    let mut names = BTreeSet::new();
    if auth.callers.is_empty() {
        if auth.api_keys.is_some() || has_certificates(spec, auth) {
            return None;
        }
        for provider in &auth.providers {
            names.insert(provider.name.as_str());
            if provider.tenant_claim.is_some() {
                return None;
            }
        }
    }
    for caller in &auth.callers {
        match &caller.tenant {
            Some(tenant) => names.insert(tenant.as_str()),
            None if brings_its_own(caller, auth) => return None,
            None => names.insert(&caller.name),
        };
    }
    if auth.anonymous != Anonymous::Deny && own_caller_of_strangers(auth).is_none() {
        names.insert(ANONYMOUS);
    }
    Some(names)
}

/// Whether a caller without a tenant of its own gets one from its credentials.
fn brings_its_own(caller: &CallerSpec, auth: &Auth) -> bool {
    let of_provider = |name: Option<&String>| {
        let mut providers = auth.providers.iter();
        let is_it = |known: &str| name.is_none_or(|name| name == known);
        providers.any(|one| one.tenant_claim.is_some() && is_it(&one.name))
    };
    let has_tokens = !auth.providers.is_empty();
    match &caller.matches {
        CallerMatch::Any => true,
        CallerMatch::Claim { provider, .. } => {
            caller.tenant_claim.is_some() || of_provider(provider.as_ref())
        }
        CallerMatch::Provider(name) => caller.tenant_claim.is_some() || of_provider(Some(name)),
        CallerMatch::Named => caller.tenant_claim.is_some() && has_tokens,
        CallerMatch::Key(_) | CallerMatch::Certificate(_) | CallerMatch::Anonymous => false,
    }
}

fn has_certificates(spec: &Spec, auth: &Auth) -> bool {
    spec.listener.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
        || auth.forwarded_certificate != ForwardedCertificate::Ignore
}

/// Whether a credential could have this name. Names of keys and certificates stand elsewhere.
pub(super) fn may_be_key(spec: &Spec, name: &str) -> bool {
    let Some(auth) = &spec.auth else { return false };
    let of_token = |provider: &str| {
        name.strip_prefix(provider).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    auth.api_keys.is_some()
        || has_certificates(spec, auth)
        || auth.providers.iter().any(|provider| of_token(&provider.name))
}

fn own_caller_of_strangers(auth: &Auth) -> Option<&CallerSpec> {
    auth.callers.iter().find(|caller| caller.matches == CallerMatch::Anonymous)
}

/// The most that anybody may ask for, each once; `i32::MAX` stands for no ceiling.
fn ceilings(spec: &Spec) -> BTreeSet<Priority> {
    const NONE: Priority = Priority(i32::MAX);
    let Some(auth) = &spec.auth else { return BTreeSet::from([NONE]) };
    let mut ceilings: BTreeSet<Priority> =
        auth.callers.iter().map(|caller| caller.priority_max.unwrap_or(NONE)).collect();
    if auth.callers.is_empty() {
        ceilings.insert(NONE);
    }
    if auth.anonymous == Anonymous::Allow && own_caller_of_strangers(auth).is_none() {
        ceilings.insert(Priority::STANDARD);
    }
    ceilings
}

/// The priorities that requests can have.
pub(super) fn priorities(spec: &Spec) -> BTreeSet<Priority> {
    let asked = spec.objectives.iter().map(|objective| objective.priority);
    let asked: Vec<_> = asked.chain([Priority::STANDARD]).collect();
    let ceilings = ceilings(spec);
    ceilings.iter().flat_map(|most| asked.iter().map(|asked| *asked.min(most))).collect()
}

/// Objectives that nobody has, or has in full.
pub(super) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let highest = ceilings(spec).last().copied().unwrap_or(Priority::STANDARD);
    for (index, objective) in spec.objectives.iter().enumerate() {
        if objective.priority <= highest {
            continue;
        }
        let place = view.get("objectives").item(index).get("priority").place();
        report.warning(
            place,
            &format!("spec.objectives[{index}].priority"),
            format!(
                "nobody gets {} by `{}`: the highest `priorityMax` of any caller is {highest}",
                objective.priority,
                objective.name.as_str()
            ),
            Some("raise the `priorityMax` of those who shall have it"),
        );
    }
    let Some(auth) = &spec.auth else { return };
    for (index, caller) in auth.callers.iter().enumerate() {
        let item = view.get("auth").get("callers").item(index);
        let path = format!("spec.auth.callers[{index}]");
        if caller.matches == CallerMatch::Anonymous && auth.anonymous == Anonymous::Deny {
            report.warning(
                item.get("match").get("anonymous").place(),
                &format!("{path}.match.anonymous"),
                "never matches: requests without credentials are refused",
                Some("write `anonymous: allow` beside `callers`, or drop this one"),
            );
        }
        objective(spec, caller, item.get("objective"), &format!("{path}.objective"), report);
    }
}

fn objective(
    spec: &Spec,
    caller: &CallerSpec,
    view: View<'_>,
    path: &str,
    report: &mut Report<'_>,
) {
    let Some(name) = &caller.objective else { return };
    let known = || spec.objectives.iter().map(|objective| objective.name.as_str());
    if !known().any(|known| known == name.as_str()) {
        unknown("objective", name.as_str(), known, view.place(), path, report);
        return;
    }
    let Some(most) = caller.priority_max else { return };
    let mut own = spec.objectives.iter().filter(|objective| objective.name == *name);
    if let Some(least) = own.clone().map(|own| own.priority).min()
        && own.all(|own| own.priority > most)
    {
        report.warning(
            view.place(),
            path,
            format!(
                "`{}` is {least}, and the caller's `priorityMax` makes {most} of it always",
                shortened(name.as_str())
            ),
            Some("raise `priorityMax`, or name an objective that is within it"),
        );
    }
}

//! Rewrites that contradict themselves or each other, or lead to where nobody is.

use std::collections::HashMap;

use crate::build::View;
use crate::node::{Place, shortened};
use crate::report::Report;
use crate::spec::{ModelRewrite, RewriteRule, SchedulerSpec, Spec};
use crate::suggest::closest;

pub(super) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let rewrites = view.get("modelRewrites");
    let mut names: HashMap<&str, Place> = HashMap::new();
    // What has a rule already, of all pools: a later rule for it never gets a request.
    let mut taken: HashMap<&str, Place> = HashMap::new();
    for (index, rewrite) in spec.model_rewrites.iter().enumerate() {
        let view = rewrites.item(index);
        let path = format!("spec.modelRewrites[{index}]");
        let place = view.get("name").place();
        if !rewrite.name.is_empty()
            && let Some(first) = names.insert(&rewrite.name, place)
        {
            let message = format!("Duplicate value: \"{}\"", rewrite.name);
            let hint = format!("the name must be unique; first in line {}", first.line);
            report.error_with_hint(place, &format!("{path}.name"), message, hint);
        }
        pool(spec, rewrite, view.get("poolRef").get("name"), &path, report);
        for (at, rule) in rewrite.rules.iter().enumerate() {
            let view = view.get("rules").item(at);
            let path = format!("{path}.rules[{at}]");
            targets(rule, view, &path, report);
            doubts(spec, rule, view, &path, report);
            if rewrite.pool.is_none() {
                unreachable(rule, view, &path, &mut taken, report);
            }
        }
    }
}

fn pool(spec: &Spec, rewrite: &ModelRewrite, view: View<'_>, path: &str, report: &mut Report<'_>) {
    let Some(pool) = rewrite.pool.as_ref().filter(|pool| !pool.as_str().is_empty()) else { return };
    let known = || spec.schedulers.iter().map(|scheduler| scheduler.name.as_str());
    if known().any(|known| known == pool.as_str()) {
        return;
    }
    let hint = match closest(pool.as_str(), known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("schedulers: {}", known().collect::<Vec<_>>().join(", ")),
    };
    let message = format!("there is no scheduler `{}`", shortened(pool.as_str()));
    report.error_with_hint(view.place(), &format!("{path}.poolRef.name"), message, hint);
}

fn targets(rule: &RewriteRule, view: View<'_>, path: &str, report: &mut Report<'_>) {
    let targets = view.get("targets");
    let path = format!("{path}.targets");
    let weighted = targets.items().filter(|target| target.get("weight").is_present()).count();
    if weighted > 0
        && let Some((at, without)) =
            targets.items().enumerate().find(|(_, target)| !target.get("weight").is_present())
    {
        report.error_with_hint(
            Place { width: 1, ..without.place() },
            &format!("{path}[{at}]"),
            "some targets have a weight and this one has none: it would never be chosen",
            "give each target a `weight`, or none of them",
        );
    } else if weighted > 0 && rule.targets.iter().all(|target| target.weight == 0) {
        let message = "all weights are 0: nothing would be chosen";
        report.error(Place { width: 1, ..targets.place() }, &path, message);
    }
    let mut names: HashMap<&str, Place> = HashMap::new();
    let mut stable: Option<Place> = None;
    for (at, target) in rule.targets.iter().enumerate() {
        let view = targets.item(at);
        let place = view.get("modelRewrite").place();
        let name = target.model.as_str();
        if !name.is_empty()
            && let Some(first) = names.insert(name, place)
        {
            let message =
                format!("`{}` is a target twice, first in line {}", shortened(name), first.line);
            let hint = "add the weights together";
            report.error_with_hint(place, &format!("{path}[{at}].modelRewrite"), message, hint);
        }
        let place = view.get("stable").place();
        if target.stable
            && let Some(first) = stable.replace(place)
        {
            let message = format!("there is a stable target already, in line {}", first.line);
            report.error(place, &format!("{path}[{at}].stable"), message);
        }
    }
}

fn doubts(spec: &Spec, rule: &RewriteRule, view: View<'_>, path: &str, report: &mut Report<'_>) {
    let targets = rule.targets.iter().enumerate().map(|(at, target)| {
        let place = view.get("targets").item(at).get("modelRewrite").place();
        (place, format!("{path}.targets[{at}].modelRewrite"), target.model.as_str())
    });
    let mirror = rule.mirror.as_ref().map(|mirror| {
        let place = view.get("mirror").get("modelRewrite").place();
        (place, format!("{path}.mirror.modelRewrite"), mirror.model.as_str())
    });
    for (place, path, name) in targets.chain(mirror) {
        if !name.is_empty() && home(spec, name).is_none() && spec.discover.is_empty() {
            report.warning(
                place,
                &path,
                format!("no scheduler has the model or adapter `{}`", shortened(name)),
                Some(
                    "it gets nothing until an endpoint says that it serves an adapter of that name",
                ),
            );
        }
    }
    if let Some(mirror) = &rule.mirror
        && let Some(pool) = home(spec, mirror.model.as_str())
        && rule.targets.iter().any(|target| {
            home(spec, target.model.as_str()).is_some_and(|other| other.name == pool.name)
        })
    {
        report.warning(
            view.get("mirror").get("modelRewrite").place(),
            &format!("{path}.mirror.modelRewrite"),
            format!("the copies go to pool `{}`, whose endpoints answer clients too", pool.name),
            Some("mirror to a pool of its own, or clients wait behind copies"),
        );
    }
    let rollback = view.get("rollback");
    let most = rule.targets.iter().map(|target| target.weight).max();
    let heaviest = rule.targets.iter().filter(|target| Some(target.weight) == most).count();
    if rule.rollback.is_some() && rule.targets.len() == 1 {
        let message = "there is a single target: nothing can be taken from it";
        report.warning(
            Place { width: 1, ..rollback.place() },
            &format!("{path}.rollback"),
            message,
            None,
        );
    } else if rule.rollback.is_some()
        && heaviest > 1
        && rule.targets.iter().all(|target| !target.stable)
    {
        report.warning(
            Place { width: 1, ..rollback.place() },
            &format!("{path}.rollback"),
            "no target is the heaviest: the first of the heaviest counts as the stable one",
            Some("write `stable: true` at the one that others are judged by"),
        );
    }
}

/// The scheduler that declares a name.
fn home<'a>(spec: &'a Spec, name: &str) -> Option<&'a SchedulerSpec> {
    spec.schedulers.iter().find(|scheduler| {
        scheduler.model_name.as_str() == name
            || scheduler.lora_adapters.iter().any(|adapter| adapter.as_str() == name)
    })
}

fn unreachable<'a>(
    rule: &'a RewriteRule,
    view: View<'_>,
    path: &str,
    taken: &mut HashMap<&'a str, Place>,
    report: &mut Report<'_>,
) {
    /// Stands for rules without matches; no model has this name.
    const ALL: &str = "";
    let matches = view.get("matches");
    let mut claim = |name: &'a str, place: Place, path: String| {
        if let Some(first) = taken.get(name) {
            let what = if name.is_empty() { "every model" } else { "this model" };
            let message = format!("{what} has a rule already, in line {}", first.line);
            let hint = Some("rules do not add up: put the targets together, or drop one of them");
            report.warning(place, &path, message, hint);
        } else {
            taken.insert(name, place);
        }
    };
    if rule.matches.is_empty() {
        let place = matches.present().unwrap_or(view).place();
        claim(ALL, Place { width: 1, ..place }, format!("{path}.matches"));
    }
    for (at, item) in matches.items().enumerate() {
        let value = item.get("model").get("value");
        let Some(name) = rule.matches.iter().find(|name| Some(name.as_str()) == value.word())
        else {
            continue;
        };
        claim(name.as_str(), value.place(), format!("{path}.matches[{at}].model.value"));
    }
}

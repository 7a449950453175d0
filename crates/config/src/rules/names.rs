//! Names that must be unique, or fit where Kubernetes puts them.

use std::collections::HashMap;

use crate::build::View;
use crate::node::Place;
use crate::report::Report;
use crate::spec::Spec;
use crate::suggest::closest;

/// Longest name of a Kubernetes Service or label value.
const NAME_MAX: usize = 63;

pub(super) fn check(spec: &Spec, name: &str, view: View<'_>, report: &mut Report<'_>) {
    schedulers(spec, name, view, report);
    adapters(spec, view, report);
    allowed_paths(spec, view, report);
}

fn schedulers(spec: &Spec, name: &str, view: View<'_>, report: &mut Report<'_>) {
    let mut names: HashMap<&str, Place> = HashMap::new();
    let mut models: HashMap<&str, Place> = HashMap::new();
    for (index, scheduler) in spec.schedulers.iter().enumerate() {
        let view = view.get("schedulers").item(index);
        let own = scheduler.name.as_str();
        let place = view.get("name").place();
        let path = format!("spec.schedulers[{index}].name");
        let long = name.chars().count() + 1 + own.chars().count();
        if !own.is_empty()
            && let Some(first) = names.insert(own, place)
        {
            let message = format!("Duplicate value: \"{own}\"");
            let hint = first_in(first, "the name must be unique");
            report.error_with_hint(place, &path, message, hint);
        } else if own.len() <= NAME_MAX && long > NAME_MAX {
            let message = format!("`{name}-{own}` has {long} characters, at most 63 are allowed");
            let hint = "it names objects of the cluster; shorten this name or `metadata.name`";
            report.error_with_hint(place, &path, message, hint);
        }
        let model = scheduler.model_name.as_str();
        let place = view.get("modelName").place();
        if !model.is_empty()
            && let Some(first) = models.insert(model, place)
        {
            report.error_with_hint(
                place,
                &format!("spec.schedulers[{index}].modelName"),
                "modelName must be unique across schedulers",
                first_in(first, &format!("`{model}` is taken")),
            );
        }
    }
}

fn adapters(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let mut taken: HashMap<&str, (Place, &str)> = HashMap::new();
    for (index, scheduler) in spec.schedulers.iter().enumerate() {
        let place = view.get("schedulers").item(index).get("modelName").place();
        taken.insert(scheduler.model_name.as_str(), (place, "a modelName"));
    }
    for index in 0..spec.schedulers.len() {
        let adapters = view.get("schedulers").item(index).get("loraAdapters");
        for (at, adapter) in adapters.items().enumerate() {
            let Some(name) = adapter.word().filter(|name| !name.is_empty()) else { continue };
            let path = format!("spec.schedulers[{index}].loraAdapters[{at}]");
            if let Some((first, what)) = taken.get(name).copied() {
                let name = crate::node::shortened(name);
                report.error_with_hint(
                    adapter.place(),
                    &path,
                    format!("InvalidLoraAdapters: `{name}` is {what} already"),
                    first_in(first, "a client's `model` must mean one thing"),
                );
            } else {
                taken.insert(name, (adapter.place(), "a LoRA adapter"));
            }
        }
    }
}

fn allowed_paths(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let mut taken: HashMap<&str, Place> = HashMap::new();
    for (index, item) in view.get("allowedPaths").items().enumerate() {
        let path = item.get("path");
        if let Some(text) = path.word()
            && let Some(first) = taken.insert(text, path.place())
        {
            let hint = first_in(first, "put the methods together");
            let at = format!("spec.allowedPaths[{index}].path");
            let message = format!("Duplicate value: \"{text}\"");
            report.error_with_hint(path.place(), &at, message, hint);
        }
        let at = format!("spec.allowedPaths[{index}].scheduler");
        unknown_scheduler(spec, item.get("scheduler"), &at, report);
    }
}

/// An error if the text is no scheduler's name; nothing if it is absent.
pub(super) fn unknown_scheduler(spec: &Spec, name: View<'_>, at: &str, report: &mut Report<'_>) {
    let Some(text) = name.word() else { return };
    let known = || spec.schedulers.iter().map(|scheduler| scheduler.name.as_str());
    if !known().any(|known| known == text) {
        unknown("scheduler", text, known, name.place(), at, report);
    }
}

/// A name that stands for nothing of its kind.
pub(super) fn unknown<'a, N: Iterator<Item = &'a str>>(
    kind: &str,
    text: &str,
    known: impl Fn() -> N,
    place: Place,
    at: &str,
    report: &mut Report<'_>,
) {
    let hint = match closest(text, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known().next().is_none() => format!("the document has no {kind}s"),
        None => format!("{kind}s: {}", known().collect::<Vec<_>>().join(", ")),
    };
    let message = format!("there is no {kind} `{}`", crate::node::shortened(text));
    report.error_with_hint(place, at, message, hint);
}

/// The names that clients may write where rewrites stand for them.
pub(super) fn aliases(spec: &Spec) -> impl Iterator<Item = &str> {
    let rules = spec.model_rewrites.iter().flat_map(|rewrite| &rewrite.rules);
    rules.flat_map(|rule| &rule.matches).map(|name| name.as_str())
}

pub(super) fn first_in(first: Place, why: &str) -> String {
    format!("{why}; first in line {}", first.line)
}

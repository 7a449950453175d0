//! Rules that span fields: what must be unique, what excludes what, what only makes sense together.
//!
//! Messages that AWS publishes are AWS's, word for word.

pub(crate) mod auth;
mod cloud_watch;
mod doubts;
pub(crate) mod edge;
mod entitled;
mod flow;
mod names;
mod observability;
pub(crate) mod rate_limits;
mod rewrites;

use crate::build::View;
use crate::report::Report;
use crate::schema::AWS_SCHEDULERS_MAX;
use crate::spec::{PickerImage, SelectorOperator, Spec};

/// `view` is the document's `spec`, from which `spec` was built; list indices agree.
pub(crate) fn check(spec: &Spec, name: &str, view: View<'_>, report: &mut Report<'_>) {
    names::check(spec, name, view, report);
    bbr(spec, view, report);
    auth::check(spec, view, report);
    let schedulers = view.get("schedulers");
    let count = schedulers.items().count();
    if report.is_aws() && count > AWS_SCHEDULERS_MAX {
        report.error(
            schedulers.place(),
            "spec.schedulers",
            format!("has {count} items, at most {AWS_SCHEDULERS_MAX} are allowed"),
        );
    }
    for (index, scheduler) in spec.schedulers.iter().enumerate() {
        let view = schedulers.item(index);
        let path = format!("spec.schedulers[{index}]");
        let weights = view.get("weights");
        if weights.is_present() && view.get("configMapRef").is_present() {
            report.error_with_hint(
                weights.place(),
                &format!("{path}.weights"),
                "weights and configMapRef are mutually exclusive",
                "keep one of them: the ConfigMap's document has weights of its own",
            );
        }
        let picker = view.get("pickerConfig");
        for key in ["policy", "weights", "configMapRef"] {
            if picker.is_present() && view.get(key).is_present() {
                report.error_with_hint(
                    view.get(key).place(),
                    &format!("{path}.{key}"),
                    format!("{key} and pickerConfig are mutually exclusive"),
                    "keep one of them: the picker's document has weights of its own",
                );
            }
        }
        if weights.get("lru").is_present() && scheduler.scheduler != PickerImage::LlmD {
            report.error_with_hint(
                weights.get("lru").place(),
                &format!("{path}.weights.lru"),
                "weights.lru is only valid when scheduler is llm-d",
                "write `scheduler: llm-d`, or leave `lru` out",
            );
        }
        let nowhere =
            !view.get("endpoints").is_present() && !view.get("modelSelector").is_present();
        if !report.is_aws() && nowhere && view.get("name").is_present() {
            report.error_with_hint(
                view.get("name").place(),
                &path,
                format!("scheduler `{}` has no endpoints", scheduler.name),
                "add `endpoints: [{ url: http://HOST:PORT }]`, or a `modelSelector` in Kubernetes",
            );
        }
        selector(view.get("modelSelector"), &format!("{path}.modelSelector"), report);
    }
    let names_none = !view.get("schedulers").is_present() && spec.discover.is_empty();
    if !report.is_aws() && names_none && !report.may_serve_nothing {
        report.error_with_hint(
            view.place(),
            "spec",
            "there is nothing to serve: neither `schedulers` nor `discover` is there",
            "add `discover: [{ url: http://HOST:PORT }]` for servers whose models are found by themselves",
        );
    }
    cloud_watch::check(view, report);
    edge::check(spec, view, report);
    flow::check(spec, view, report);
    entitled::check(spec, view, report);
    rate_limits::check(spec, view.get("rateLimits"), report);
    rewrites::check(spec, view, report);
    observability::check(spec, view, report);
    doubts::check(spec, view, report);
}

fn bbr(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let enabled = view.get("bbr").get("enabled");
    let pools = spec.schedulers.len() + usize::from(!spec.discover.is_empty());
    if !spec.bbr.enabled && pools > 1 {
        report.error_with_hint(
            enabled.place(),
            "spec.bbr.enabled",
            "bbr must be enabled when more than one scheduler is defined",
            "write `enabled: true`: with several models, `model` in the body must decide",
        );
    }
}

fn selector(view: View<'_>, path: &str, report: &mut Report<'_>) {
    for (index, requirement) in view.get("matchExpressions").items().enumerate() {
        let operator = match requirement.get("operator").word() {
            Some("In") => SelectorOperator::In,
            Some("NotIn") => SelectorOperator::NotIn,
            Some("Exists") => SelectorOperator::Exists,
            Some("DoesNotExist") => SelectorOperator::DoesNotExist,
            _ => continue,
        };
        let has_values = requirement.get("values").items().next().is_some();
        let path = format!("{path}.matchExpressions[{index}].values");
        let place = requirement.get("operator").place();
        match operator {
            SelectorOperator::In | SelectorOperator::NotIn if !has_values => {
                let message = "must be specified when `operator` is 'In' or 'NotIn'";
                report.error(place, &path, message);
            }
            SelectorOperator::Exists | SelectorOperator::DoesNotExist if has_values => {
                let message = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                report.error(place, &path, message);
            }
            _ => {}
        }
    }
}

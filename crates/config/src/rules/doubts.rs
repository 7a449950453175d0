//! What is allowed but hardly meant: the warnings.

use std::collections::HashMap;

use crate::build::View;
use crate::node::Place;
use crate::report::Report;
use crate::spec::{EngineType, SchedulerSpec, Spec};

pub(super) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    if report.is_aws() && !view.get("tls").is_present() {
        let message = "AWS's admission refuses a document without `tls`";
        report.warning(Place { width: 1, ..view.place() }, "spec", message, Some("add `tls: {}`"));
    }
    if spec.tls.is_some() {
        report.warning(
            Place { width: 1, ..view.get("tls").place() },
            "spec.tls",
            "outside Kubernetes `tls` has no effect: no certificate is issued there",
            Some("use our group's `listener.tls` with certFile and keyFile"),
        );
    }
    for (index, scheduler) in spec.schedulers.iter().enumerate() {
        let view = view.get("schedulers").item(index);
        let path = format!("spec.schedulers[{index}]");
        weights(scheduler, view.get("weights"), &format!("{path}.weights"), report);
        let shadow = view.get("shadow");
        if scheduler.picker_config.is_none()
            && scheduler.shadow.is_some_and(|shadow| {
                (shadow.policy, shadow.weights) == (scheduler.policy, scheduler.weights)
            })
        {
            report.warning(
                Place { width: 1, ..shadow.place() },
                &format!("{path}.shadow"),
                "the shadow policy is the one in force: it will always agree",
                Some("change its `policy` or its `weights`"),
            );
        }
        let name = &scheduler.name;
        if scheduler.endpoints.is_empty() && scheduler.model_selector.is_some() {
            report.warning(
                Place { width: 1, ..view.get("modelSelector").place() },
                &format!("{path}.modelSelector"),
                format!("`{name}` has no endpoints outside Kubernetes: a selector finds pods only"),
                Some("under our group, `endpoints` can stand beside it"),
            );
        } else if scheduler.endpoints.is_empty() {
            report.warning(
                view.get("endpoints").place(),
                &format!("{path}.endpoints"),
                format!("`{name}` has no endpoints: its requests will get 503"),
                None,
            );
        }
    }
    endpoints(view, report);
}

fn weights(scheduler: &SchedulerSpec, view: View<'_>, path: &str, report: &mut Report<'_>) {
    let weights = scheduler.weights;
    let engine = scheduler.engine_type;
    let mut doubt = |key: &str, weight: u32, message: &str| {
        if view.get(key).is_present() && weight > 0 {
            report.warning(view.get(key).place(), &format!("{path}.{key}"), message, None);
        }
    };
    if engine == EngineType::Tgi {
        let message = "TGI does not report its KV-cache use: the weight has no effect";
        doubt("kvCache", weights.kv_cache, message);
    }
    if !matches!(engine, EngineType::Vllm | EngineType::Auto) {
        let message = "this engine does not name its loaded adapters: only what the gateway itself \
                       has sent where counts";
        doubt("loraAffinity", weights.lora_affinity, message);
    }
    if view.is_present() && weights.scorers().next().is_none() {
        let message = "all weights are 0: endpoints are picked at random";
        report.warning(Place { width: 1, ..view.place() }, path, message, None);
    }
}

fn endpoints(view: View<'_>, report: &mut Report<'_>) {
    let mut seen: HashMap<&str, Place> = HashMap::new();
    let schedulers = view.get("schedulers").items().enumerate();
    let lists = schedulers
        .map(|(index, scheduler)| {
            (format!("spec.schedulers[{index}].endpoints"), scheduler.get("endpoints"))
        })
        .chain([("spec.discover".to_owned(), view.get("discover"))]);
    for (path, list) in lists {
        for (index, endpoint) in list.items().enumerate() {
            let url = endpoint.get("url");
            let Some(text) = url.word() else { continue };
            if let Some(first) = seen.insert(text.trim_end_matches('/'), url.place()) {
                let shown = crate::node::shortened(text);
                report.warning(
                    url.place(),
                    &format!("{path}[{index}].url"),
                    format!("`{shown}` is used twice, first in line {}", first.line),
                    Some("each use counts its own requests only and so sees a part of the load"),
                );
            }
        }
    }
}

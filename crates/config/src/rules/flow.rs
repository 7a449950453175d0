//! `flowControl` and `objectives`: what is said twice, or can never hold.

use std::collections::HashMap;

use types::Priority;

use super::entitled::priorities;
use super::names::{first_in, unknown_scheduler};
use crate::build::View;
use crate::node::Place;
use crate::report::Report;
use crate::spec::Spec;

pub(super) fn check(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let flow = view.get("flowControl");
    bands(spec, flow.get("bands"), report);
    nobodys(spec, flow, report);
    bounds(flow, report);
    headroom(flow.get("headroom").get("share"), report);
    objectives(spec, view, report);
}

fn headroom(share: View<'_>, report: &mut Report<'_>) {
    if share.ratio() == Some(types::Ratio::ZERO) {
        report.error_with_hint(
            share.place(),
            "spec.flowControl.headroom.share",
            "nothing of a lower band would ever be dispatched: its share of the memory is 0",
            "write a share such as 0.85; `enabled: false` turns headroom off",
        );
    }
}

fn bands(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let mut taken = HashMap::new();
    let mut reserved = 0.0;
    for (index, item) in view.items().enumerate() {
        let path = format!("spec.flowControl.bands[{index}]");
        let place = item.get("priority").place();
        if let Some(priority) = item.get("priority").priority()
            && let Some(first) = taken.insert(priority, place)
        {
            report.error_with_hint(
                place,
                &format!("{path}.priority"),
                format!("there are two bands of priority {priority}"),
                first_in(first, "put them together"),
            );
        }
        reserved += item.get("reservedShare").ratio().map_or(0.0, types::Ratio::get);
        if reserved > 1.0 + f32::EPSILON {
            report.error_with_hint(
                item.get("reservedShare").place(),
                &format!("{path}.reservedShare"),
                "the bands' reserved shares are more than 1 together",
                "what is left of 1 goes to the highest band that waits: leave it most",
            );
            reserved = 0.0;
        }
        if item.get("ceiling").ratio() == Some(types::Ratio::ZERO) {
            report.error_with_hint(
                item.get("ceiling").place(),
                &format!("{path}.ceiling"),
                "nothing of this band would ever be dispatched: its ceiling is 0",
                "write a saturation of the pool, such as 0.8",
            );
        }
    }
    let Some(flow) = &spec.flow_control else { return };
    for (priority, band) in &flow.bands {
        let above = flow.bands.iter().filter(|(other, _)| other > priority);
        if let Some((higher, _)) = above.clone().find(|(_, higher)| higher.ceiling < band.ceiling) {
            let place = taken.get(priority).copied().unwrap_or_default();
            report.warning(
                place,
                "spec.flowControl.bands",
                format!(
                    "band {priority} may fill a pool further than {higher}, which is above it: its requests go while \
                     those of {higher} wait"
                ),
                Some("give the higher band the higher `ceiling`"),
            );
        }
    }
}

fn objectives(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let mut taken: HashMap<(&str, Option<&str>), Place> = HashMap::new();
    for (index, item) in view.get("objectives").items().enumerate() {
        let path = format!("spec.objectives[{index}]");
        let (name, scheduler) = (item.get("name"), item.get("scheduler"));
        let Some(text) = name.word() else { continue };
        if let Some(first) = taken.insert((text, scheduler.word()), name.place()) {
            report.error_with_hint(
                name.place(),
                &format!("{path}.name"),
                format!("Duplicate value: \"{}\"", crate::node::shortened(text)),
                first_in(first, "the name must be unique for each scheduler"),
            );
        }
        unknown_scheduler(spec, scheduler, &format!("{path}.scheduler"), report);
    }
    let is_limited = spec.rate_limits.iter().any(|rule| !rule.matches.priorities.is_empty());
    if spec.flow_control.is_none() && !spec.objectives.is_empty() && !is_limited {
        report.warning(
            view.get("objectives").place(),
            "spec.objectives",
            "objectives have no effect without `flowControl`",
            Some("add `flowControl: {}`"),
        );
    }
}

/// Bands and settings for priorities that no request has.
fn nobodys(spec: &Spec, view: View<'_>, report: &mut Report<'_>) {
    let Some(flow) = &spec.flow_control else { return };
    let priorities = priorities(spec);
    for (index, item) in view.get("bands").items().enumerate() {
        let priority = item.get("priority");
        if let Some(own) = priority.priority()
            && !priorities.contains(&own)
        {
            report.warning(
                priority.place(),
                &format!("spec.flowControl.bands[{index}].priority"),
                format!("no request ever has priority {own}"),
                Some(NO_SUCH_PRIORITY),
            );
        }
    }
    if flow.revoke && priorities.last().is_none_or(|highest| *highest < Priority::CRITICAL) {
        report.warning(
            view.get("revoke").place(),
            "spec.flowControl.revoke",
            "nothing is ever called back: no request has priority Critical",
            Some(NO_SUCH_PRIORITY),
        );
    }
}

/// How to mend what is for nobody.
pub(super) const NO_SUCH_PRIORITY: &str =
    "add an objective of this priority, and callers whose `priorityMax` allows it";

/// Bounds that stand below those of what they are part of, so that they are never reached.
fn bounds(view: View<'_>, report: &mut Report<'_>) {
    let default = view.get("defaultBand");
    let bands = view.get("bands").items().enumerate();
    let bands = bands.map(|(index, item)| (format!(".bands[{index}]"), item));
    for (path, band) in std::iter::once((".defaultBand".to_owned(), default)).chain(bands) {
        for key in ["requestsMax", "bytesMax", "tokensMax"] {
            let own = Some(band.get(key)).filter(|own| own.is_present());
            let of_band = own.unwrap_or(default.get(key));
            let flow = band.get("flow").get(key);
            let path = format!("spec.flowControl{path}");
            let flow_path = format!("{path}.flow.{key}");
            no_less((flow, &flow_path), (of_band, "its band"), report);
            if let Some(own) = own {
                no_less(
                    (own, &format!("{path}.{key}")),
                    (view.get(key), "the whole queue"),
                    report,
                );
            }
        }
    }
}

fn no_less(inner: (View<'_>, &str), outer: (View<'_>, &str), report: &mut Report<'_>) {
    let ((inner, path), (outer, whose)) = (inner, outer);
    let number = |view: View<'_>| view.integer::<u64>().or_else(|| view.bytes::<u64>());
    let (Some(own), Some(most)) = (number(inner), number(outer)) else { return };
    let line = outer.place().line;
    if own > most {
        report.warning(
            inner.place(),
            path,
            format!("never reached: {whose} holds less (line {line})"),
            Some("lower this one, or raise the other"),
        );
    }
}

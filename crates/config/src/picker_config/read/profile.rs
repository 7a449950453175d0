//! `schedulingProfiles`: the one profile, as filters, scorers and a picker.

use super::kinds;
use super::plugins::{Entries, Entry};
use crate::build::View;
use crate::check::join;
use crate::node::{Place, shortened};
use crate::picker_config::catalogue::Slot;
use crate::picker_config::model::{PickerConfig, PickerKind, PickerScorer};
use crate::report::Report;

pub(super) fn read(
    view: View<'_>,
    path: &str,
    entries: &Entries<'_>,
    report: &mut Report<'_>,
) -> PickerConfig {
    let mut config = PickerConfig {
        profile: "default".to_owned(),
        scorers: Vec::new(),
        ..PickerConfig::default()
    };
    let path = join(path, "schedulingProfiles");
    let profiles = view.get("schedulingProfiles");
    let mut picker: Option<(&str, Place)> = None;
    if profiles.items().next().is_none() {
        for (entry, path) in entries.iter() {
            if in_profile(entry.plugin.slot) {
                add(entry, path, 1.0, &mut config, report);
            }
        }
    }
    for (index, profile) in profiles.items().enumerate() {
        let path = format!("{path}[{index}]");
        if index > 0 {
            let name = profile.get("name").word().unwrap_or_default();
            report.error_with_hint(
                Place { width: 1, ..profile.place() },
                &path,
                format!("a second profile, `{}`: there is one here", shortened(name)),
                "keep the one that places the whole request, or `decode` where requests were split",
            );
            continue;
        }
        config.profile = profile.get("name").text().unwrap_or_default();
        for (index, item) in profile.get("plugins").items().enumerate() {
            let path = format!("{path}.plugins[{index}]");
            let reference = item.get("pluginRef");
            let here = join(&path, "pluginRef");
            let Some((entry, entry_path)) = entries.resolve(reference, &here, report) else {
                continue;
            };
            let slot = entry.plugin.slot;
            if !in_profile(slot) {
                report.error_with_hint(
                    reference.place(),
                    &here,
                    format!("`{}` is a {}, which no profile takes", entry.name, slot.as_str()),
                    "a profile takes filters, scorers and a picker; it is enough to have it in `plugins`",
                );
                continue;
            }
            if slot == Slot::Picker
                && let Some((first, place)) = picker.replace((entry.name, reference.place()))
            {
                report.error_with_hint(
                    reference.place(),
                    &here,
                    format!("a second picker, beside `{}`", shortened(first)),
                    format!("keep one; first in line {}", place.line),
                );
                continue;
            }
            let is_scorer = matches!(slot, Slot::Scorer | Slot::ScorerAndFilter);
            let weight = item.get("weight");
            if weight.is_present() && !is_scorer {
                report.warning(
                    weight.place(),
                    &join(&path, "weight"),
                    format!("a {} has no weight", slot.as_str()),
                    Some("remove it"),
                );
            }
            add(entry, entry_path, weight.number().unwrap_or(1.0), &mut config, report);
        }
    }
    if picker.is_none() && profiles.items().next().is_some() {
        picker_from_plugins(entries, &mut config, report);
    }
    if config.scorers.iter().all(|scorer| scorer.weight == 0.0) {
        let place = profiles.item(0).get("plugins").place();
        let message = "no scorer counts: endpoints are picked at random";
        report.warning(Place { width: 1, ..place }, &path, message, None);
    }
    config
}

fn in_profile(slot: Slot) -> bool {
    matches!(
        slot,
        Slot::Scorer | Slot::Filter | Slot::ScorerAndFilter | Slot::Picker | Slot::Detector
    )
}

/// A picker that `plugins` has counts for profiles that name none.
fn picker_from_plugins(entries: &Entries<'_>, config: &mut PickerConfig, report: &mut Report<'_>) {
    let mut pickers = entries.iter().filter(|(entry, _)| entry.plugin.slot == Slot::Picker);
    let Some((entry, path)) = pickers.next() else { return };
    if let Some((second, second_path)) = pickers.next() {
        report.error_with_hint(
            second.place,
            second_path,
            format!(
                "two pickers, `{}` and `{}`, and the profile names none",
                entry.name, second.name
            ),
            "name one of them in the profile",
        );
    }
    add(entry, path, 1.0, config, report);
}

/// * `path`: of the entry in `plugins`, where its parameters are.
fn add(
    entry: &Entry<'_>,
    path: &str,
    weight: f64,
    config: &mut PickerConfig,
    report: &mut Report<'_>,
) {
    let path = join(path, "parameters");
    if let Some(kind) = kinds::scorer(entry, &path, report) {
        config.scorers.push(PickerScorer { kind, weight: weight as f32 });
    }
    if let Some(filter) = kinds::filter(entry, &path, report) {
        config.filters.push(filter);
    }
    if entry.plugin.slot == Slot::Picker {
        config.picker = match entry.plugin.name {
            "weighted-random-picker" => PickerKind::WeightedRandom,
            "random-picker" => PickerKind::Random,
            _ => PickerKind::MaxScore,
        };
        config.destinations = entry.parameters.get("maxNumOfEndpoints").integer().unwrap_or(1);
    }
}

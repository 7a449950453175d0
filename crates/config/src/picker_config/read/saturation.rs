//! `flowControl` and the saturation detector.

use std::num::NonZeroU32;

use types::Ratio;

use super::features::Gates;
use super::kinds::{CONCURRENCY, KV_USAGE, QUEUE_DEPTH, concurrency_mode};
use super::plugins::Entries;
use crate::build::View;
use crate::check::join;
use crate::picker_config::catalogue::Slot;
use crate::picker_config::model::{ConcurrencyMode, PickerSaturation};
use crate::report::Report;

/// What has no counterpart until requests are queued.
const QUEUES: [&str; 8] = [
    "maxBytes",
    "maxRequests",
    "defaultRequestTTL",
    "noEndpointRequestTTL",
    "defaultPriorityBand",
    "defaultNegativePriorityBand",
    "priorityBands",
    "usageLimitPolicyPluginRef",
];

pub(super) fn read(
    view: View<'_>,
    path: &str,
    entries: &Entries<'_>,
    gates: Gates,
    report: &mut Report<'_>,
) -> Option<PickerSaturation> {
    let flow = view.get("flowControl");
    let flow_path = join(path, "flowControl");
    for key in QUEUES.iter().chain(&["enableEviction"]) {
        let value = flow.get(key);
        let is_off = value.flag() == Some(false);
        if value.is_present() && !is_off {
            let why = if gates.flow_control {
                "a full pool answers 429 with `Retry-After`; nothing is queued"
            } else {
                "the feature gate `flowControl` is off, so it has none in the field either"
            };
            report.warning(
                value.place(),
                &join(&flow_path, key),
                format!("`{key}` has no effect here"),
                Some(why),
            );
        }
    }
    let new = flow.get("saturationDetector").get("pluginRef");
    let (reference, here) = match new.present() {
        Some(new) => (new, format!("{flow_path}.saturationDetector.pluginRef")),
        None => (
            view.get("saturationDetector").get("pluginRef"),
            format!("{}.pluginRef", join(path, "saturationDetector")),
        ),
    };
    let name = reference.word().unwrap_or("utilization-detector");
    let named = entries.iter().find(|(entry, _)| entry.name == name);
    let entry = match named {
        Some((entry, _)) => Some(entry),
        None if name == "utilization-detector" => None,
        None => Some(entries.resolve(reference, &here, report)?.0),
    };
    if let Some(entry) = entry
        && entry.plugin.slot != Slot::Detector
    {
        report.error_with_hint(
            reference.place(),
            &here,
            format!(
                "`{}` is a {}, not a saturation detector",
                entry.name,
                entry.plugin.slot.as_str()
            ),
            "there are `utilization-detector` and `concurrency-detector`",
        );
        return None;
    }
    if !gates.flow_control {
        if reference.is_present() {
            report.warning(
                reference.place(),
                &here,
                "the detector refuses nothing while the feature gate `flowControl` is off",
                Some(
                    "in the field it then only sheds requests of negative priority; here \
                      `schedulers[].saturation` says when a pool is full",
                ),
            );
        }
        return None;
    }
    let parameters = entry.map_or(View::new(None), |entry| entry.parameters);
    if entry.is_some_and(|entry| entry.plugin.name == "concurrency-detector") {
        if concurrency_mode(parameters) != ConcurrencyMode::Requests {
            report.error_with_hint(
                parameters.get("concurrencyMode").place(),
                &here,
                "as a saturation detector, only requests in flight can be counted",
                "write `concurrencyMode: requests`; as a filter in a profile, tokens count as well",
            );
        }
        let concurrency = parameters.get("maxConcurrency").positive();
        return Some(PickerSaturation {
            concurrency: concurrency.or(NonZeroU32::new(CONCURRENCY)),
            ..PickerSaturation::default()
        });
    }
    let queue_depth = parameters.get("queueDepthThreshold").positive();
    let kv_usage = parameters.get("kvCacheUtilThreshold").number().unwrap_or(KV_USAGE);
    Some(PickerSaturation {
        queue_depth: queue_depth.or(NonZeroU32::new(QUEUE_DEPTH)),
        kv_usage: Ratio::new(kv_usage).ok(),
        concurrency: None,
    })
}

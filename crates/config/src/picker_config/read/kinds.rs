//! Plugins of a profile with their parameters' values and defaults.

use std::time::Duration;

use super::plugins::Entry;
use crate::build::{View, selector};
use crate::check::join;
use crate::picker_config::model::{
    ConcurrencyMode, LabelRule, PickerCeiling, PickerFilter, ScorerKind, TtftSource,
};
use crate::report::Report;

/// Matched tokens that count in full, unless written.
pub(crate) const LENGTH_SCALE_TOKENS: u32 = 8192;
pub(super) const QUEUE_DEPTH: u32 = 5;
pub(super) const KV_USAGE: f64 = 0.8;
pub(super) const CONCURRENCY: u32 = 100;
/// The one session header that the gateway reads.
const SESSION_HEADER: &str = "x-session-id";

/// `None`: it is no scorer, or what is wrong with it was reported.
pub(super) fn scorer(entry: &Entry<'_>, path: &str, report: &mut Report<'_>) -> Option<ScorerKind> {
    let parameters = entry.parameters;
    let at = |key| parameters.get(key);
    Some(match entry.plugin.name {
        "queue-scorer" => ScorerKind::Queue,
        "running-requests-size-scorer" => ScorerKind::RunningRequests,
        "kv-cache-utilization-scorer" => ScorerKind::KvCache,
        "lora-affinity-scorer" => ScorerKind::LoraAffinity,
        "prefix-cache-scorer" => ScorerKind::Prefix {
            length_weight: at("matchLengthWeight").number().unwrap_or(0.0),
            length_scale_tokens: at("matchLengthScaleTokens")
                .integer()
                .unwrap_or(LENGTH_SCALE_TOKENS),
        },
        "load-aware-scorer" => {
            ScorerKind::LoadAware { threshold: at("threshold").integer().unwrap_or(128) }
        }
        "token-load-scorer" => ScorerKind::TokenLoad {
            threshold_tokens: at("queueThresholdTokens").integer().unwrap_or(4_194_304),
        },
        "active-request-scorer" => ScorerKind::ActiveRequests {
            idle_threshold: at("idleThreshold").integer().unwrap_or(0),
            busy_score_max: at("maxBusyScore").number().unwrap_or(1.0),
        },
        "no-hit-lru-scorer" => ScorerKind::NoHitLru,
        "session-affinity-scorer" => session(entry, path, report)?,
        "context-length-aware" => ScorerKind::ContextLength { label: context_label(parameters) },
        "expected-time-scorer" => ScorerKind::ExpectedTime,
        _ => return None,
    })
}

fn context_label(parameters: View<'_>) -> String {
    let label = parameters.get("label").text();
    label.unwrap_or_else(|| "llm-d.ai/context-length-range".to_owned())
}

fn session(entry: &Entry<'_>, path: &str, report: &mut Report<'_>) -> Option<ScorerKind> {
    let strategy = entry.parameters.get("strategy");
    if strategy.word() != Some("session_id") {
        let message =
            "the strategy `encoded_endpoint_header`, the field's default, is not supported here";
        report.error_with_hint(
            strategy.present().map_or(entry.place, View::place),
            &join(path, "strategy"),
            message,
            format!("write `strategy: session_id`: sessions by the header `{SESSION_HEADER}`"),
        );
        return None;
    }
    let config = entry.parameters.get("sessionIdConfig");
    for (index, source) in config.get("sources").items().enumerate() {
        let is_ours = |header: &str| header.trim().eq_ignore_ascii_case(SESSION_HEADER);
        if !source.get("header").word().is_some_and(is_ours) {
            report.error_with_hint(
                source.place(),
                &format!("{path}.sessionIdConfig.sources[{index}]"),
                format!("a session is read from the header `{SESSION_HEADER}` and nowhere else"),
                format!("write `header: {SESSION_HEADER}`, or leave `sources` out"),
            );
        }
    }
    let seconds = config.get("evictionTtlSeconds").number().unwrap_or(300.0);
    let ttl = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    Some(ScorerKind::SessionAffinity { ttl })
}

/// `None`: it is no filter, or what is wrong with it was reported.
pub(super) fn filter(
    entry: &Entry<'_>,
    path: &str,
    report: &mut Report<'_>,
) -> Option<PickerFilter> {
    let parameters = entry.parameters;
    let at = |key| parameters.get(key);
    Some(match entry.plugin.name {
        "label-selector-filter" | "by-label-selector" => {
            PickerFilter::Labels(LabelRule::Selector(selector(parameters)))
        }
        "by-label" => by_label(entry, path, report)?,
        "decode-filter" => PickerFilter::Labels(LabelRule::Values {
            label: "llm-d.ai/role".to_owned(),
            values: ["decode", "prefill-decode", "both", "encode-prefill-decode"]
                .map(str::to_owned)
                .into(),
            keeps_unlabelled: true,
        }),
        "utilization-filter" => PickerFilter::Ceilings {
            ceilings: ceilings(at("conditions"), path, report),
            fails_open: at("fallbackOnEmpty").flag().unwrap_or(false),
        },
        "utilization-detector" => PickerFilter::Utilization {
            queue_depth: at("queueDepthThreshold").integer().unwrap_or(QUEUE_DEPTH),
            kv_usage: at("kvCacheUtilThreshold").number().unwrap_or(KV_USAGE),
            headroom: at("headroom").number().unwrap_or(0.0),
        },
        "concurrency-detector" => concurrency(parameters),
        "prefix-cache-affinity-filter" => prefix_affinity(parameters, path, report)?,
        "context-length-aware" if at("enableFiltering").flag() == Some(true) => {
            PickerFilter::ContextLength { label: context_label(parameters) }
        }
        _ => return None,
    })
}

fn by_label(entry: &Entry<'_>, path: &str, report: &mut Report<'_>) -> Option<PickerFilter> {
    let parameters = entry.parameters;
    let values = parameters.get("validValues").texts();
    let keeps_unlabelled = parameters.get("allowsNoLabel").flag().unwrap_or(false);
    if values.is_empty() && !keeps_unlabelled {
        report.error_with_hint(
            entry.place,
            &join(path, "validValues"),
            "no endpoint could ever stay: there are no `validValues`, and `allowsNoLabel` is false",
            "write one of them",
        );
        return None;
    }
    let label = parameters.get("label").text()?;
    Some(PickerFilter::Labels(LabelRule::Values { label, values, keeps_unlabelled }))
}

fn ceilings(conditions: View<'_>, path: &str, report: &mut Report<'_>) -> Vec<PickerCeiling> {
    let mut ceilings = Vec::new();
    for (index, condition) in conditions.items().enumerate() {
        let Some(max) = condition.get("maxValue").number() else { continue };
        ceilings.extend(match condition.get("metric").word() {
            Some("active-requests") => Some(PickerCeiling::ActiveRequests(max)),
            Some("running-requests") => Some(PickerCeiling::RunningRequests(max)),
            Some("waiting-queue") => Some(PickerCeiling::WaitingRequests(max)),
            Some("kv-cache-utilization") => {
                if max > 1.0 {
                    report.error_with_hint(
                        condition.get("maxValue").place(),
                        &format!("{path}.conditions[{index}].maxValue"),
                        format!("must be between 0 and 1, found {max}"),
                        "write a share, such as 0.8 for 80 %",
                    );
                }
                Some(PickerCeiling::KvUsage(max))
            }
            _ => None,
        });
    }
    ceilings
}

pub(super) fn concurrency_mode(parameters: View<'_>) -> ConcurrencyMode {
    match parameters.get("concurrencyMode").word() {
        Some("tokens") => ConcurrencyMode::Tokens,
        Some("hybrid") => ConcurrencyMode::Hybrid,
        _ => ConcurrencyMode::Requests,
    }
}

fn concurrency(parameters: View<'_>) -> PickerFilter {
    let mode = concurrency_mode(parameters);
    let room = 1.0 + parameters.get("headroom").number().unwrap_or(0.0);
    // Cut to a whole number, as the field does.
    let limit = |key, default: u64| {
        (parameters.get(key).integer::<u64>().unwrap_or(default) as f64 * room) as u64
    };
    let requests = limit("maxConcurrency", CONCURRENCY.into());
    let tokens = limit("maxTokenConcurrency", 1_000_000);
    PickerFilter::Concurrency {
        requests: (mode != ConcurrencyMode::Tokens).then_some(requests),
        tokens: (mode != ConcurrencyMode::Requests).then_some(tokens),
    }
}

fn prefix_affinity(
    parameters: View<'_>,
    path: &str,
    report: &mut Report<'_>,
) -> Option<PickerFilter> {
    let exploration = parameters.get("explorationProbability");
    if exploration.number().is_some_and(|share| share > 0.0) {
        report.error_with_hint(
            exploration.place(),
            &join(path, "explorationProbability"),
            "`explorationProbability` above 0 is not supported here",
            "leave it out: `maxTTFTPenaltyMs` already lets a prefix spread when its holders are busy",
        );
        return None;
    }
    let number = |key, default| parameters.get(key).number().unwrap_or(default);
    Some(PickerFilter::PrefixAffinity {
        share_min: number("affinityThreshold", 0.8),
        penalty_ms_max: number("maxTTFTPenaltyMs", 18_000.0),
        ttft: match parameters.get("ttftSource").word() {
            Some("latencyPredictor") => TtftSource::Learned,
            _ => TtftSource::PrefillTokensPerSecond(number("peakPrefillThroughput", 15_928.0)),
        },
    })
}

//! What a picker's document comes to, in a few lines: for `wicketgate check`.

use std::fmt;

use super::model::{
    LabelRule, PickerCeiling, PickerConfig, PickerFilter, PickerKind, PickerSaturation,
    PickerScorer, ScorerKind, TtftSource,
};
use crate::format::show_duration;

impl PickerConfig {
    /// One line for each part, without a line break at the end.
    pub fn summary(&self) -> String {
        let list = |parts: Vec<String>, none: &str| {
            if parts.is_empty() { none.to_owned() } else { parts.join(", ") }
        };
        let filters = self.filters.iter().map(ToString::to_string).collect();
        let scorers = self.scorers.iter().map(ToString::to_string).collect();
        let saturation = match &self.saturation {
            None => "as the gateway's document says".to_owned(),
            Some(saturation) => saturation.to_string(),
        };
        format!(
            "profile `{}`\n  filters: {}\n  scorers: {}\n  picker: {}\n  full: {saturation}",
            self.profile,
            list(filters, "none"),
            list(scorers, "none"),
            self.picker.as_str(),
        )
    }
}

impl PickerKind {
    /// As receipts and metrics call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxScore => "max-score",
            Self::WeightedRandom => "weighted-random",
            Self::Random => "random",
        }
    }
}

impl fmt::Display for PickerScorer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} · {}", self.weight, self.kind)
    }
}

/// As receipts and metrics call it, with its parameters.
impl fmt::Display for ScorerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue => f.write_str("queue"),
            Self::RunningRequests => f.write_str("running-requests"),
            Self::KvCache => f.write_str("kv-cache"),
            Self::LoraAffinity => f.write_str("lora-affinity"),
            Self::Prefix { length_weight, .. } if *length_weight == 0.0 => f.write_str("prefix"),
            Self::Prefix { length_weight, length_scale_tokens } => {
                write!(
                    f,
                    "prefix-length ({length_weight} for length, {length_scale_tokens} tokens)"
                )
            }
            Self::LoadAware { threshold } => write!(f, "load-aware ({threshold} waiting)"),
            Self::TokenLoad { threshold_tokens } => {
                write!(f, "token-load ({threshold_tokens} tokens)")
            }
            Self::ActiveRequests { idle_threshold, busy_score_max } => {
                write!(
                    f,
                    "active-requests (idle up to {idle_threshold}, then at most {busy_score_max})"
                )
            }
            Self::NoHitLru => f.write_str("no-hit-lru"),
            Self::SessionAffinity { ttl } => {
                write!(f, "session-affinity ({})", show_duration(*ttl))
            }
            Self::ContextLength { label } => write!(f, "context-length (label {label})"),
            Self::ExpectedTime => f.write_str("expected-time"),
        }
    }
}

impl fmt::Display for PickerFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Labels(LabelRule::Selector(selector)) => {
                let conditions = selector.match_labels.len() + selector.match_expressions.len();
                write!(f, "label-selector ({conditions} conditions)")
            }
            Self::Labels(LabelRule::Values { label, values, keeps_unlabelled }) => {
                let or_none = if *keeps_unlabelled { " or none" } else { "" };
                write!(f, "label-selector ({label}: {}{or_none})", values.join(" or "))
            }
            Self::ContextLength { label } => write!(f, "context-length (label {label})"),
            Self::Ceilings { ceilings, fails_open } => {
                let all: Vec<String> = ceilings.iter().map(ToString::to_string).collect();
                let open = if *fails_open { "; fails open" } else { "" };
                write!(f, "utilization ({}{open})", all.join(", "))
            }
            Self::Utilization { queue_depth, kv_usage, headroom } => {
                let room = 1.0 + headroom;
                let waiting = f64::from(*queue_depth) * room;
                write!(
                    f,
                    "utilization-detector (waiting < {waiting}, KV use < {})",
                    kv_usage * room
                )
            }
            Self::Concurrency { requests, tokens } => {
                let limits = [
                    requests.map(|n| format!("{n} requests")),
                    tokens.map(|n| format!("{n} tokens")),
                ];
                let limits: Vec<String> = limits.into_iter().flatten().collect();
                write!(f, "concurrency-detector ({} in flight)", limits.join(" or "))
            }
            Self::PrefixAffinity { share_min, penalty_ms_max, ttft } => {
                let source = match ttft {
                    TtftSource::Learned => "learned speeds".to_owned(),
                    TtftSource::PrefillTokensPerSecond(pace) => format!("{pace} tokens/s"),
                };
                write!(f, "prefix-affinity ({share_min} held, {penalty_ms_max} ms by {source})")
            }
        }
    }
}

impl fmt::Display for PickerCeiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ActiveRequests(max) => write!(f, "{max} in flight"),
            Self::RunningRequests(max) => write!(f, "{max} running"),
            Self::WaitingRequests(max) => write!(f, "{max} waiting"),
            Self::KvUsage(max) => write!(f, "KV use {max}"),
        }
    }
}

impl fmt::Display for PickerSaturation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let measures = [
            self.queue_depth.map(|n| format!("{n} waiting")),
            self.kv_usage.map(|usage| format!("KV use {usage} while some wait")),
            self.concurrency.map(|n| format!("{n} in flight")),
        ];
        let measures: Vec<String> = measures.into_iter().flatten().collect();
        f.write_str(&measures.join(" or "))
    }
}

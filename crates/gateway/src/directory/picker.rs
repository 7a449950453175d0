//! From the field's picker document to a profile of ours.

#[cfg(test)]
mod tests;

use config::{
    PickerCeiling, PickerConfig, PickerFilter, PickerKind, PickerSaturation, ScorerKind, TtftSource,
};
use sched::{
    ActiveRequestsScorer, Ceiling, CeilingFilter, ConcurrencyFilter, ContextLengthFilter,
    ContextLengthScorer, ContextRange, ContextRanges, ExpectedTimeScorer, ExpectedWait, Filter,
    KvCacheScorer, LabelFilter, LoadAwareScorer, LoraAffinityScorer, NoHitLruScorer, Picker,
    PrefixAffinityFilter, PrefixLengthScorer, PrefixScorer, Profile, QueueScorer,
    RunningRequestsScorer, Scorer, SessionAffinityScorer, Signals, TokenLoadScorer,
    UtilizationFilter, WeightedScorer, Weights, saturation,
};

use crate::member::PoolMember;

/// What the engines said last, as the field goes by it.
const SIGNALS: Signals = Signals::Scraped;

/// Our own filters first, then the document's; its scorers and its picker.
///
/// * `members`: the pool's, whose labels filters and scorers may ask for.
pub(super) fn profile(config: &PickerConfig, members: &[PoolMember]) -> Profile {
    let mut profile = Profile::from_weights(&Weights::ZERO);
    profile.name = "picker-config";
    profile.filters.extend(config.filters.iter().map(|kind| filter(kind, members)));
    profile.scorers = config
        .scorers
        .iter()
        .filter(|scorer| scorer.weight > 0.0)
        .map(|s| WeightedScorer { scorer: scorer(&s.kind, members), weight: s.weight })
        .collect();
    profile.picker = match config.picker {
        PickerKind::MaxScore => Picker::MaxScore,
        PickerKind::WeightedRandom => Picker::WeightedRandom,
        PickerKind::Random => Picker::Random,
    };
    // The field refuses for a whole pool, never for one endpoint of it.
    profile.keeps_full = true;
    profile
}

/// What the document says of full endpoints; `None`: nothing.
pub(super) fn saturation(config: &PickerConfig) -> Option<saturation::Config> {
    let PickerSaturation { queue_depth, kv_usage, concurrency } = config.saturation?;
    Some(saturation::Config {
        reserve: None,
        queue_depth: queue_depth.map_or(u32::MAX, Into::into),
        kv_usage: kv_usage.map(types::Ratio::get),
        in_flight: concurrency.map(Into::into),
    })
}

fn scorer(kind: &ScorerKind, members: &[PoolMember]) -> Box<dyn Scorer> {
    match *kind {
        ScorerKind::Queue => Box::new(QueueScorer { signals: SIGNALS }),
        ScorerKind::RunningRequests => Box::new(RunningRequestsScorer { signals: SIGNALS }),
        ScorerKind::KvCache => Box::new(KvCacheScorer { signals: SIGNALS }),
        ScorerKind::LoraAffinity => Box::new(LoraAffinityScorer { signals: SIGNALS }),
        ScorerKind::Prefix { length_weight: 0.0, .. } => {
            Box::new(PrefixScorer { signals: SIGNALS })
        }
        ScorerKind::Prefix { length_weight, length_scale_tokens } => {
            Box::new(PrefixLengthScorer { length_weight, scale_tokens: length_scale_tokens })
        }
        ScorerKind::LoadAware { threshold } => Box::new(LoadAwareScorer { threshold }),
        ScorerKind::TokenLoad { threshold_tokens } => {
            Box::new(TokenLoadScorer { threshold_tokens })
        }
        ScorerKind::ActiveRequests { idle_threshold, busy_score_max } => {
            Box::new(ActiveRequestsScorer { idle_threshold, busy_score_max })
        }
        ScorerKind::NoHitLru => Box::new(NoHitLruScorer::default()),
        ScorerKind::SessionAffinity { ttl } => Box::new(SessionAffinityScorer::new(ttl)),
        ScorerKind::ContextLength { ref label } => {
            Box::new(ContextLengthScorer { ranges: ranges(label, members) })
        }
        ScorerKind::ExpectedTime => Box::new(ExpectedTimeScorer::default()),
    }
}

fn filter(kind: &PickerFilter, members: &[PoolMember]) -> Box<dyn Filter> {
    match *kind {
        PickerFilter::Labels(ref rule) => {
            let endpoints = members.iter().map(|member| &member.member.endpoint);
            let kept = endpoints.filter(|endpoint| rule.keeps(&endpoint.labels));
            Box::new(LabelFilter::new(kept.map(|endpoint| endpoint.id)))
        }
        PickerFilter::ContextLength { ref label } => {
            Box::new(ContextLengthFilter { ranges: ranges(label, members) })
        }
        PickerFilter::Ceilings { ref ceilings, fails_open } => {
            let ceilings = ceilings.iter().copied().map(ceiling).collect();
            Box::new(CeilingFilter { ceilings, fails_open })
        }
        PickerFilter::Utilization { queue_depth, kv_usage, headroom } => {
            Box::new(UtilizationFilter { queue_depth, kv_usage, headroom })
        }
        PickerFilter::Concurrency { requests, tokens } => {
            Box::new(ConcurrencyFilter { requests, tokens })
        }
        PickerFilter::PrefixAffinity { share_min, penalty_ms_max, ttft } => {
            let expected = match ttft {
                TtftSource::PrefillTokensPerSecond(pace) => {
                    ExpectedWait::PrefillTokensPerSecond(pace)
                }
                TtftSource::Learned => ExpectedWait::Learned,
            };
            Box::new(PrefixAffinityFilter { share_min, penalty_ms_max, expected })
        }
    }
}

fn ceiling(ceiling: PickerCeiling) -> Ceiling {
    match ceiling {
        PickerCeiling::ActiveRequests(max) => Ceiling::ActiveRequests(max),
        PickerCeiling::RunningRequests(max) => Ceiling::RunningRequests(max),
        PickerCeiling::WaitingRequests(max) => Ceiling::WaitingRequests(max),
        PickerCeiling::KvUsage(max) => Ceiling::KvUsage(max),
    }
}

fn ranges(label: &str, members: &[PoolMember]) -> ContextRanges {
    ContextRanges::new(members.iter().filter_map(|member| {
        let endpoint = &member.member.endpoint;
        Some((endpoint.id, ContextRange::of_label(endpoint.labels.get(label)?)))
    }))
}

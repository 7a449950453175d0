//! What a picker's document asks for, once it is read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use types::Ratio;

use crate::finding::Finding;
use crate::spec::{LabelSelector, SelectorOperator};

/// A valid `EndpointPickerConfig`: one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct PickerConfig {
    pub group: PickerGroup,
    /// The profile's name.
    pub profile: String,
    /// In the order in which they are applied.
    pub filters: Vec<PickerFilter>,
    pub scorers: Vec<PickerScorer>,
    pub picker: PickerKind,
    /// `maxNumOfEndpoints`: endpoints that a proxy is told of in the field, 1 to 4. Default 1. Counts in
    /// `epp`.
    pub destinations: usize,
    /// When an endpoint is full; `None`: not the document's business, because the field refuses and
    /// queues by it only with the feature gate `flowControl`.
    pub saturation: Option<PickerSaturation>,
    /// Accepted, but without effect here or perhaps not what was meant. In document order.
    pub warnings: Vec<Finding>,
}

/// Whose API group a document names. Both mean the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PickerGroup {
    #[default]
    LlmD,
    /// The Gateway API Inference Extension's, older.
    InferenceExtension,
}

impl PickerGroup {
    pub(crate) const ALL: [Self; 2] = [Self::LlmD, Self::InferenceExtension];

    pub fn api_version(self) -> &'static str {
        match self {
            Self::LlmD => "llm-d.ai/v1alpha1",
            Self::InferenceExtension => "inference.networking.x-k8s.io/v1alpha1",
        }
    }
}

/// A scorer and what its scores are multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub struct PickerScorer {
    pub kind: ScorerKind,
    /// Finite, not negative. Default 1.
    pub weight: f32,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ScorerKind {
    Queue,
    RunningRequests,
    KvCache,
    LoraAffinity,
    /// * `length_weight`: how much the matched length counts beside the matched share.
    /// * `length_scale_tokens`: matched tokens that count in full.
    Prefix {
        length_weight: f64,
        length_scale_tokens: u32,
    },
    LoadAware {
        threshold: u32,
    },
    TokenLoad {
        threshold_tokens: u64,
    },
    ActiveRequests {
        idle_threshold: u32,
        busy_score_max: f64,
    },
    NoHitLru,
    SessionAffinity {
        ttl: Duration,
    },
    /// By the range `MIN-MAX` in this label.
    ContextLength {
        label: String,
    },
    /// Ours: learned speeds.
    ExpectedTime,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PickerFilter {
    Labels(LabelRule),
    /// By the range `MIN-MAX` in this label.
    ContextLength {
        label: String,
    },
    /// Nothing above any of these.
    Ceilings {
        ceilings: Vec<PickerCeiling>,
        fails_open: bool,
    },
    /// The utilization detector in a profile.
    Utilization {
        queue_depth: u32,
        kv_usage: f64,
        headroom: f64,
    },
    /// The concurrency detector in a profile; `None`: not counted.
    Concurrency {
        requests: Option<u64>,
        tokens: Option<u64>,
    },
    PrefixAffinity {
        share_min: f64,
        penalty_ms_max: f64,
        ttft: TtftSource,
    },
}

/// Which endpoints a filter keeps, by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelRule {
    Selector(LabelSelector),
    Values { label: String, values: Vec<String>, keeps_unlabelled: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PickerCeiling {
    ActiveRequests(f64),
    RunningRequests(f64),
    WaitingRequests(f64),
    KvUsage(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TtftSource {
    PrefillTokensPerSecond(f64),
    Learned,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PickerKind {
    #[default]
    MaxScore,
    WeightedRandom,
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyMode {
    Requests,
    Tokens,
    Hybrid,
}

/// When an endpoint is full. What is `None` does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PickerSaturation {
    /// Waiting requests.
    pub queue_depth: Option<NonZeroU32>,
    pub kv_usage: Option<Ratio>,
    /// Requests in flight through this gateway.
    pub concurrency: Option<NonZeroU32>,
}

impl Default for PickerConfig {
    /// What [`DEFAULT_PICKER_DOCUMENT`](super::DEFAULT_PICKER_DOCUMENT) asks for.
    fn default() -> Self {
        let prefix = ScorerKind::Prefix {
            length_weight: 0.0,
            length_scale_tokens: super::read::LENGTH_SCALE_TOKENS,
        };
        let scorers = [(ScorerKind::Queue, 2.0), (ScorerKind::KvCache, 2.0), (prefix, 3.0)];
        Self {
            group: PickerGroup::default(),
            profile: "default".to_owned(),
            filters: Vec::new(),
            scorers: scorers.map(|(kind, weight)| PickerScorer { kind, weight }).into(),
            picker: PickerKind::default(),
            destinations: 1,
            saturation: None,
            warnings: Vec::new(),
        }
    }
}

impl LabelRule {
    /// Whether an endpoint with these labels stays.
    pub fn keeps(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Selector(selector) => selector.matches(labels),
            Self::Values { label, values, keeps_unlabelled } => match labels.get(label) {
                Some(value) => values.contains(value),
                None => *keeps_unlabelled,
            },
        }
    }
}

impl LabelSelector {
    /// Whether something with these labels is selected, as Kubernetes decides it: an absent label
    /// satisfies `NotIn` and `DoesNotExist`, and an empty selector selects everything.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let equal = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.match_labels.iter().all(equal)
            && self.match_expressions.iter().all(|requirement| {
                let value = labels.get(&requirement.key);
                let is_listed = value.is_some_and(|value| requirement.values.contains(value));
                match requirement.operator {
                    SelectorOperator::In => is_listed,
                    SelectorOperator::NotIn => !is_listed,
                    SelectorOperator::Exists => value.is_some(),
                    SelectorOperator::DoesNotExist => value.is_none(),
                }
            })
    }
}

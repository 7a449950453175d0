//! One model: its names, its endpoints, and how one of them is chosen.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use types::{EndpointAddress, EngineKind, ModelName, PoolName, Ratio};

use super::{FlowControl, SecretSource};
use crate::picker_config::PickerConfig;

/// One entry of `schedulers`: a pool and its picker.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerSpec {
    /// DNS label of at most 63 characters, unique.
    pub name: PoolName,
    /// Matched with the body's `model`; unique.
    pub model_name: ModelName,
    /// Adapters served behind this model, unique over the document.
    pub lora_adapters: Vec<ModelName>,
    /// Endpoints outside Kubernetes. Empty only with a `model_selector`.
    pub endpoints: Vec<EndpointSpec>,
    /// Pods of a cluster.
    pub model_selector: Option<LabelSelector>,
    pub target_port: u16,
    /// Further ports of the same pods, each an endpoint of its own. No document sets it: resources do.
    pub further_ports: Vec<u16>,
    /// Namespace of the pods; `None`: the one that the gateway looks into. No document sets it.
    pub namespace: Option<String>,
    /// `model_name` stands for whatever base models the endpoints serve. No document sets it.
    pub learns_models: bool,
    pub app_protocol: AppProtocol,
    pub engine_type: EngineType,
    pub scheduler: PickerImage,
    pub policy: Policy,
    pub weights: Weights,
    /// The field's document, which goes before `policy` and `weights`.
    pub picker_config: Option<PickerConfig>,
    /// A second policy that rates live requests and decides nothing.
    pub shadow: Option<Shadow>,
    pub config_map_ref: Option<ConfigMapRef>,
    /// Picker pods of a cluster.
    pub replicas: u32,
    pub route_timeout: RouteTimeout,
    /// 0 to 5, as AWS documents them.
    pub log_level: u8,
    pub saturation: Saturation,
    /// Where an endpoint's metrics are, below its URL. Default `/metrics`.
    pub metrics_path: String,
    /// Key that the endpoints ask for.
    pub endpoint_api_key: Option<SecretSource>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndpointSpec {
    pub url: EndpointAddress,
    pub labels: BTreeMap<String, String>,
}

impl EndpointSpec {
    pub fn new(url: EndpointAddress) -> Self {
        Self { url, labels: BTreeMap::new() }
    }
}

/// Pods by label, as everywhere in Kubernetes; all parts must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<SelectorRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorRequirement {
    pub key: String,
    pub operator: SelectorOperator,
    /// Filled for `In` and `NotIn`, empty for the others.
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorOperator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// The protocol towards the endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppProtocol {
    #[default]
    Http1,
    /// `kubernetes.io/h2c`: HTTP/2 without TLS and without upgrade.
    H2c,
}

/// Which metric names to expect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineType {
    Vllm,
    Sglang,
    Tgi,
    TensorRtLlm,
    /// Told from the metrics themselves, for each endpoint.
    #[default]
    Auto,
}

impl EngineType {
    /// `None`: to be found out.
    pub fn kind(self) -> Option<EngineKind> {
        match self {
            Self::Vllm => Some(EngineKind::Vllm),
            Self::Sglang => Some(EngineKind::Sglang),
            Self::Tgi => Some(EngineKind::Tgi),
            Self::TensorRtLlm => Some(EngineKind::TensorRtLlm),
            Self::Auto => None,
        }
    }
}

/// AWS's choice of picker image. Both mean our picker; it only decides whether `weights.lru` may
/// be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PickerImage {
    #[default]
    LlmD,
    Epp,
}

/// What a decision goes by, and which weights stand where none are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Accounted signals; the expected time alone.
    #[default]
    Wicketgate,
    /// The field's: 2/2/3 for queue, KV cache and prefix on what the engines said last.
    Reference,
}

/// How much each scorer counts; 0 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    pub queue: u32,
    pub kv_cache: u32,
    pub prefix: u32,
    pub lru: u32,
    pub lora_affinity: u32,
    pub running_requests: u32,
    pub predicted_latency: u32,
}

impl Weights {
    /// AWS's defaults, to the letter; llm-d's alike.
    pub const AWS: Self = Self {
        queue: 2,
        kv_cache: 2,
        prefix: 3,
        lru: 0,
        lora_affinity: 0,
        running_requests: 0,
        predicted_latency: 0,
    };

    /// Scorer names, as in metrics and receipts, with their weights; zeros left out.
    pub fn scorers(&self) -> impl Iterator<Item = (&'static str, u32)> {
        [
            ("queue", self.queue),
            ("kv-cache", self.kv_cache),
            ("prefix", self.prefix),
            ("no-hit-lru", self.lru),
            ("lora-affinity", self.lora_affinity),
            ("running-requests", self.running_requests),
            ("expected-time", self.predicted_latency),
        ]
        .into_iter()
        .filter(|(_, weight)| *weight > 0)
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self { queue: 0, kv_cache: 0, prefix: 0, predicted_latency: 1, ..Self::AWS }
    }
}

impl Policy {
    /// The weights that are not written.
    pub fn weights(self) -> Weights {
        match self {
            Self::Wicketgate => Weights::default(),
            Self::Reference => Weights::AWS,
        }
    }
}

/// A policy on trial: it sees the same candidates as the one in force, and what it would have chosen
/// is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadow {
    pub policy: Policy,
    pub weights: Weights,
    /// Share of the pool's requests that it rates. Default 1.
    pub share: Ratio,
}

impl Default for Shadow {
    fn default() -> Self {
        Self { policy: Policy::default(), weights: Weights::default(), share: Ratio::ONE }
    }
}

/// A picker document in a cluster's ConfigMap. Excludes `weights`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigMapRef {
    pub name: String,
    /// Default `default-plugins.yaml`.
    pub key: String,
}

/// The longest a whole exchange may take, streams included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteTimeout {
    /// Not written: `timeouts.response` and `timeouts.streamDuration` hold.
    #[default]
    Inherit,
    /// `0s`.
    Unlimited,
    After(Duration),
}

/// When an endpoint is full. The first that is reached counts; a pool is full when all its
/// endpoints are, and then answers 429.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Waiting requests. Default 32, with flow control [`FlowControl::QUEUE_DEPTH`].
    pub queue_depth: NonZeroU32,
    /// KV-cache use, counted only while requests wait. Off by default.
    pub kv_cache_usage: Option<Ratio>,
    /// Requests in flight through this gateway. Off by default.
    pub concurrency: Option<NonZeroU32>,
}

impl Saturation {
    /// What holds where the document says nothing.
    ///
    /// * `queues`: requests for a full pool wait in the gateway ([`FlowControl`]).
    pub fn unless_said(queues: bool) -> Self {
        let depth = NonZeroU32::new(FlowControl::QUEUE_DEPTH).filter(|_| queues);
        let default = Self::default();
        Self { queue_depth: depth.unwrap_or(default.queue_depth), ..default }
    }
}

impl Default for Saturation {
    fn default() -> Self {
        let queue_depth = NonZeroU32::new(32).unwrap_or(NonZeroU32::MIN);
        Self { queue_depth, kv_cache_usage: None, concurrency: None }
    }
}

impl SchedulerSpec {
    /// A scheduler with every default of our own group and no endpoints yet.
    pub fn new(name: PoolName, model_name: ModelName) -> Self {
        Self {
            name,
            model_name,
            lora_adapters: Vec::new(),
            endpoints: Vec::new(),
            model_selector: None,
            target_port: 8000,
            further_ports: Vec::new(),
            namespace: None,
            learns_models: false,
            app_protocol: AppProtocol::default(),
            engine_type: EngineType::default(),
            scheduler: PickerImage::default(),
            policy: Policy::default(),
            weights: Weights::default(),
            picker_config: None,
            shadow: None,
            config_map_ref: None,
            replicas: 2,
            route_timeout: RouteTimeout::default(),
            log_level: 2,
            saturation: Saturation::default(),
            metrics_path: "/metrics".to_owned(),
            endpoint_api_key: None,
        }
    }
}

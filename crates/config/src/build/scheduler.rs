//! `schedulers[]` and the endpoints in it.

use types::{ModelName, PoolName};

use super::View;
use super::auth::secret;
use crate::spec::{
    AppProtocol, ConfigMapRef, EndpointSpec, EngineType, LabelSelector, PickerImage, Policy,
    RouteTimeout, Saturation, SchedulerSpec, SelectorOperator, SelectorRequirement, Shadow,
    Weights,
};

/// * `queues`: requests for a full pool wait in the gateway.
pub(super) fn scheduler(view: View<'_>, aws: bool, queues: bool) -> SchedulerSpec {
    let default = SchedulerSpec::new(
        PoolName::from(view.get("name").word().unwrap_or_default()),
        ModelName::from(view.get("modelName").word().unwrap_or_default()),
    );
    let adapters = view.get("loraAdapters").items().filter_map(View::word);
    SchedulerSpec {
        lora_adapters: adapters.map(ModelName::from).collect(),
        endpoints: view.get("endpoints").items().filter_map(endpoint).collect(),
        model_selector: view.get("modelSelector").present().map(selector),
        target_port: view.get("targetPort").integer().unwrap_or(default.target_port),
        further_ports: Vec::new(),
        namespace: None,
        learns_models: false,
        app_protocol: match view.get("appProtocol").word() {
            Some("kubernetes.io/h2c") => AppProtocol::H2c,
            _ => AppProtocol::Http1,
        },
        engine_type: engine_type(view.get("engineType"), aws),
        scheduler: match view.get("scheduler").word() {
            Some("epp") => PickerImage::Epp,
            _ => PickerImage::LlmD,
        },
        policy: policy(view.get("policy")),
        weights: weights(view, aws),
        picker_config: None,
        shadow: view.get("shadow").present().map(shadow),
        config_map_ref: view.get("configMapRef").present().map(config_map_ref),
        replicas: view.get("replicas").integer().unwrap_or(default.replicas),
        route_timeout: match view.get("routeTimeout").duration() {
            None => RouteTimeout::Inherit,
            Some(limit) if limit.is_zero() => RouteTimeout::Unlimited,
            Some(limit) => RouteTimeout::After(limit),
        },
        log_level: view.get("logLevel").integer().unwrap_or(default.log_level),
        saturation: saturation(view.get("saturation"), queues),
        endpoint_api_key: secret(view.get("endpointApiKey")),
        metrics_path: view.get("metricsPath").text().unwrap_or(default.metrics_path),
        name: default.name,
        model_name: default.model_name,
    }
}

pub(super) fn endpoint(view: View<'_>) -> Option<EndpointSpec> {
    Some(EndpointSpec { url: view.get("url").parsed()?, labels: view.get("labels").labels() })
}

fn engine_type(view: View<'_>, aws: bool) -> EngineType {
    match view.word() {
        Some("vllm") => EngineType::Vllm,
        Some("sglang") => EngineType::Sglang,
        Some("tgi") => EngineType::Tgi,
        Some("trtllm") => EngineType::TensorRtLlm,
        None if aws => EngineType::Vllm,
        _ => EngineType::Auto,
    }
}

fn policy(view: View<'_>) -> Policy {
    match view.word() {
        Some("reference") => Policy::Reference,
        _ => Policy::Wicketgate,
    }
}

/// Those of a scheduler, or of its shadow.
fn weights(view: View<'_>, aws: bool) -> Weights {
    let default = if aws { Weights::AWS } else { policy(view.get("policy")).weights() };
    let view = view.get("weights");
    let weight = |key, default: u32| view.get(key).integer().unwrap_or(default);
    Weights {
        queue: weight("queue", default.queue),
        kv_cache: weight("kvCache", default.kv_cache),
        prefix: weight("prefix", default.prefix),
        lru: weight("lru", default.lru),
        lora_affinity: weight("loraAffinity", default.lora_affinity),
        running_requests: weight("runningRequests", default.running_requests),
        predicted_latency: weight("predictedLatency", default.predicted_latency),
    }
}

/// Only under our own group, hence with our defaults.
fn shadow(view: View<'_>) -> Shadow {
    let share = view.get("share").ratio().unwrap_or(Shadow::default().share);
    Shadow { policy: policy(view.get("policy")), weights: weights(view, false), share }
}

fn saturation(view: View<'_>, queues: bool) -> Saturation {
    let default = Saturation::unless_said(queues);
    Saturation {
        queue_depth: view.get("queueDepth").positive().unwrap_or(default.queue_depth),
        kv_cache_usage: view.get("kvCacheUsage").ratio(),
        concurrency: view.get("concurrency").positive(),
    }
}

fn config_map_ref(view: View<'_>) -> ConfigMapRef {
    ConfigMapRef {
        name: view.get("name").text().unwrap_or_default(),
        key: view.get("key").text().unwrap_or_else(|| "default-plugins.yaml".to_owned()),
    }
}

pub(crate) fn selector(view: View<'_>) -> LabelSelector {
    LabelSelector {
        match_labels: view.get("matchLabels").labels(),
        match_expressions: view.get("matchExpressions").items().filter_map(requirement).collect(),
    }
}

fn requirement(view: View<'_>) -> Option<SelectorRequirement> {
    Some(SelectorRequirement {
        key: view.get("key").text()?,
        operator: match view.get("operator").word()? {
            "In" => SelectorOperator::In,
            "NotIn" => SelectorOperator::NotIn,
            "Exists" => SelectorOperator::Exists,
            _ => SelectorOperator::DoesNotExist,
        },
        values: view.get("values").texts(),
    })
}

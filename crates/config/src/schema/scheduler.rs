//! The fields of `schedulers[]`.

use std::time::Duration;

use super::auth::SECRET;
use super::tables::{COUNT, PORT};
use super::{Field, Format, Kind, Section};

const WEIGHT: Kind = Kind::Integer { min: 0, max: i32::MAX as i64 };

pub(super) static SCHEDULER: Section = Section {
    fields: &[
        Field::aws(
            "name",
            Kind::Text(Format::DnsLabel),
            "Names the pool; unique. `<metadata.name>-<name>` must fit 63 characters too.",
        )
        .required(),
        Field::aws(
            "modelName",
            Kind::Text(Format::Any(253)),
            "Compared with the body's `model`; unique over the schedulers.",
        )
        .required(),
        Field::aws(
            "loraAdapters",
            Kind::List { item: &Kind::Text(Format::Any(253)), min: 0, max: 50 },
            "Adapters served behind this model; unique over the document, and none may be a \
             `modelName`.",
        ),
        Field::ours(
            "endpoints",
            Kind::List { item: &Kind::Section(&ENDPOINT), min: 0, max: 1000 },
            "Model servers outside Kubernetes. Needed unless `modelSelector` is there.",
        ),
        Field::aws(
            "modelSelector",
            Kind::Section(&SELECTOR),
            "Pods that serve the model. Without meaning outside Kubernetes.",
        )
        .required_by_aws(),
        Field::aws(
            "engineType",
            Kind::Choice {
                words: &["auto", "vllm", "sglang", "tgi", "trtllm"],
                aws_words: &["vllm", "sglang"],
            },
            "Whose metric names to read. `auto` tells each endpoint's engine from its metrics.",
        )
        .default("auto")
        .aws_default("vllm"),
        Field::ours(
            "metricsPath",
            Kind::Text(Format::HttpPath),
            "Where an endpoint's metrics are, below its URL.",
        )
        .default("/metrics"),
        Field::ours(
            "endpointApiKey",
            Kind::Section(&SECRET),
            "Key that the endpoints ask for, sent as `Authorization: Bearer KEY` with requests, scrapes and model \
             lists. Goes before `--endpoint-api-key`.",
        ),
        POLICY,
        Field::aws(
            "weights",
            Kind::Section(&WEIGHTS),
            "How much each scorer counts. Excludes `configMapRef`.",
        ),
        Field::ours(
            "pickerConfig",
            Kind::Section(&PICKER_CONFIG),
            "The `EndpointPickerConfig` of llm-d and the Gateway API Inference Extension, in place of \
             `policy` and `weights`: see [picker-config.md](picker-config.md).",
        ),
        Field::ours(
            "shadow",
            Kind::Section(&SHADOW),
            "A second policy that rates live requests and decides nothing: metrics and \
             `/debug/decisions` tell how often it agrees and what it would have gained.",
        ),
        Field::ours(
            "saturation",
            Kind::Section(&SATURATION),
            "When an endpoint is full. When all of a pool are, the answer is 429 with `Retry-After`.",
        ),
        Field::aws(
            "routeTimeout",
            Kind::Duration { min: Duration::ZERO, max: Duration::MAX },
            "Longest whole exchange, streams included. `0s`: no limit. Absent: `timeouts.response` \
             and `timeouts.streamDuration` hold.",
        ),
        Field::aws("targetPort", PORT, "Port of the pods.").default("8000").cluster_only(),
        Field::aws(
            "appProtocol",
            Kind::choice(&["http", "kubernetes.io/h2c"]),
            "HTTP/1.1, or HTTP/2 without TLS, to the endpoints.",
        )
        .default("http"),
        Field::aws(
            "scheduler",
            Kind::choice(&["llm-d", "epp"]),
            "AWS's picker image. Both mean our picker; `weights.lru` needs `llm-d`.",
        )
        .default("llm-d"),
        Field::aws(
            "configMapRef",
            Kind::Section(&CONFIG_MAP_REF),
            "Own picker document in a ConfigMap. Excludes `weights`; outside Kubernetes the default \
             weights hold, and our group's `pickerConfig` takes the document.",
        )
        .cluster_only(),
        Field::aws("replicas", COUNT, "Picker pods; more than one elect a leader.")
            .default("2")
            .cluster_only(),
        Field::aws("env", Kind::Opaque, "Appended to the picker's pods.").cluster_only(),
        Field::aws("envFrom", Kind::Opaque, "Appended to the picker's pods.").cluster_only(),
        Field::aws("logLevel", Kind::Integer { min: 0, max: 5 }, "AWS's log levels.")
            .default("2")
            .cluster_only(),
    ],
};

pub(super) static ENDPOINT: Section = Section {
    fields: &[
        Field::ours(
            "url",
            Kind::Text(Format::EndpointUrl),
            "`http://HOST:PORT`, perhaps with a path that goes before every request's.",
        )
        .required(),
        Field::ours("labels", Kind::Labels, "Free labels, shown in decisions."),
    ],
};

static SELECTOR: Section = Section {
    fields: &[
        Field::aws("matchLabels", Kind::Labels, "Labels that a pod must have."),
        Field::aws(
            "matchExpressions",
            Kind::List { item: &Kind::Section(&REQUIREMENT), min: 0, max: 100 },
            "Further conditions; all must hold.",
        ),
    ],
};

static REQUIREMENT: Section = Section {
    fields: &[
        Field::aws("key", Kind::Text(Format::Any(317)), "Label.").required(),
        Field::aws(
            "operator",
            Kind::choice(&["In", "NotIn", "Exists", "DoesNotExist"]),
            "How it is compared.",
        )
        .required(),
        Field::aws(
            "values",
            Kind::List { item: &Kind::Text(Format::Any(63)), min: 0, max: 1000 },
            "For `In` and `NotIn` only.",
        ),
    ],
};

const POLICY: Field = Field::ours(
    "policy",
    Kind::choice(&["wicketgate", "reference"]),
    "`wicketgate` goes by accounted signals and learned speeds. `reference` is the field's: what the \
     engines said last, with 2/2/3 for `queue`, `kvCache` and `prefix` unless written.",
)
.default("wicketgate");

static WEIGHTS: Section = Section {
    fields: &[
        Field::aws("queue", WEIGHT, "Few waiting requests.").default("0").aws_default("2"),
        Field::aws("kvCache", WEIGHT, "Free KV cache.").default("0").aws_default("2"),
        Field::aws("prefix", WEIGHT, "The longest part of the prompt already cached.")
            .default("0")
            .aws_default("3"),
        Field::aws("lru", WEIGHT, "For prompts cached nowhere: the endpoint that had none for longest. Only with `scheduler: llm-d`.")
            .default("0"),
        Field::aws(
            "loraAffinity",
            WEIGHT,
            "The adapter is loaded already. Decides nothing where no adapters are.",
        )
        .default("0"),
        Field::aws("runningRequests", WEIGHT, "Few running requests.").default("0"),
        Field::aws("predictedLatency", WEIGHT, "Short expected time to the first token, by the learned speed of each endpoint and adapter.")
            .default("1")
            .aws_default("0"),
    ],
};

static SHADOW: Section = Section {
    fields: &[
        POLICY,
        Field::ours(
            "weights",
            Kind::Section(&WEIGHTS),
            "How much each scorer counts; the same defaults as in the scheduler's `weights`.",
        ),
        Field::ours("share", Kind::Share, "Share of the pool's requests that it rates.")
            .default("1"),
    ],
};

static PICKER_CONFIG: Section = Section {
    fields: &[
        Field::ours(
            "file",
            Kind::Text(Format::File),
            "Beside this document unless absolute; read again whenever this one is.",
        ),
        Field::ours(
            "inline",
            Kind::Opaque,
            "The document itself, with its `apiVersion` and `kind`.",
        ),
    ],
};

static CONFIG_MAP_REF: Section = Section {
    fields: &[
        Field::aws("name", Kind::Text(Format::DnsName), "ConfigMap.").required(),
        Field::aws("key", Kind::Text(Format::Any(253)), "Key in it.")
            .default("default-plugins.yaml"),
    ],
};

static SATURATION: Section = Section {
    fields: &[
        Field::ours("queueDepth", COUNT, "Waiting requests at which an endpoint is full.")
            .default("32"),
        Field::ours(
            "kvCacheUsage",
            Kind::Share,
            "KV-cache use at which it is full; counted only while requests wait. Absent: off.",
        ),
        Field::ours(
            "concurrency",
            COUNT,
            "Requests in flight through this gateway at which it is full. Absent: off.",
        ),
    ],
};

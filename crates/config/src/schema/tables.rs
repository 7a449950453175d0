//! The document's head, and what stands directly below `spec`.

use super::auth::AUTH;
use super::edge::{ADMIN, LIMITS, LISTENER, TIMEOUTS};
use super::flow::{FLOW_CONTROL, OBJECTIVE};
use super::membership::MEMBERSHIP;
use super::observability::OBSERVABILITY;
use super::peers::PEERS;
use super::rate_limits::{RATE_LIMIT, RATE_LIMITS_MAX};
use super::rewrite::MODEL_REWRITE;
use super::scheduler::{ENDPOINT, SCHEDULER};
use super::upstream::{EJECTION, PREFIX_INDEX, RETRY, SCRAPE};
use super::{Field, Format, Kind, Section};

/// Pools of one process; ten thousand idle ones are measured (`bench/run --figure epp-pools`).
const SCHEDULERS_MAX: usize = 16_384;
/// Schedulers that AWS lets one gateway have.
pub const AWS_SCHEDULERS_MAX: usize = 100;

/// AWS's largest body, 256 MiB.
pub(crate) const AWS_BODY_BYTES_MAX: i64 = 268_435_456;

pub(super) const COUNT: Kind = Kind::Integer { min: 1, max: i32::MAX as i64 };
pub(super) const PORT: Kind = Kind::Integer { min: 1, max: 65_535 };

pub(crate) static DOCUMENT: Section = Section {
    fields: &[
        Field::aws(
            "apiVersion",
            Kind::Text(Format::Any(253)),
            "`gateway.wicketgate.dev/v1alpha1`, or AWS's `inference.sagemaker.aws.amazon.com/v1alpha1`.",
        )
        .required(),
        Field::aws("kind", Kind::Text(Format::Any(63)), "`InferenceGatewayConfig`.").required(),
        Field::aws("metadata", Kind::Section(&METADATA), "Name and labels, as for any Kubernetes object.")
            .required_by_aws(),
        Field::aws("spec", Kind::Section(&SPEC), "The gateway.").required(),
        Field::aws("status", Kind::Opaque, "Written by the controller; ignored here."),
    ],
};

pub(crate) static METADATA: Section = Section {
    fields: &[
        Field::aws("name", Kind::Text(Format::DnsName), "Names the gateway.")
            .required_by_aws()
            .default("gateway"),
        Field::aws("namespace", Kind::Text(Format::DnsLabel), "Namespace of the cluster."),
        Field::aws("labels", Kind::Labels, "Ignored here."),
        Field::aws("annotations", Kind::Labels, "Ignored here."),
        Field::aws("generateName", Kind::Opaque, "Ignored here."),
        Field::aws("uid", Kind::Opaque, "Ignored here."),
        Field::aws("resourceVersion", Kind::Opaque, "Ignored here."),
        Field::aws("generation", Kind::Opaque, "Ignored here."),
        Field::aws("creationTimestamp", Kind::Opaque, "Ignored here."),
        Field::aws("deletionTimestamp", Kind::Opaque, "Ignored here."),
        Field::aws("deletionGracePeriodSeconds", Kind::Opaque, "Ignored here."),
        Field::aws("finalizers", Kind::Opaque, "Ignored here."),
        Field::aws("ownerReferences", Kind::Opaque, "Ignored here."),
        Field::aws("managedFields", Kind::Opaque, "Ignored here."),
        Field::aws("selfLink", Kind::Opaque, "Ignored here."),
    ],
};

static SPEC: Section = Section {
    fields: &[
        Field::aws(
            "schedulers",
            Kind::List { item: &Kind::Section(&SCHEDULER), min: 1, max: SCHEDULERS_MAX },
            "One entry for each model, at most 100 in AWS's group. Our group needs none when `discover` names an endpoint.",
        )
        .required_by_aws(),
        Field::ours(
            "discover",
            Kind::List { item: &Kind::Section(&ENDPOINT), min: 0, max: 1000 },
            "Endpoints whose models and engine are found at run time through `/v1/models` and \
             `/metrics`; what `serve --endpoint URL` writes.",
        ),
        Field::aws(
            "bbr",
            Kind::Section(&BBR),
            "Body-based routing: which pool serves a request is read from `model` in its body.",
        )
        .required_by_aws(),
        Field::aws(
            "tls",
            Kind::Section(&MANAGED_TLS),
            "HTTPS with certificates that the cluster issues. The built-in proxy reads `listener.tls`.",
        ),
        Field::aws("auth", Kind::Section(&AUTH), "Who may send requests. Absent: everyone."),
        Field::aws(
            "observability",
            Kind::Section(&OBSERVABILITY),
            "Metrics pipeline of a cluster.",
        ),
        Field::aws(
            "podDefaults",
            Kind::Section(&POD_DEFAULTS),
            "Applied to the pods that a cluster runs for this gateway.",
        )
        .cluster_only(),
        Field::ours(
            "modelRewrites",
            Kind::List { item: &Kind::Section(&MODEL_REWRITE), min: 0, max: 1000 },
            "Other models than those that clients ask for: aliases, canaries, mirrors. See \
             [canary.md](canary.md).",
        ),
        Field::ours("listener", Kind::Section(&LISTENER), "Where clients connect."),
        Field::ours(
            "admin",
            Kind::Section(&ADMIN),
            "Metrics, health and decisions; apart from clients.",
        ),
        Field::ours("limits", Kind::Section(&LIMITS), "How much is taken from clients."),
        Field::ours(
            "rateLimits",
            Kind::List { item: &Kind::Section(&RATE_LIMIT), min: 0, max: RATE_LIMITS_MAX },
            "How many requests and tokens a tenant, key, model or route may use; 429 beyond. All rules that \
             apply must let a request pass. See `rate-limits.md`.",
        ),
        Field::ours("timeouts", Kind::Section(&TIMEOUTS), "How long each step may take."),
        Field::ours(
            "retry",
            Kind::Section(&RETRY),
            "Repeating on another endpoint, before the first byte.",
        ),
        Field::ours("ejection", Kind::Section(&EJECTION), "Leaving out endpoints that fail."),
        Field::ours(
            "prefixIndex",
            Kind::Section(&PREFIX_INDEX),
            "Memory of which endpoint saw which prompt.",
        ),
        Field::ours("scrape", Kind::Section(&SCRAPE), "Reading the endpoints' metrics."),
        Field::ours(
            "flowControl",
            Kind::Section(&FLOW_CONTROL),
            "Requests for a full pool wait here, the most important first and flows in turns. Absent: they are refused with \
             429. `flowControl: {}` is a good beginning.",
        ),
        Field::ours(
            "objectives",
            Kind::List { item: &Kind::Section(&OBJECTIVE), min: 0, max: 1000 },
            "Priorities and targets that requests can name; InferenceObjective in Kubernetes.",
        ),
        Field::ours(
            "peers",
            Kind::Section(&PEERS),
            "Other gateways in front of the same endpoints, which share load and prefixes. Absent: none.",
        ),
        Field::ours(
            "global",
            Kind::Section(&MEMBERSHIP),
            "Reports to the routers of the global tier, which send requests here. Absent: none. See \
             [global.md](global.md).",
        ),
        Field::ours(
            "accessLog",
            Kind::Section(&ACCESS_LOG),
            "One JSON line for each request, without prompt text.",
        ),
        Field::ours(
            "recording",
            Kind::Section(&RECORDING),
            "Traffic written down for `wicketgate replay`: times, lengths and numbered prompt blocks, \
             never text. JSON lines, readable by the owner alone.",
        ),
        Field::ours(
            "allowedPaths",
            Kind::List { item: &Kind::Section(&ALLOWED_PATH), min: 0, max: 100 },
            "Further exact paths to forward. Any other unknown path is 404, because engines leave \
             dangerous paths open.",
        ),
        Field::ours(
            "exposeDecision",
            Kind::Flag,
            "Response headers tell which endpoint answered and why. Gives addresses away.",
        )
        .default("false"),
    ],
};

static BBR: Section = Section {
    fields: &[
        Field::aws(
            "enabled",
            Kind::Flag,
            "Off: no model matching, the single scheduler gets every request. Must be on with two \
             or more schedulers.",
        )
        .required_by_aws()
        .default("true"),
        Field::aws("replicas", COUNT, "Router pods.").default("2").cluster_only(),
        Field::aws(
            "defaultBackend",
            Kind::Section(&DEFAULT_BACKEND),
            "Service that gets requests no scheduler matches; else they are 404.",
        )
        .cluster_only(),
        Field::aws(
            "maxRequestBodyBytes",
            Kind::Integer { min: 1, max: AWS_BODY_BYTES_MAX },
            "Largest request body. Another name of `limits.requestBodyBytesMax`: write one of them.",
        )
        .aws_default("268435456"),
    ],
};

static DEFAULT_BACKEND: Section = Section {
    fields: &[
        Field::aws("name", Kind::Text(Format::DnsLabel), "Service.").required(),
        Field::aws("port", PORT, "Its port.").default("8000"),
    ],
};

static MANAGED_TLS: Section = Section {
    fields: &[Field::aws(
        "acmArn",
        Kind::Text(Format::Any(2048)),
        "Own certificate in AWS's certificate manager. Absent: one is issued.",
    )],
};

static POD_DEFAULTS: Section = Section {
    fields: &[
        Field::aws("resources", Kind::Opaque, "As in a pod."),
        Field::aws("nodeSelector", Kind::Opaque, "As in a pod."),
        Field::aws("tolerations", Kind::Opaque, "As in a pod."),
        Field::aws("affinity", Kind::Opaque, "As in a pod."),
        Field::aws("labels", Kind::Opaque, "As in a pod."),
        Field::aws("annotations", Kind::Opaque, "As in a pod."),
        Field::aws("env", Kind::Opaque, "As in a pod."),
        Field::aws("envFrom", Kind::Opaque, "As in a pod."),
        Field::ours("volumes", Kind::Opaque, "As in a pod: certificates, keys."),
        Field::ours("volumeMounts", Kind::Opaque, "As in a container."),
    ],
};

pub(crate) static ACCESS_LOG: Section = Section {
    fields: &[Field::ours(
        "target",
        Kind::Text(Format::LogTarget),
        "`stdout`, `stderr`, `off`, or a file to append to.",
    )
    .default("stdout")],
};

static RECORDING: Section = Section {
    fields: &[
        Field::ours(
            "file",
            Kind::Text(Format::File),
            "Where to record; what is there already is kept as `.1`. Absent: nothing is recorded.",
        ),
        Field::ours(
            "rotateBytes",
            Kind::Bytes { min: 1 << 20, max: 1 << 40 },
            "Size at which the next file begins; the full one becomes `.1`, `.1` becomes `.2`.",
        )
        .default("256MiB"),
        Field::ours(
            "filesMax",
            Kind::Integer { min: 1, max: 1000 },
            "Files in all; the oldest is deleted.",
        )
        .default("4"),
    ],
};

static ALLOWED_PATH: Section = Section {
    fields: &[
        Field::ours("path", Kind::Text(Format::HttpPath), "Compared byte for byte.").required(),
        Field::ours(
            "methods",
            Kind::List {
                item: &Kind::choice(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
                min: 1,
                max: 7,
            },
            "Allowed methods; others are 405.",
        )
        .default("[POST]"),
        Field::ours(
            "scheduler",
            Kind::Text(Format::DnsLabel),
            "Name of the scheduler that gets it.",
        )
        .required(),
    ],
};

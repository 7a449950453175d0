//! The document's head, and what stands directly below `spec`.

use super::edge::{ADMIN, LIMITS, LISTENER, TIMEOUTS};
use super::scheduler::{ENDPOINT, SCHEDULER};
use super::upstream::{EJECTION, PREFIX_INDEX, RETRY, SCRAPE};
use super::{Field, Format, Kind, Section};

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

static METADATA: Section = Section {
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
            Kind::List { item: &Kind::Section(&SCHEDULER), min: 1, max: 100 },
            "One entry for each model. Our group needs none when `discover` names an endpoint.",
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
        Field::ours("listener", Kind::Section(&LISTENER), "Where clients connect."),
        Field::ours(
            "admin",
            Kind::Section(&ADMIN),
            "Metrics, health and decisions; apart from clients.",
        ),
        Field::ours("limits", Kind::Section(&LIMITS), "How much is taken from clients."),
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
            "accessLog",
            Kind::Section(&ACCESS_LOG),
            "One JSON line for each request, without prompt text.",
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

static AUTH: Section =
    Section { fields: &[Field::aws("jwt", Kind::Section(&JWT), "JSON web tokens.").required()] };

static JWT: Section = Section {
    fields: &[
        Field::aws("provider", Kind::Section(&PROVIDER), "The one issuer of tokens.").required()
    ],
};

static PROVIDER: Section = Section {
    fields: &[
        Field::aws("name", Kind::Text(Format::Any(253)), "Names the provider.").required(),
        Field::aws("issuer", Kind::Text(Format::Https), "Must equal the `iss` claim.").required(),
        Field::aws("remoteJWKS", Kind::Section(&JWKS), "Signing keys.").required(),
        Field::aws(
            "audiences",
            Kind::List { item: &Kind::Text(Format::Any(1024)), min: 0, max: 8 },
            "Accepted `aud` claims. At least one of `audiences` and `requiredClaims`.",
        ),
        Field::aws(
            "requiredClaims",
            Kind::List { item: &Kind::Section(&CLAIM), min: 0, max: 16 },
            "Claims that a token must have.",
        ),
    ],
};

static JWKS: Section = Section {
    fields: &[Field::aws("uri", Kind::Text(Format::Https), "Where they are fetched.").required()],
};

static CLAIM: Section = Section {
    fields: &[
        Field::aws("name", Kind::Text(Format::Any(253)), "Claim.").required(),
        Field::aws("valueType", Kind::choice(&["String", "StringArray"]), "Shape of the claim.")
            .default("String"),
        Field::aws(
            "values",
            Kind::List { item: &Kind::Text(Format::Any(1024)), min: 1, max: 128 },
            "Accepted values.",
        )
        .required(),
    ],
};

static OBSERVABILITY: Section = Section {
    fields: &[Field::aws("metrics", Kind::Section(&METRICS), "OpenTelemetry collector.")],
};

static METRICS: Section = Section {
    fields: &[Field::aws(
        "enabled",
        Kind::Flag,
        "Puts a collector beside the pods. The admin port serves `/metrics` either way.",
    )
    .default("true")
    .cluster_only()],
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
    ],
};

static ACCESS_LOG: Section = Section {
    fields: &[Field::ours(
        "target",
        Kind::Text(Format::LogTarget),
        "`stdout`, `stderr`, `off`, or a file to append to.",
    )
    .default("stdout")],
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

//! `observability`.

use std::time::Duration;

use super::edge::WAIT;
use super::{Field, Format, Kind, Section};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) static OBSERVABILITY: Section = Section {
    fields: &[
        Field::aws("metrics", Kind::Section(&METRICS), "OpenTelemetry collector."),
        Field::ours(
            "metricNames",
            Kind::Words { words: &["wicketgate", "field", "genai"], alone: &["both"] },
            "Names on `/metrics`: ours, those of the field's endpoint picker (`llm_d_epp_*`, \
             `inference_*`) and OpenTelemetry's (`gen_ai_*`) where one means the same. `both` is \
             `[wicketgate, field]`.",
        )
        .default("wicketgate"),
        Field::ours(
            "cloudWatch",
            Kind::Section(&CLOUD_WATCH),
            "Sends metrics of the cluster, or of a router's fleet, to Amazon CloudWatch; absent: nothing is sent.",
        ),
        Field::ours(
            "tracing",
            Kind::Section(&TRACING),
            "Traces to a collector by OTLP (docs/tracing.md). Absent: none, unless `OTEL_EXPORTER_OTLP_ENDPOINT` \
             or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. `OTEL_*` go before what is written here.",
        ),
        Field::ours(
            "serverTiming",
            Kind::choice(&["off", "onRequest", "always"]),
            "Whether answers tell in `server-timing` where the time went: never, to clients that send \
             `x-wicketgate-timing`, or always.",
        )
        .default("onRequest"),
        Field::ours(
            "prefixAlarm",
            Kind::Section(&PREFIX_ALARM),
            "Says when prompts of one template share less than they did (docs/prefix-regressions.md).",
        ),
        Field::ours(
            "usage",
            Kind::Section(&USAGE),
            "GPU-seconds by pool and tenant, on `/debug/usage` (docs/usage.md).",
        ),
        Field::ours(
            "currency",
            Kind::Text(Format::Any(16)),
            "What `prices` are in; only shown.",
        )
        .default("USD"),
        Field::ours(
            "prices",
            Kind::List { item: &Kind::Section(&PRICE), min: 0, max: 10_000 },
            "What the GPUs behind a scheduler cost. Without a price, usage has no cost.",
        ),
    ],
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

static CLOUD_WATCH: Section = Section {
    fields: &[
        Field::ours(
            "mode",
            Kind::choice(&["emf", "api"]),
            "`emf`: lines in the embedded metric format, for an agent. `api`: `PutMetricData`, signed with \
             the credentials of the environment, the shared files, or the role of instance, task or pod.",
        )
        .required(),
        Field::ours(
            "target",
            Kind::Text(Format::Any(1024)),
            "With `emf`, where lines go: `stdout`, `stderr`, `tcp://HOST:PORT` of an agent, or a file.",
        )
        .default("stdout"),
        Field::ours("namespace", Kind::Text(Format::Any(255)), "CloudWatch's namespace.")
            .default("Wicketgate"),
        Field::ours(
            "dimensions",
            Kind::Labels,
            "On every metric, such as `Cluster: prod-1`; at most 30. Each set of values is a metric of its \
             own, and costs as one.",
        ),
        Field::ours(
            "interval",
            Kind::Duration { min: SECOND, max: Duration::from_secs(3600) },
            "Between two reports. CloudWatch keeps minutes; below that it bills high resolution.",
        )
        .default("60s"),
        Field::ours(
            "region",
            Kind::Text(Format::Any(64)),
            "With `api`, the region. Absent: `AWS_REGION` of the environment.",
        ),
        Field::ours(
            "endpoint",
            Kind::Text(Format::Any(2048)),
            "With `api`, another address than `https://monitoring.REGION.amazonaws.com`.",
        ),
    ],
};

static TRACING: Section = Section {
    fields: &[
        Field::ours(
            "endpoint",
            Kind::Text(Format::CollectorUrl),
            "The collector, `http://` or `https://`. Absent: `http://localhost:4318`, with `grpc` \
             `http://localhost:4317`. A path is completed by `/v1/traces`.",
        ),
        Field::ours(
            "protocol",
            Kind::choice(&["http/protobuf", "grpc"]),
            "OTLP over HTTP/1.1, or over gRPC.",
        )
        .default("http/protobuf"),
        Field::ours("sampleRatio", Kind::Share, "Share of the traces that begin here.")
            .default("0.01"),
        Field::ours(
            "followParent",
            Kind::Flag,
            "Whether a client's `traceparent` decides for its trace. Clients that cannot be trusted with \
             the collector's capacity are better not followed.",
        )
        .default("true"),
        Field::ours(
            "sampleErrors",
            Kind::Flag,
            "Also keeps what failed on our side or an endpoint's, decided at its end.",
        )
        .default("true"),
        Field::ours(
            "sampleSlowerThan",
            WAIT,
            "Also keeps what took longer: to the first token of a stream, else to the end.",
        ),
        Field::ours("serviceName", Kind::Text(Format::Any(255)), "`service.name` of the spans.")
            .default("wicketgate"),
        Field::ours(
            "caFile",
            Kind::Text(Format::File),
            "Authorities that sign the collector's certificate, PEM. Absent: those of the system.",
        ),
        Field::ours(
            "timeout",
            Kind::Duration { min: Duration::from_millis(100), max: Duration::from_secs(60) },
            "Longest export of one batch; what is not exported then is dropped and counted.",
        )
        .default("10s"),
    ],
};

static PREFIX_ALARM: Section = Section {
    fields: &[
        Field::ours("enabled", Kind::Flag, "Off: templates are not looked at.").default("true"),
        Field::ours(
            "within",
            Kind::Duration { min: Duration::from_secs(1), max: Duration::from_secs(3600) },
            "How soon an edit shows: half-life of the memory of what just happened. At least eight prompts of a \
             template must come in this time; what is usual is remembered 60 times as long.",
        )
        .default("10s"),
        Field::ours(
            "lossTokensPerHourMin",
            Kind::Integer { min: 1, max: 1_000_000_000_000 },
            "Prompt tokens that are computed again in an hour before it is worth an alarm.",
        )
        .default("100000"),
    ],
};

static USAGE: Section = Section {
    fields: &[
        Field::ours(
            "tenantsMax",
            Kind::Integer { min: 1, max: 100_000 },
            "Tenants of one pool that are told apart; further ones are counted as `_other`.",
        )
        .default("1000"),
        Field::ours(
            "tenantSeriesMax",
            Kind::Integer { min: 0, max: 1000 },
            "Tenants that have series of their own on `/metrics`, the first that come; the others are `_other`. 0: none \
             has.",
        )
        .default("20"),
    ],
};

static PRICE: Section = Section {
    fields: &[
        Field::ours("scheduler", Kind::Text(Format::DnsLabel), "Name of the scheduler.").required(),
        Field::ours(
            "gpuHour",
            Kind::Number { min: 0.0, max: 1e6 },
            "Price of one GPU for one hour.",
        )
        .required(),
        Field::ours(
            "gpusPerEndpoint",
            Kind::Integer { min: 1, max: 10_000 },
            "GPUs that work together behind one endpoint.",
        )
        .default("1"),
    ],
};

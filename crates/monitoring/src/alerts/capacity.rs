//! There is not enough of it.

use super::{Alert, Severity, Trial};

const POOL: &[(&str, &str)] = &[("pool", "chat")];

pub(super) static ALERTS: &[Alert] = &[
    Alert {
        name: "WicketgatePoolSaturated",
        severity: Severity::Warning,
        expr: "max by (pool) (wicketgate_pool_saturation_ratio) > 0.9",
        hold: "10m",
        summary: "{{ $labels.pool }} is {{ $value | humanizePercentage }} full",
        means: "For ten minutes nine tenths of a pool's capacity were in use: by default an endpoint is full at 32 waiting requests. \
                At 100 % requests get 429. Ten minutes are longer than a burst and about what a new GPU pod takes to load a model.",
        look: &[
            "Dashboard *Pool*: *Request rate* (is it load) against *Endpoints* (or did some leave).",
            "Dashboard *Cluster overview*: *Headroom*, to see whether other pools have GPUs to give.",
        ],
        act: &[
            "Scale the pool's deployment up, or let an autoscaler follow `wicketgate_pool_saturation_ratio`.",
            "Until then let less important traffic go: lower its priority, or its limits.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[(r#"wicketgate_pool_saturation_ratio{pool="chat"}"#, "0.95x30")],
            labels: POOL,
            quiet: &[(r#"wicketgate_pool_saturation_ratio{pool="chat"}"#, "0.85x30")],
        },
    },
    Alert {
        name: "WicketgateRequestsRejected",
        severity: Severity::Warning,
        expr: "pool:wicketgate_requests_rejected:ratio_rate5m > 0.05",
        hold: "10m",
        summary: "{{ $labels.pool }}: {{ $value | humanizePercentage }} of requests got 429",
        means: "One request in twenty was answered 429 for ten minutes. Clients that honour `Retry-After` come back, so a few are the \
                system at work; this many are users who wait.",
        look: &[
            "Dashboard *Pool*, panel *429 by reason*: `saturated` is capacity, `rate_limited` a limit of yours, `endpoint` an engine's own.",
        ],
        act: &[
            "`saturated`: see `WicketgatePoolSaturated`. `rate_limited`: is the limit still the right one, and whose is it.",
            "`endpoint`: the engine's queue limit is below `saturation.queueDepth`; raise the former or lower the latter.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[
                (r#"wicketgate_requests_total{pool="chat",outcome="shed"}"#, "0+100x30"),
                (
                    r#"wicketgate_requests_rejected_total{pool="chat",reason="saturated"}"#,
                    "0+10x30",
                ),
            ],
            labels: POOL,
            quiet: &[
                (r#"wicketgate_requests_total{pool="chat",outcome="shed"}"#, "0+100x30"),
                (r#"wicketgate_requests_rejected_total{pool="chat",reason="saturated"}"#, "0+4x30"),
            ],
        },
    },
    Alert {
        name: "WicketgateHeadroomLow",
        severity: Severity::Warning,
        expr: "cluster:wicketgate_headroom_requests:ratio < 0.1",
        hold: "15m",
        summary: "{{ $value | humanizePercentage }} of the cluster's capacity for requests is left",
        means: "Over all pools less than a tenth of the requests that endpoints can hold is free for a quarter of an hour. One more \
                endpoint lost, or a burst, and pools refuse.",
        look: &[
            "Dashboard *Cluster overview*: *Headroom* since when, *Endpoints by state* for those that left.",
            "Dashboard *Pool*: which pool is the full one.",
        ],
        act: &["Add endpoints to the fullest pool; move GPUs from idle pools to it."],
        trial: Trial {
            at: "30m",
            firing: &[
                ("wicketgate_cluster_headroom_requests", "5x40"),
                ("wicketgate_cluster_capacity_requests", "100x40"),
            ],
            labels: &[],
            quiet: &[
                ("wicketgate_cluster_headroom_requests", "50x40"),
                ("wicketgate_cluster_capacity_requests", "100x40"),
            ],
        },
    },
];

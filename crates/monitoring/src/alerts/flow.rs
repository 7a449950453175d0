//! Requests wait too long, or are turned away by rules.

use super::{Alert, Severity, Trial};

const STANDARD: &[(&str, &str)] = &[("band", "standard"), ("pool", "chat")];

pub(super) static ALERTS: &[Alert] = &[
    Alert {
        name: "WicketgateQueueWaitLong",
        severity: Severity::Warning,
        expr: "histogram_quantile(0.95, sum by (pool, band, le) \
               (rate(wicketgate_flow_queue_duration_seconds_bucket{band!~\".*sheddable\"}[5m]))) > 10",
        hold: "10m",
        summary: "{{ $labels.pool }}, band {{ $labels.band }}: one request in twenty waits {{ $value | humanizeDuration }} to be sent",
        means: "Requests wait at the gateway for a pool that is full. Ten seconds for one in twenty are more than a burst: the band gets \
                less than it asks for. Sheddable bands are left out: they are meant to wait.",
        look: &[
            "Dashboard *Flow control and limits*: *Let go* by band, whether higher bands take everything; *Work that waits*.",
            "`curl ADMIN/debug/flow`: bands and their longest flows. One tenant's flow that is far longer than the others is the cause.",
            "`WicketgatePoolSaturated` of the same pool.",
        ],
        act: &[
            "Add capacity. Until then: a `reservedShare` for a band that starves, a lower priority for what takes everything.",
            "Give the band's requests a shorter `ttl`, so that they fail soon rather than late.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="standard",le="10"}"#,
                    "0+50x30",
                ),
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="standard",le="30"}"#,
                    "0+100x30",
                ),
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="standard",le="+Inf"}"#,
                    "0+100x30",
                ),
            ],
            labels: STANDARD,
            quiet: &[
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="standard",le="10"}"#,
                    "0+99x30",
                ),
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="standard",le="+Inf"}"#,
                    "0+100x30",
                ),
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="sheddable",le="30"}"#,
                    "0+0x30",
                ),
                (
                    r#"wicketgate_flow_queue_duration_seconds_bucket{pool="chat",band="sheddable",le="+Inf"}"#,
                    "0+100x30",
                ),
            ],
        },
    },
    Alert {
        name: "WicketgateQueueSheds",
        severity: Severity::Warning,
        expr: "sum by (pool, band) (rate(wicketgate_flow_shed_total{band!~\".*sheddable\"}[5m])) \
               / (sum by (pool, band) (rate(wicketgate_flow_shed_total{band!~\".*sheddable\"}[5m])) \
               + sum by (pool, band) (rate(wicketgate_flow_dispatched_total{band!~\".*sheddable\"}[5m])) > 0) > 0.05",
        hold: "10m",
        summary: "{{ $labels.pool }}, band {{ $labels.band }}: {{ $value | humanizePercentage }} of requests are turned away by flow control",
        means: "One request in twenty of a band was refused on arrival or given up in the queue for ten minutes. Sheddable bands are left \
                out: to be shed is what they are for.",
        look: &[
            "Dashboard *Flow control and limits*, panel *Shed by reason*: `band_full`, `ttl_expired` and `evicted` are capacity, \
             `deadline` are clients that want their first token sooner than it can come.",
            "The same dashboard, *Let go*: what goes instead.",
        ],
        act: &[
            "As for `WicketgateQueueWaitLong`. A larger queue or a longer `ttl` helps against bursts only.",
            "Clients that honour `Retry-After` are let in past the others: see that yours do.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[
                (
                    r#"wicketgate_flow_shed_total{pool="chat",band="standard",reason="ttl_expired"}"#,
                    "0+10x30",
                ),
                (r#"wicketgate_flow_dispatched_total{pool="chat",band="standard"}"#, "0+90x30"),
            ],
            labels: STANDARD,
            quiet: &[
                (
                    r#"wicketgate_flow_shed_total{pool="chat",band="standard",reason="ttl_expired"}"#,
                    "0+4x30",
                ),
                (r#"wicketgate_flow_dispatched_total{pool="chat",band="standard"}"#, "0+96x30"),
                (
                    r#"wicketgate_flow_shed_total{pool="chat",band="sheddable",reason="saturated"}"#,
                    "0+50x30",
                ),
                (r#"wicketgate_flow_dispatched_total{pool="chat",band="sheddable"}"#, "0+50x30"),
            ],
        },
    },
    Alert {
        name: "WicketgateObjectivesUnknown",
        severity: Severity::Warning,
        expr: "sum by (pool) (increase(wicketgate_flow_unknown_objectives_total[15m])) > 10",
        hold: "15m",
        summary: "{{ $labels.pool }}: {{ $value | humanize }} requests in a quarter of an hour named an objective that is not there",
        means: "They were served with the usual priority, so whoever sends them does not get what it asks for.",
        look: &[
            "`objectives` in the document: how each is spelt. `curl ADMIN/debug/flow`: the bands that do get requests.",
        ],
        act: &[
            "Correct the client's header `x-gateway-inference-objective`, or add the objective to the document.",
        ],
        trial: Trial {
            at: "40m",
            firing: &[(r#"wicketgate_flow_unknown_objectives_total{pool="chat"}"#, "0+2x60")],
            labels: &[("pool", "chat")],
            quiet: &[(r#"wicketgate_flow_unknown_objectives_total{pool="chat"}"#, "5x60")],
        },
    },
    Alert {
        name: "WicketgateRateLimitRefusesMost",
        severity: Severity::Warning,
        expr: "sum by (rule) (rate(wicketgate_rate_limit_refusals_total[10m])) \
               > scalar(sum(rate(wicketgate_requests_total[10m])))",
        hold: "30m",
        summary: "rule {{ $labels.rule }} refuses {{ $value | humanize }} requests a second, more than are served at all",
        means: "For half an hour a rule of `rateLimits` has refused more requests than the gateway served: a client that does not heed \
                `Retry-After`, or a limit that is far from what is needed.",
        look: &[
            "`curl ADMIN/debug/limits`: the fullest buckets of the rule, so whose it is.",
            "Dashboard *Flow control and limits*, panel *Tokens reserved and used*: estimates that are far off reach a limit early.",
        ],
        act: &[
            "One client: have it heed `Retry-After`, or give it an override. All of them: raise the amount, or try the new one with `shadow: true`.",
        ],
        trial: Trial {
            at: "60m",
            firing: &[
                (
                    r#"wicketgate_rate_limit_refusals_total{rule="fair",kind="requests"}"#,
                    "0+600x90",
                ),
                (r#"wicketgate_requests_total{pool="chat",outcome="ok"}"#, "0+60x90"),
            ],
            labels: &[("rule", "fair")],
            quiet: &[
                (r#"wicketgate_rate_limit_refusals_total{rule="fair",kind="requests"}"#, "0+30x90"),
                (r#"wicketgate_requests_total{pool="chat",outcome="ok"}"#, "0+60x90"),
            ],
        },
    },
];

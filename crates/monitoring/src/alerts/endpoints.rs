//! Endpoints fail, vanish or fall silent.

use super::{Alert, Severity, Trial};

const ONE: &[(&str, &str)] = &[("endpoint", "10.0.0.1:8000"), ("pool", "chat")];

pub(super) static ALERTS: &[Alert] = &[
    Alert {
        name: "WicketgatePoolWithoutEndpoint",
        severity: Severity::Critical,
        expr: "max by (pool) (wicketgate_pool_endpoints{state=\"ready\"}) == 0 and sum by (pool) (wicketgate_pool_endpoints) > 0",
        hold: "2m",
        summary: "{{ $labels.pool }} has no endpoint that may get requests",
        means: "Every endpoint of the pool is ejected, asleep, draining or silent. Requests get 503, or go to endpoints of which nothing fresh is \
                known. Two minutes are longer than a restart of one engine takes to be noticed and shorter than anyone's patience.",
        look: &[
            "`curl ADMIN/debug/endpoints` or dashboard *Endpoint*: which state, and the age of the last scrape.",
            "Kubernetes: `kubectl get pods` of the pool; a node or GPU that is gone; an image that does not start.",
        ],
        act: &[
            "`ejected`: the engines fail; read their logs. `stale`: their metrics port is not reachable (NetworkPolicy, path).",
            "Send the model's traffic elsewhere (a rewrite to another pool) until they are back.",
        ],
        trial: Trial {
            at: "10m",
            firing: &[
                (r#"wicketgate_pool_endpoints{pool="chat",state="ready"}"#, "0x20"),
                (r#"wicketgate_pool_endpoints{pool="chat",state="ejected"}"#, "2x20"),
            ],
            labels: &[("pool", "chat")],
            quiet: &[
                (r#"wicketgate_pool_endpoints{pool="chat",state="ready"}"#, "1x20"),
                (r#"wicketgate_pool_endpoints{pool="chat",state="ejected"}"#, "1x20"),
            ],
        },
    },
    Alert {
        name: "WicketgateEndpointsStale",
        severity: Severity::Warning,
        expr: "sum by (pool) (wicketgate_pool_endpoints{state=\"stale\"}) / (sum by (pool) (wicketgate_pool_endpoints) > 0) > 0.25",
        hold: "10m",
        summary: "{{ $labels.pool }}: {{ $value | humanizePercentage }} of endpoints say nothing fresh",
        means: "More than a quarter of a pool's endpoints have not been scraped in their time (five seconds by default). The gateway goes on by its own \
                account of what it sent there, which is good but knows nothing of others' load.",
        look: &[
            "Dashboard *Endpoint*, panel *Failed scrapes*: `timeout` is an engine too busy to answer, `connect` and `status` a wrong address or path.",
            "The gateway's own CPU: a process without time scrapes late.",
        ],
        act: &[
            "Correct `metricsPath`; open the port; give the gateway CPU.",
            "Engines that answer late at full load: raise `scrape.timeout` and `scrape.staleAfter`.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[
                (r#"wicketgate_pool_endpoints{pool="chat",state="ready"}"#, "2x30"),
                (r#"wicketgate_pool_endpoints{pool="chat",state="stale"}"#, "2x30"),
            ],
            labels: &[("pool", "chat")],
            quiet: &[
                (r#"wicketgate_pool_endpoints{pool="chat",state="ready"}"#, "9x30"),
                (r#"wicketgate_pool_endpoints{pool="chat",state="stale"}"#, "1x30"),
            ],
        },
    },
    Alert {
        name: "WicketgateEndpointFlaps",
        severity: Severity::Warning,
        expr: "sum by (pool, endpoint) (increase(wicketgate_endpoint_ejections_total[30m])) > 3",
        hold: "5m",
        summary: "{{ $labels.endpoint }} of {{ $labels.pool }} was taken out {{ $value | humanize }} times in half an hour",
        means: "An endpoint fails, is taken out, passes its trial and fails again. Its requests are repeated elsewhere, but each return costs some. \
                Four times in half an hour is no restart.",
        look: &[
            "The engine's log at the times of the ejections; the GPU's Xid errors in `dmesg`.",
            "Access log: `jq 'select(.endpoint==\"…\" and .status>=500)'`.",
        ],
        act: &["Take the endpoint out of the document and replace its pod or node."],
        trial: Trial {
            at: "40m",
            firing: &[(
                r#"wicketgate_endpoint_ejections_total{pool="chat",endpoint="10.0.0.1:8000"}"#,
                "0+1x50",
            )],
            labels: ONE,
            quiet: &[(
                r#"wicketgate_endpoint_ejections_total{pool="chat",endpoint="10.0.0.1:8000"}"#,
                "0x20 1x30",
            )],
        },
    },
    Alert {
        name: "WicketgateScrapesFail",
        severity: Severity::Warning,
        expr: "sum by (pool, endpoint) (rate(wicketgate_endpoint_scrape_failures_total[10m])) \
               / (sum by (pool, endpoint) (rate(wicketgate_endpoint_scrape_failures_total[10m])) \
               + sum by (pool, endpoint) (rate(wicketgate_endpoint_scrapes_total[10m])) > 0) > 0.5",
        hold: "10m",
        summary: "{{ $labels.endpoint }} of {{ $labels.pool }}: {{ $value | humanizePercentage }} of scrapes fail",
        means: "More than half of the looks at an endpoint's metrics fail. Single failures happen at full load and are forgiven.",
        look: &[
            "Dashboard *Endpoint*, panel *Failed scrapes*, by reason.",
            "`curl http://ENDPOINT/metrics` from the gateway's pod.",
        ],
        act: &["As for `WicketgateEndpointsStale`."],
        trial: Trial {
            at: "30m",
            firing: &[
                (
                    r#"wicketgate_endpoint_scrape_failures_total{pool="chat",endpoint="10.0.0.1:8000",reason="connect"}"#,
                    "0+60x40",
                ),
                (
                    r#"wicketgate_endpoint_scrapes_total{pool="chat",endpoint="10.0.0.1:8000"}"#,
                    "0+10x40",
                ),
            ],
            labels: ONE,
            quiet: &[
                (
                    r#"wicketgate_endpoint_scrape_failures_total{pool="chat",endpoint="10.0.0.1:8000",reason="connect"}"#,
                    "0+1x40",
                ),
                (
                    r#"wicketgate_endpoint_scrapes_total{pool="chat",endpoint="10.0.0.1:8000"}"#,
                    "0+60x40",
                ),
            ],
        },
    },
    Alert {
        name: "WicketgatePredictionOff",
        severity: Severity::Warning,
        expr: "pool:wicketgate_prediction_error:ratio_rate5m > 0.6 and pool:wicketgate_requests:rate5m > 0.1",
        hold: "30m",
        summary: "{{ $labels.pool }}: expected times to the first token are off by {{ $value | humanizePercentage }}",
        means: "What the picker expects and what comes differ by more than 60 % of what comes, for half an hour. Placement still works (the order of endpoints \
                matters more than the figures), but the endpoints do something that is not seen: load of others, an engine that changed, a network in between.",
        look: &[
            "`curl ADMIN/debug/endpoints`: `prediction_bias` by endpoint; one that stands out is the one to look at.",
            "Dashboard *Endpoint*: *Learned prefill speed* that moves.",
        ],
        act: &[
            "Other clients that reach the endpoints past the gateway: lead them through it. Else compare with `policy: reference` in `shadow`.",
        ],
        trial: Trial {
            at: "50m",
            firing: &[
                (r#"wicketgate_prediction_error_seconds_total{pool="chat"}"#, "0+80x60"),
                (r#"wicketgate_prediction_observed_seconds_total{pool="chat"}"#, "0+100x60"),
                (r#"wicketgate_requests_total{pool="chat",outcome="ok"}"#, "0+100x60"),
            ],
            labels: &[("pool", "chat")],
            quiet: &[
                (r#"wicketgate_prediction_error_seconds_total{pool="chat"}"#, "0+20x60"),
                (r#"wicketgate_prediction_observed_seconds_total{pool="chat"}"#, "0+100x60"),
                (r#"wicketgate_requests_total{pool="chat",outcome="ok"}"#, "0+100x60"),
            ],
        },
    },
];

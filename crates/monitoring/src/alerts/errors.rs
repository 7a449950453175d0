//! Requests fail, or are slow.

use super::{Alert, Severity, Trial};

const POOL: &[(&str, &str)] = &[("pool", "chat")];
const OK: &str = r#"wicketgate_requests_total{pool="chat",outcome="ok"}"#;
const FAILED: &str = r#"wicketgate_requests_total{pool="chat",outcome="endpoint_error"}"#;
const DISTURBED: &[&str] = &[
    "Dashboard *Pool*, panels *Outcomes* and *Status codes*: `endpoint_error` or `gateway_error`, since when.",
    "Dashboard *Endpoint*: is it one endpoint (its ejections rise, others' do not) or all of them.",
    "Access log: `jq 'select(.outcome==\"endpoint_error\")'` gives endpoint, `code` and `component` of each.",
];
const MEND: &[&str] = &[
    "One endpoint: take it out (remove it from the document, or its pod from the Service) and read its engine's log.",
    "All endpoints after a roll-out of the engine: roll back.",
    "`gateway_error` with `code: no_endpoint` or the like: see `WicketgatePoolWithoutEndpoint`.",
];

pub(super) static ALERTS: &[Alert] = &[
    Alert {
        name: "WicketgateErrorBudgetBurnFast",
        severity: Severity::Critical,
        expr: "pool:wicketgate_request_errors:ratio_rate1h > 0.0144 and pool:wicketgate_request_errors:ratio_rate5m > 0.0144",
        hold: "2m",
        summary: "{{ $labels.pool }}: {{ $value | humanizePercentage }} of requests failed in the last hour",
        means: "More than 1.44 % of a pool's requests ended in `endpoint_error` or `gateway_error` over the last hour and \
                over the last five minutes. With an objective of 99.9 % a month that burns 14.4 times the budget: 2 % of a \
                month's in one hour. The short window ends the alert soon after the trouble. For another objective multiply \
                14.4 by its error budget.",
        look: DISTURBED,
        act: MEND,
        trial: Trial {
            at: "70m",
            firing: &[(OK, "0+98x80"), (FAILED, "0+2x80")],
            labels: POOL,
            quiet: &[(OK, "0+990x80"), (FAILED, "0+10x80")],
        },
    },
    Alert {
        name: "WicketgateErrorBudgetBurnSlow",
        severity: Severity::Warning,
        expr: "pool:wicketgate_request_errors:ratio_rate6h > 0.006 and pool:wicketgate_request_errors:ratio_rate30m > 0.006",
        hold: "15m",
        summary: "{{ $labels.pool }}: {{ $value | humanizePercentage }} of requests failed in the last six hours",
        means: "More than 0.6 % failed over six hours and over the last half hour: six times the budget of 99.9 %, 5 % of a \
                month's in six hours. Nobody needs to get up, but it will not mend itself.",
        look: DISTURBED,
        act: MEND,
        trial: Trial {
            at: "380m",
            firing: &[(OK, "0+99x400"), (FAILED, "0+1x400")],
            labels: POOL,
            quiet: &[(OK, "0+995x400"), (FAILED, "0+5x400")],
        },
    },
    Alert {
        name: "WicketgateTtftHigh",
        severity: Severity::Warning,
        expr: "pool:wicketgate_request_ttft_seconds:p99_5m > 10",
        hold: "10m",
        summary: "{{ $labels.pool }}: one stream in a hundred waits {{ $value | humanizeDuration }} for its first token",
        means: "P99 of the time to the first token is above ten seconds for ten minutes. Ten seconds is where people leave; \
                set it to your own promise. A long prompt on an idle GPU takes 1 to 4 s, so this is queueing, not computing.",
        look: &[
            "Dashboard *Pool*: *Saturation* and *Waiting* up means load; flat means slow endpoints.",
            "Dashboard *Endpoint*: *Learned prefill speed* of one endpoint far below its peers (a GPU that throttles).",
            "*Prefix hits*: a drop multiplies the prompt tokens that must be computed (`WicketgatePrefixHitsFell`).",
        ],
        act: &[
            "Load: add endpoints, or shed less important traffic by priority.",
            "One slow endpoint: drain it and look at its GPU's clocks and temperature.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[
                (r#"wicketgate_request_ttft_seconds_bucket{pool="chat",le="10"}"#, "0+90x30"),
                (r#"wicketgate_request_ttft_seconds_bucket{pool="chat",le="20"}"#, "0+100x30"),
                (r#"wicketgate_request_ttft_seconds_bucket{pool="chat",le="+Inf"}"#, "0+100x30"),
            ],
            labels: POOL,
            quiet: &[
                (r#"wicketgate_request_ttft_seconds_bucket{pool="chat",le="10"}"#, "0+100x30"),
                (r#"wicketgate_request_ttft_seconds_bucket{pool="chat",le="20"}"#, "0+100x30"),
                (r#"wicketgate_request_ttft_seconds_bucket{pool="chat",le="+Inf"}"#, "0+100x30"),
            ],
        },
    },
    Alert {
        name: "WicketgateRetriesHigh",
        severity: Severity::Warning,
        expr: "pool:wicketgate_retries:ratio_rate5m > 0.1",
        hold: "10m",
        summary: "{{ $labels.pool }}: {{ $value | humanizePercentage }} of requests needed a second endpoint",
        means: "One request in ten was sent to a second endpoint before its first byte. Clients see nothing yet, but the retry \
                budget (20 % of what is in flight) is half used, and what it no longer covers fails.",
        look: &[
            "Dashboard *Pool*, panel *Retries*: `connect` is the network or a dead process, `unavailable` an engine that refuses, \
             `closed_reused` an engine that closes idle connections sooner than the gateway expects.",
            "Dashboard *Endpoint*: *Ejections* shows which.",
        ],
        act: &[
            "`closed_reused`: raise the engine's keep-alive above `timeouts` of the document.",
            "`connect`: the endpoint's address or NetworkPolicy; `unavailable`: its queue limit is below what it is sent.",
        ],
        trial: Trial {
            at: "20m",
            firing: &[
                (OK, "0+100x30"),
                (r#"wicketgate_retries_total{pool="chat",reason="connect"}"#, "0+20x30"),
            ],
            labels: POOL,
            quiet: &[
                (OK, "0+100x30"),
                (r#"wicketgate_retries_total{pool="chat",reason="connect"}"#, "0+5x30"),
            ],
        },
    },
    Alert {
        name: "WicketgatePrefixHitsFell",
        severity: Severity::Warning,
        expr: "pool:wicketgate_prefix_blocks:hit_ratio_rate5m < 0.5 * (pool:wicketgate_prefix_blocks:hit_ratio_rate5m offset 1d > 0.2) \
               and pool:wicketgate_requests:rate5m > 0.1",
        hold: "30m",
        summary: "{{ $labels.pool }}: prefix hits fell to {{ $value | humanizePercentage }}, less than half of yesterday's",
        means: "The share of prompt blocks that the chosen endpoint holds is less than half of what it was a day ago, where it was above \
                20 %. Each lost hit is a block that a GPU computes again. Mostly someone edited a prompt template near its beginning \
                (a date, a user's name), or the engines were restarted with prefix caching off.",
        look: &[
            "Dashboard *Pool*, panel *Prefix hits*: a step is a change, a slope is growth past the caches.",
            "`wicketgate_prefix_tokens_found_total` against `…_believed_total`: found far below believed means that engines evict or do not cache.",
        ],
        act: &[
            "Move what changes from request to request to the end of the prompt.",
            "Check the engines' flags: vLLM `--enable-prefix-caching`, SGLang without `--disable-radix-cache`.",
        ],
        trial: Trial {
            at: "1500m",
            firing: &[
                (r#"wicketgate_prefix_blocks_looked_up_total{pool="chat"}"#, "0+100x1600"),
                (
                    r#"wicketgate_prefix_blocks_matched_total{pool="chat"}"#,
                    "0+80x1400 112010+10x200",
                ),
                (OK, "0+100x1600"),
            ],
            labels: POOL,
            quiet: &[
                (r#"wicketgate_prefix_blocks_looked_up_total{pool="chat"}"#, "0+100x1600"),
                (
                    r#"wicketgate_prefix_blocks_matched_total{pool="chat"}"#,
                    "0+80x1400 112050+50x200",
                ),
                (OK, "0+100x1600"),
            ],
        },
    },
    Alert {
        name: "WicketgatePrefixRegression",
        severity: Severity::Warning,
        expr: "max by (pool) (wicketgate_prefix_regressions_open) > 0",
        hold: "15m",
        summary: "{{ $labels.pool }}: prompts of {{ $value }} templates share less of their beginnings than they did",
        means: "An edit put something that changes (a date, a name) early into a prompt template, so what stands behind it is computed again for \
                each request. Answers come later and GPUs do more for the same.",
        look: &[
            "`curl ADMIN/debug/prefixes`: which template, at which block its prompts part, and what it costs an hour.",
            "Dashboard *Pool*, panels *Computed again* and *Prefix hits*, for since when.",
        ],
        act: &[
            "Ask whoever changed that prompt to move what changes behind what does not.",
            "If the new prompt is meant, nothing: the regression closes when it has become the usual.",
        ],
        trial: Trial {
            at: "30m",
            firing: &[(r#"wicketgate_prefix_regressions_open{pool="chat"}"#, "0x5 1x40")],
            labels: POOL,
            quiet: &[(r#"wicketgate_prefix_regressions_open{pool="chat"}"#, "1x10 0x40")],
        },
    },
    Alert {
        name: "WicketgateCanaryTakenBack",
        severity: Severity::Warning,
        expr: "max by (rewrite, rule, target) (wicketgate_rewrite_rolled_back) == 1",
        hold: "0m",
        summary: "{{ $labels.target }} of {{ $labels.rewrite }} did worse than its stable target and gets no traffic any more",
        means: "A guarded rollout was taken back by itself. Users are served by the other targets; the rollout stands still until a person says \
                otherwise.",
        look: &[
            "`wicketgate rollout status`: the reason, with the numbers on both sides.",
            "Dashboard *Canaries and mirrors*: *Errors* and *P95 time to first token* of both targets at that time.",
        ],
        act: &[
            "Find out what is wrong with the target, then `wicketgate rollout resume`, or take it out of the document.",
        ],
        trial: Trial {
            at: "5m",
            firing: &[(
                r#"wicketgate_rewrite_rolled_back{rewrite="chat",rule="0",target="v2"}"#,
                "0x2 1x20",
            )],
            labels: &[("rewrite", "chat"), ("rule", "0"), ("target", "v2")],
            quiet: &[(
                r#"wicketgate_rewrite_rolled_back{rewrite="chat",rule="0",target="v2"}"#,
                "1x2 0x20",
            )],
        },
    },
];

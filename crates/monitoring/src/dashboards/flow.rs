//! Requests that wait for a full pool, and those that are turned away.

use super::{Dashboard, Kind, OF_POOL, Query, Row, Unit, panel, query};

pub(super) static FLOW: Dashboard = Dashboard {
    uid: "wicketgate-flow",
    title: "Wicketgate: flow control and limits",
    about: "Bands and their queues: who waits, how long, and who is turned away. Below, the rate limits.",
    variables: &[OF_POOL],
    rows: &[
        Row {
            title: "Queues",
            panels: &[
                panel("Requests that wait", Kind::Stack, Unit::Count, "By band.", WAITING),
                panel(
                    "Work that waits",
                    Kind::Stack,
                    Unit::Count,
                    "Tokens by band: prompts as far as no cache holds them, and what is expected of answers.",
                    TOKENS,
                ),
                panel(
                    "Let go",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "By band, those that found room at once included.",
                    DISPATCHED,
                ),
                panel(
                    "Saturation",
                    Kind::Lines,
                    Unit::Share,
                    "At a band's ceiling its requests wait.",
                    SATURATION,
                ),
                panel(
                    "Wait, median",
                    Kind::Lines,
                    Unit::Seconds,
                    "Of requests that were let go; zero for those that found room at once.",
                    MEDIAN,
                ),
                panel(
                    "Wait, P95",
                    Kind::Lines,
                    Unit::Seconds,
                    "Of requests that were let go; zero for those that found room at once.",
                    P95,
                ),
            ],
        },
        Row {
            title: "Turned away",
            panels: &[
                panel(
                    "Shed by band",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Refused on arrival or given up in the queue. Lower bands go first.",
                    SHED_BY_BAND,
                ),
                panel(
                    "Shed by reason",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "saturated: the band does not wait; band_full: as much waits as may; ttl_expired: it waited too long; \
                     evicted: it made room; deadline: its first token would have come too late.",
                    SHED_BY_REASON,
                ),
                panel(
                    "Objectives that are not there",
                    Kind::Lines,
                    Unit::RequestsPerSecond,
                    "Requests that named one and were served without: a client's header is misspelt, or the document lacks it.",
                    UNKNOWN,
                ),
                panel(
                    "429 by reason",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "All of them, with or without flow control; endpoint: an engine's own refusal.",
                    REJECTED,
                ),
            ],
        },
        Row {
            title: "Rate limits",
            panels: &[
                panel(
                    "Refused by rule",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "By what there was too much of.",
                    LIMITED,
                ),
                panel(
                    "Shadow rules",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "What rules in shadow mode would refuse if they were in force.",
                    SHADOW,
                ),
                panel(
                    "Tokens reserved and used",
                    Kind::Lines,
                    Unit::TokensPerSecond,
                    "Of requests that ended. Far apart: the estimates are off, and limits are reached early or late.",
                    SETTLED,
                ),
                panel(
                    "Buckets",
                    Kind::Lines,
                    Unit::Count,
                    "Tenants, keys, models that a rule remembers.",
                    BUCKETS,
                ),
            ],
        },
    ],
};

const WAITING: &[Query] =
    &[query(r#"sum by (band) (wicketgate_flow_queue_requests{pool=~"$pool"})"#, "{{band}}")];
const TOKENS: &[Query] =
    &[query(r#"sum by (band) (wicketgate_flow_queue_tokens{pool=~"$pool"})"#, "{{band}}")];
const DISPATCHED: &[Query] = &[query(
    r#"sum by (band) (rate(wicketgate_flow_dispatched_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{band}}",
)];
const MEDIAN: &[Query] = &[query(
    r#"histogram_quantile(0.5, sum by (band, le) (rate(wicketgate_flow_queue_duration_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
    "{{band}}",
)];
const P95: &[Query] = &[query(
    r#"histogram_quantile(0.95, sum by (band, le) (rate(wicketgate_flow_queue_duration_seconds_bucket{pool=~"$pool"}[$__rate_interval])))"#,
    "{{band}}",
)];
const SHED_BY_BAND: &[Query] = &[query(
    r#"sum by (band) (rate(wicketgate_flow_shed_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{band}}",
)];
const SHED_BY_REASON: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_flow_shed_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{reason}}",
)];
const UNKNOWN: &[Query] = &[query(
    r#"sum by (pool) (rate(wicketgate_flow_unknown_objectives_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{pool}}",
)];
const REJECTED: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_requests_rejected_total{pool=~"$pool"}[$__rate_interval]))"#,
    "{{reason}}",
)];
const SATURATION: &[Query] =
    &[query(r#"max by (pool) (wicketgate_pool_saturation_ratio{pool=~"$pool"})"#, "{{pool}}")];
const LIMITED: &[Query] = &[query(
    "sum by (rule, kind) (rate(wicketgate_rate_limit_refusals_total[$__rate_interval]))",
    "{{rule}}, {{kind}}",
)];
const SHADOW: &[Query] = &[query(
    "sum by (rule, kind) (rate(wicketgate_rate_limit_shadow_refusals_total[$__rate_interval]))",
    "{{rule}}, {{kind}}",
)];
const SETTLED: &[Query] = &[
    query(
        "sum by (rule) (rate(wicketgate_rate_limit_reserved_tokens_total[$__rate_interval]))",
        "{{rule}}, reserved",
    ),
    query(
        "sum by (rule) (rate(wicketgate_rate_limit_settled_tokens_total[$__rate_interval]))",
        "{{rule}}, used",
    ),
];
const BUCKETS: &[Query] = &[query("max by (rule) (wicketgate_rate_limit_buckets)", "{{rule}}")];

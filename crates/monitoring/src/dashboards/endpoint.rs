//! Endpoints side by side.

use super::{Dashboard, Kind, OF_POOL, Query, Row, Unit, Variable, panel, query};

pub(super) static ENDPOINT: Dashboard = Dashboard {
    uid: "wicketgate-endpoint",
    title: "Wicketgate: endpoint",
    about: "Endpoints side by side: the one that stands out is the one to look at.",
    variables: &[
        OF_POOL,
        Variable { name: "endpoint", of: r#"wicketgate_endpoint_up{pool=~"$pool"}"# },
    ],
    rows: &[
        Row {
            title: "Load",
            panels: &[
                panel("KV cache in use", Kind::Lines, Unit::Share, "As last scraped.", KV),
                panel(
                    "Waiting",
                    Kind::Lines,
                    Unit::Count,
                    "Requests that wait in the engine.",
                    WAITING,
                ),
                panel(
                    "Running",
                    Kind::Lines,
                    Unit::Count,
                    "Requests in the engine's batch.",
                    RUNNING,
                ),
                panel(
                    "In flight",
                    Kind::Lines,
                    Unit::Count,
                    "Placed by this gateway and not finished.",
                    IN_FLIGHT,
                ),
                panel(
                    "Prompt tokens on their way",
                    Kind::Lines,
                    Unit::Count,
                    "Sent and not yet answered by a first token.",
                    PREFILL,
                ),
                panel(
                    "Saturation",
                    Kind::Lines,
                    Unit::Share,
                    "By the measures that decide whether the pool is full.",
                    SATURATION,
                ),
                panel(
                    "Picks",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Requests placed there.",
                    PICKS,
                ),
                panel(
                    "Adapters resident",
                    Kind::Lines,
                    Unit::Count,
                    "LoRA adapters believed to be loaded; no data without LoRA.",
                    ADAPTERS,
                ),
            ],
        },
        Row {
            title: "What was learned",
            panels: &[
                panel(
                    "Learned prefill speed",
                    Kind::Lines,
                    Unit::TokensPerSecond,
                    "Prompt tokens a second. Equal GPUs lie together; one that falls is throttled or shared.",
                    SPEED,
                ),
                panel(
                    "Learned step",
                    Kind::Lines,
                    Unit::Seconds,
                    "One step of an empty batch.",
                    STEP,
                ),
            ],
        },
        Row {
            title: "Health",
            panels: &[
                panel("Up", Kind::Lines, Unit::Count, "1: may get requests.", UP),
                panel(
                    "Age of signals",
                    Kind::Lines,
                    Unit::Seconds,
                    "The oldest of the chosen endpoints, by signal.",
                    AGE,
                ),
                panel(
                    "Ejections",
                    Kind::Lines,
                    Unit::PerSecond,
                    "Taken out because it failed.",
                    EJECTIONS,
                ),
                panel("Failed scrapes", Kind::Lines, Unit::PerSecond, "By reason.", FAILURES),
            ],
        },
    ],
};

const KV: &[Query] = &[query(
    r#"max by (endpoint) (wicketgate_endpoint_kv_usage_ratio{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const WAITING: &[Query] = &[query(
    r#"max by (endpoint) (wicketgate_endpoint_waiting_requests{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const RUNNING: &[Query] = &[query(
    r#"max by (endpoint) (wicketgate_endpoint_running_requests{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const IN_FLIGHT: &[Query] = &[query(
    r#"sum by (endpoint) (wicketgate_endpoint_in_flight_requests{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const PREFILL: &[Query] = &[query(
    r#"sum by (endpoint) (wicketgate_endpoint_prefill_tokens{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const SATURATION: &[Query] = &[query(
    r#"max by (endpoint) (wicketgate_endpoint_saturation_ratio{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const PICKS: &[Query] = &[query(
    r#"sum by (endpoint) (rate(wicketgate_endpoint_picks_total{pool=~"$pool",endpoint=~"$endpoint"}[$__rate_interval]))"#,
    "{{endpoint}}",
)];
const ADAPTERS: &[Query] = &[query(
    r#"max by (endpoint) (wicketgate_endpoint_resident_adapters{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const SPEED: &[Query] = &[query(
    r#"avg by (endpoint) (wicketgate_endpoint_prefill_tokens_per_second{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const STEP: &[Query] = &[query(
    r#"avg by (endpoint) (wicketgate_endpoint_step_seconds{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const UP: &[Query] = &[query(
    r#"min by (endpoint) (wicketgate_endpoint_up{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{endpoint}}",
)];
const AGE: &[Query] = &[query(
    r#"max by (signal) (wicketgate_endpoint_signal_age_seconds{pool=~"$pool",endpoint=~"$endpoint"})"#,
    "{{signal}}",
)];
const EJECTIONS: &[Query] = &[query(
    r#"sum by (endpoint) (rate(wicketgate_endpoint_ejections_total{pool=~"$pool",endpoint=~"$endpoint"}[$__rate_interval]))"#,
    "{{endpoint}}",
)];
const FAILURES: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_endpoint_scrape_failures_total{pool=~"$pool",endpoint=~"$endpoint"}[$__rate_interval]))"#,
    "{{reason}}",
)];

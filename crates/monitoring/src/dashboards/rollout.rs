//! Aliases, canaries and mirrors.

use super::{Dashboard, Kind, Query, Row, Unit, Variable, panel, query};

pub(super) static ROLLOUT: Dashboard = Dashboard {
    uid: "wicketgate-rollout",
    title: "Wicketgate: canaries and mirrors",
    about: "The targets of a rewrite side by side: what each gets, and how it does.",
    variables: &[Variable { name: "rewrite", of: "wicketgate_rewrite_share_ratio" }],
    rows: &[
        Row {
            title: "Split",
            panels: &[
                panel(
                    "Share of each target",
                    Kind::Lines,
                    Unit::Share,
                    "As the document, an operator or a roll-back has it now.",
                    SHARE,
                ),
                panel(
                    "Decisions",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Requests that were given each target.",
                    DECISIONS,
                ),
            ],
        },
        Row {
            title: "How targets do",
            panels: &[
                panel(
                    "Errors",
                    Kind::Lines,
                    Unit::Share,
                    "Requests that an endpoint or the gateway failed. What a client did wrong is none.",
                    ERRORS,
                ),
                panel("P95 time to first token", Kind::Lines, Unit::Seconds, "Streams only.", TTFT),
                panel(
                    "Taken back",
                    Kind::Lines,
                    Unit::Count,
                    "1 while a target's traffic is taken away.",
                    ROLLED_BACK,
                ),
                panel("Roll-backs", Kind::Stack, Unit::PerSecond, "By what for.", ROLLBACKS),
            ],
        },
        Row {
            title: "Mirrors",
            panels: &[panel(
                "Copies",
                Kind::Stack,
                Unit::RequestsPerSecond,
                "What became of them; no client sees any.",
                MIRRORED,
            )],
        },
    ],
};

const SHARE: &[Query] = &[query(
    r#"max by (rewrite, target) (wicketgate_rewrite_share_ratio{rewrite=~"$rewrite"})"#,
    "{{rewrite}}: {{target}}",
)];
const DECISIONS: &[Query] = &[query(
    r#"sum by (rewrite, target) (rate(wicketgate_rewrite_decisions_total{rewrite=~"$rewrite"}[$__rate_interval]))"#,
    "{{rewrite}}: {{target}}",
)];
const ERRORS: &[Query] = &[query(
    r#"sum by (rewrite, target) (rate(wicketgate_rewrite_requests_total{rewrite=~"$rewrite",outcome=~"endpoint_error|gateway_error"}[$__rate_interval])) / (sum by (rewrite, target) (rate(wicketgate_rewrite_requests_total{rewrite=~"$rewrite"}[$__rate_interval])) > 0)"#,
    "{{rewrite}}: {{target}}",
)];
const TTFT: &[Query] = &[query(
    r#"histogram_quantile(0.95, sum by (rewrite, target, le) (rate(wicketgate_rewrite_ttft_seconds_bucket{rewrite=~"$rewrite"}[$__rate_interval])))"#,
    "{{rewrite}}: {{target}}",
)];
const ROLLED_BACK: &[Query] = &[query(
    r#"max by (rewrite, target) (wicketgate_rewrite_rolled_back{rewrite=~"$rewrite"})"#,
    "{{rewrite}}: {{target}}",
)];
const ROLLBACKS: &[Query] = &[query(
    r#"sum by (target, reason) (rate(wicketgate_rewrite_rollbacks_total{rewrite=~"$rewrite"}[$__rate_interval]))"#,
    "{{target}}, {{reason}}",
)];
const MIRRORED: &[Query] = &[query(
    r#"sum by (target, outcome) (rate(wicketgate_rewrite_mirrored_total{rewrite=~"$rewrite"}[$__rate_interval]))"#,
    "{{target}}, {{outcome}}",
)];

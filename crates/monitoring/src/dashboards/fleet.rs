//! Several clusters behind one address, as the routers of the global tier see them.

use super::{Dashboard, Kind, Query, Row, Unit, Variable, panel, query};

pub(super) static FLEET: Dashboard = Dashboard {
    uid: "wicketgate-fleet",
    title: "Wicketgate: fleet of clusters",
    about: "Members side by side: who reports, who gets requests and why, what is held back and what it costs.",
    variables: &[Variable { name: "member", of: "wicketgate_fleet_member_state" }],
    rows: &[
        Row {
            title: "Now",
            panels: &[
                panel(
                    "Request rate",
                    Kind::Number,
                    Unit::RequestsPerSecond,
                    "Requests that finish at all routers, over five minutes.",
                    NOW_RATE,
                ),
                panel(
                    "Errors",
                    Kind::Number,
                    Unit::Share,
                    "Requests that a member or a router failed, over five minutes.",
                    NOW_ERRORS,
                ),
                panel(
                    "Turned away",
                    Kind::Number,
                    Unit::Share,
                    "Requests that got no room in any member, over five minutes.",
                    NOW_SHED,
                ),
                panel(
                    "P99 time to first token",
                    Kind::Number,
                    Unit::Seconds,
                    "Over five minutes, at the router where it is longest.",
                    NOW_TTFT,
                ),
                panel(
                    "P99 duration",
                    Kind::Number,
                    Unit::Seconds,
                    "Over five minutes, at the router where it is longest.",
                    NOW_DURATION,
                ),
                panel(
                    "Headroom",
                    Kind::Number,
                    Unit::Share,
                    "Of what the members can hold at once, the room that is left; by the router that sees least.",
                    NOW_HEADROOM,
                ),
            ],
        },
        Row {
            title: "Members",
            panels: &[
                panel(
                    "Members by state",
                    Kind::Stack,
                    Unit::Count,
                    "As the router sees them that sees most of them so.",
                    STATES,
                ),
                panel(
                    "Age of heartbeats",
                    Kind::Lines,
                    Unit::Seconds,
                    "Suspect from 6 s on, dead from 10 s on, unless the document says otherwise.",
                    AGE,
                ),
                panel(
                    "What may be used",
                    Kind::Lines,
                    Unit::Share,
                    "Less than all while a member comes back.",
                    RAMP,
                ),
                panel(
                    "Round trip",
                    Kind::Lines,
                    Unit::Seconds,
                    "From the router that is farthest.",
                    ROUND_TRIP,
                ),
                panel(
                    "Frozen",
                    Kind::Lines,
                    Unit::Count,
                    "1: more than half of the members fell silent at once, and the router holds on to what it knew.",
                    FROZEN,
                ),
                panel(
                    "Changes of state",
                    Kind::Stack,
                    Unit::PerSecond,
                    "By the state that was entered. One that comes and goes stands out.",
                    TRANSITIONS,
                ),
            ],
        },
        Row {
            title: "Requests",
            panels: &[
                panel(
                    "Requests by member",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Attempts, second ones included.",
                    BY_MEMBER,
                ),
                panel(
                    "Requests by reason",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "Why a member got them. local: of the router's region; spill: the region had no room; failover: another one failed.",
                    BY_REASON,
                ),
                panel(
                    "Tokens",
                    Kind::Lines,
                    Unit::TokensPerSecond,
                    "Prompts (cached tokens included) and answers of finished requests.",
                    TOKENS,
                ),
                panel("In flight", Kind::Lines, Unit::Count, "Sent and not finished.", IN_FLIGHT),
                panel(
                    "Failovers",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "That the member failed or refused, and another one got.",
                    FAILOVERS,
                ),
                panel(
                    "Refused",
                    Kind::Stack,
                    Unit::RequestsPerSecond,
                    "No member could get them, by reason.",
                    REFUSED,
                ),
                panel(
                    "Heartbeats",
                    Kind::Stack,
                    Unit::PerSecond,
                    "By what became of them.",
                    HEARTBEATS,
                ),
            ],
        },
        Row {
            title: "Limits and money",
            panels: &[
                panel(
                    "Leases",
                    Kind::Lines,
                    Unit::Count,
                    "Buckets of global limits of which a router holds a part.",
                    LEASES,
                ),
                panel(
                    "Rounds of leases",
                    Kind::Stack,
                    Unit::PerSecond,
                    "By how the store answered.",
                    ROUNDS,
                ),
                panel(
                    "Spending an hour",
                    Kind::Lines,
                    Unit::Count,
                    "By estimate, in the unit of the prices; zero where none are given.",
                    SPENDING,
                ),
                panel(
                    "Saving an hour",
                    Kind::Lines,
                    Unit::Count,
                    "Against sending each request to whoever would have answered soonest.",
                    SAVING,
                ),
            ],
        },
    ],
};

const NOW_RATE: &[Query] = &[query("sum(wicketgate_fleet_requests_per_second)", "requests")];
const NOW_ERRORS: &[Query] = &[query(
    "sum(wicketgate_fleet_error_ratio * wicketgate_fleet_requests_per_second) / (sum(wicketgate_fleet_requests_per_second) > 0)",
    "errors",
)];
const NOW_SHED: &[Query] = &[query(
    "sum(wicketgate_fleet_shed_ratio * wicketgate_fleet_requests_per_second) / (sum(wicketgate_fleet_requests_per_second) > 0)",
    "turned away",
)];
const NOW_TTFT: &[Query] = &[query("max(wicketgate_fleet_ttft_p99_seconds)", "P99")];
const NOW_DURATION: &[Query] =
    &[query("max(wicketgate_fleet_request_duration_p99_seconds)", "P99")];
const NOW_HEADROOM: &[Query] = &[query(
    "min(wicketgate_fleet_headroom_requests / (wicketgate_fleet_capacity_requests > 0))",
    "headroom",
)];
const TOKENS: &[Query] = &[
    query("sum(wicketgate_fleet_input_tokens_per_second)", "input"),
    query("sum(wicketgate_fleet_output_tokens_per_second)", "output"),
];
const STATES: &[Query] = &[query(
    r#"max by (state) (sum by (instance, state) (wicketgate_fleet_member_state{member=~"$member"}))"#,
    "{{state}}",
)];
const AGE: &[Query] = &[query(
    r#"max by (member) (wicketgate_fleet_heartbeat_age_seconds{member=~"$member"})"#,
    "{{member}}",
)];
const RAMP: &[Query] =
    &[query(r#"min by (member) (wicketgate_fleet_ramp_ratio{member=~"$member"})"#, "{{member}}")];
const ROUND_TRIP: &[Query] = &[query(
    r#"max by (member) (wicketgate_fleet_round_trip_seconds{member=~"$member"})"#,
    "{{member}}",
)];
const FROZEN: &[Query] = &[query("max by (instance) (wicketgate_fleet_frozen)", "{{instance}}")];
const TRANSITIONS: &[Query] = &[query(
    r#"sum by (state) (rate(wicketgate_fleet_member_transitions_total{member=~"$member"}[$__rate_interval]))"#,
    "{{state}}",
)];
const BY_MEMBER: &[Query] = &[query(
    r#"sum by (member) (rate(wicketgate_fleet_decisions_total{member=~"$member"}[$__rate_interval]))"#,
    "{{member}}",
)];
const BY_REASON: &[Query] = &[query(
    r#"sum by (reason) (rate(wicketgate_fleet_decisions_total{member=~"$member"}[$__rate_interval]))"#,
    "{{reason}}",
)];
const IN_FLIGHT: &[Query] =
    &[query(r#"sum by (member) (wicketgate_fleet_in_flight{member=~"$member"})"#, "{{member}}")];
const FAILOVERS: &[Query] = &[query(
    r#"sum by (member) (rate(wicketgate_fleet_failovers_total{member=~"$member"}[$__rate_interval]))"#,
    "{{member}}",
)];
const REFUSED: &[Query] = &[query(
    "sum by (reason) (rate(wicketgate_fleet_refusals_total[$__rate_interval]))",
    "{{reason}}",
)];
const HEARTBEATS: &[Query] = &[query(
    r#"sum by (outcome) (rate(wicketgate_fleet_heartbeats_total{member=~"$member"}[$__rate_interval]))"#,
    "{{outcome}}",
)];
const LEASES: &[Query] = &[query("sum by (instance) (wicketgate_fleet_leases)", "{{instance}}")];
const ROUNDS: &[Query] = &[query(
    "sum by (outcome) (rate(wicketgate_fleet_lease_rounds_total[$__rate_interval]))",
    "{{outcome}}",
)];
const SPENDING: &[Query] = &[query(
    r#"3600 * sum by (member) (deriv(wicketgate_fleet_spent_money{member=~"$member"}[5m]))"#,
    "{{member}}",
)];
const SAVING: &[Query] = &[query(
    r#"3600 * sum by (member) (deriv(wicketgate_fleet_saved_money{member=~"$member"}[5m]))"#,
    "{{member}}",
)];

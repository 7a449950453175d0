//! Metrics of the global tier: of a router, of its members, and of a member that reports.

use super::metric;
use super::{
    FLEET_CAPACITY_REQUESTS, FLEET_DURATION_P99, FLEET_ERROR_RATIO, FLEET_HEADROOM_REQUESTS,
    FLEET_INPUT_TOKEN_RATE, FLEET_OUTPUT_TOKEN_RATE, FLEET_REQUEST_RATE, FLEET_SHED_RATIO,
    FLEET_TTFT_P99, Kind, Metric, Unit,
};

/// Of a router.
pub static FLEET: &[&Metric] = &[
    &FLEET_REFUSALS,
    &FLEET_FROZEN,
    &FLEET_HEARTBEAT_CONNECTIONS,
    &FLEET_LEASE_ROUNDS,
    &FLEET_LEASES,
    &FLEET_LEASE_SHARE,
    &FLEET_STORE_UP,
    &FLEET_REQUEST_RATE,
    &FLEET_ERROR_RATIO,
    &FLEET_SHED_RATIO,
    &FLEET_TTFT_P99,
    &FLEET_DURATION_P99,
    &FLEET_INPUT_TOKEN_RATE,
    &FLEET_OUTPUT_TOKEN_RATE,
    &FLEET_CAPACITY_REQUESTS,
    &FLEET_HEADROOM_REQUESTS,
];

/// Of each member.
pub static FLEET_MEMBER: &[&Metric] = &[
    &FLEET_MEMBER_STATE,
    &FLEET_MEMBER_TRANSITIONS,
    &FLEET_DECISIONS,
    &FLEET_FAILOVERS,
    &FLEET_HEARTBEATS,
    &FLEET_HEARTBEAT_AGE,
    &FLEET_ROUND_TRIP,
    &FLEET_RAMP,
    &FLEET_IN_FLIGHT,
    &FLEET_SPENT,
    &FLEET_SAVED,
];

/// Of a gateway that reports to routers.
pub static MEMBERSHIP: &[&Metric] = &[&GLOBAL_REPORTS, &GLOBAL_ROUTERS, &GLOBAL_REPORT_BYTES];

pub static FLEET_REFUSALS: Metric = metric(
    "wicketgate_fleet_refusals_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Requests that no member could get, by reason.",
);
pub static FLEET_FROZEN: Metric = metric(
    "wicketgate_fleet_frozen",
    Kind::Gauge,
    Unit::Count,
    &[],
    "1 while more than half of the members are silent at once: the router holds on to what it knew.",
);
pub static FLEET_HEARTBEAT_CONNECTIONS: Metric = metric(
    "wicketgate_fleet_heartbeat_connections",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Connections on which members report.",
);
pub static FLEET_LEASE_ROUNDS: Metric = metric(
    "wicketgate_fleet_lease_rounds_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Rounds in which parts of global limits were asked for, by how the store answered.",
);
pub static FLEET_LEASES: Metric = metric(
    "wicketgate_fleet_leases",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Buckets of which this router holds a lease.",
);
pub static FLEET_LEASE_SHARE: Metric = metric(
    "wicketgate_fleet_lease_share_ratio",
    Kind::Gauge,
    Unit::Ratio,
    &[],
    "Mean part of the limit over these leases.",
);
pub static FLEET_STORE_UP: Metric = metric(
    "wicketgate_fleet_store_up",
    Kind::Gauge,
    Unit::Count,
    &[],
    "1 while the store of global limits answers, 0 while it does not; absent without a store.",
);
pub static FLEET_MEMBER_STATE: Metric = metric(
    "wicketgate_fleet_member_state",
    Kind::Gauge,
    Unit::Count,
    &["member", "state"],
    "1 for the state in which the member is.",
);
pub static FLEET_MEMBER_TRANSITIONS: Metric = metric(
    "wicketgate_fleet_member_transitions_total",
    Kind::Counter,
    Unit::Count,
    &["member", "state"],
    "Times that the member came into the state.",
);
pub static FLEET_DECISIONS: Metric = metric(
    "wicketgate_fleet_decisions_total",
    Kind::Counter,
    Unit::Count,
    &["member", "reason"],
    "Requests sent to the member, by why it got them.",
);
pub static FLEET_FAILOVERS: Metric = metric(
    "wicketgate_fleet_failovers_total",
    Kind::Counter,
    Unit::Count,
    &["member"],
    "Requests that the member failed or refused and that another one got.",
);
pub static FLEET_HEARTBEATS: Metric = metric(
    "wicketgate_fleet_heartbeats_total",
    Kind::Counter,
    Unit::Count,
    &["member", "outcome"],
    "Heartbeats of the member, by what became of them.",
);
pub static FLEET_HEARTBEAT_AGE: Metric = metric(
    "wicketgate_fleet_heartbeat_age_seconds",
    Kind::Gauge,
    Unit::Seconds,
    &["member"],
    "Age of what the member last said; absent before it has said anything.",
);
pub static FLEET_ROUND_TRIP: Metric = metric(
    "wicketgate_fleet_round_trip_seconds",
    Kind::Gauge,
    Unit::Seconds,
    &["member"],
    "Round trip to the member.",
);
pub static FLEET_RAMP: Metric = metric(
    "wicketgate_fleet_ramp_ratio",
    Kind::Gauge,
    Unit::Ratio,
    &["member"],
    "What may be used of the member: 1 is all, less after it has come back.",
);
pub static FLEET_IN_FLIGHT: Metric = metric(
    "wicketgate_fleet_in_flight",
    Kind::Gauge,
    Unit::Count,
    &["member"],
    "Requests of this router at the member.",
);
pub static FLEET_SPENT: Metric = metric(
    "wicketgate_fleet_spent_money",
    Kind::Gauge,
    Unit::Count,
    &["member"],
    "Money that requests have cost at the member by estimate, since the start, in the unit of the prices.",
);
pub static FLEET_SAVED: Metric = metric(
    "wicketgate_fleet_saved_money",
    Kind::Gauge,
    Unit::Count,
    &["member"],
    "The same at the members that would have answered soonest, less what was spent.",
);
pub static GLOBAL_REPORTS: Metric = metric(
    "wicketgate_global_reports_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Reports of this gateway to routers of the global tier.",
);
pub static GLOBAL_ROUTERS: Metric = metric(
    "wicketgate_global_routers",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Routers of the global tier that take this gateway's reports now.",
);
pub static GLOBAL_REPORT_BYTES: Metric = metric(
    "wicketgate_global_report_bytes",
    Kind::Gauge,
    Unit::Bytes,
    &[],
    "Size of the last report.",
);

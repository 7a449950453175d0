//! Which metric has which closed label.

use super::{
    Abort, AuthMeans, AuthRefusal, Band, CloudWatchFailure, Code, Connect, Direction,
    EndpointState, Heartbeat, ImmediateCode, JwksFetch, Label, Lease, LimitKind, MemberReason,
    MemberState, MirrorOutcome, NoMember, Outcome, PeerLoss, Refusal, Rejection, Reload, Report,
    Retry, Rollback, Route, ScrapeAnomaly, ScrapeFailure, Shadow, Signal, StreamEnd, TraceEnd,
    Work,
};
use crate::names::{self, Metric};

fn values<L: Label>() -> Vec<&'static str> {
    L::ALL.iter().map(|value| value.as_str()).collect()
}

/// For the reference page: each metric with a closed label, that label and its values.
pub fn closed_sets() -> Vec<(&'static Metric, &'static str, Vec<&'static str>)> {
    vec![
        (&names::CONFIG_RELOADS, "outcome", values::<Reload>()),
        (&names::REQUESTS_REFUSED, "reason", values::<Refusal>()),
        (&names::TRACES, "outcome", values::<TraceEnd>()),
        (&names::PEER_DATAGRAMS, "direction", values::<Direction>()),
        (&names::PEER_BYTES, "direction", values::<Direction>()),
        (&names::PEER_PREFIX_BLOCKS, "direction", values::<Direction>()),
        (&names::PEER_LOSSES, "reason", values::<PeerLoss>()),
        (&names::UPSTREAM_CONNECTS, "outcome", values::<Connect>()),
        (&names::EXTPROC_STREAMS, "end", values::<StreamEnd>()),
        (&names::EXTPROC_IMMEDIATE_RESPONSES, "code", values::<ImmediateCode>()),
        (&names::AUTH_ACCEPTED, "kind", values::<AuthMeans>()),
        (&names::AUTH_REFUSED, "reason", values::<AuthRefusal>()),
        (&names::AUTH_RELOADS, "outcome", values::<Reload>()),
        (&names::AUTH_JWKS_FETCHES, "outcome", values::<JwksFetch>()),
        (&names::CLOUD_WATCH_FAILURES, "reason", values::<CloudWatchFailure>()),
        (&names::CLUSTER_ENDPOINTS, "state", values::<EndpointState>()),
        (&names::REQUESTS, "route", values::<Route>()),
        (&names::REQUESTS, "outcome", values::<Outcome>()),
        (&names::RESPONSES, "code", values::<Code>()),
        (&names::RETRIES, "reason", values::<Retry>()),
        (&names::REQUESTS_REJECTED, "reason", values::<Rejection>()),
        (&names::STREAMS_ABORTED, "reason", values::<Abort>()),
        (&names::FLOW_QUEUE_REQUESTS, "band", values::<Band>()),
        (&names::FLOW_QUEUE_TOKENS, "band", values::<Band>()),
        (&names::FLOW_QUEUE_BYTES, "band", values::<Band>()),
        (&names::FLOW_QUEUE_DURATION, "band", values::<Band>()),
        (&names::FLOW_DISPATCHED, "band", values::<Band>()),
        (&names::FLOW_DISPATCHED_BEYOND, "band", values::<Band>()),
        (&names::FLOW_SHED, "band", values::<Band>()),
        (&names::FLOW_SHED, "reason", values::<Rejection>()),
        (&names::SHADOW_DECISIONS, "outcome", values::<Shadow>()),
        (&names::GPU_SECONDS, "kind", values::<Work>()),
        (&names::TENANT_GPU_SECONDS, "kind", values::<Work>()),
        (&names::POOL_ENDPOINTS, "state", values::<EndpointState>()),
        (&names::ENDPOINT_SIGNAL_AGE, "signal", values::<Signal>()),
        (&names::ENDPOINT_SCRAPE_FAILURES, "reason", values::<ScrapeFailure>()),
        (&names::ENDPOINT_SCRAPE_ANOMALIES, "kind", values::<ScrapeAnomaly>()),
        (&names::RATE_LIMIT_REFUSALS, "kind", values::<LimitKind>()),
        (&names::RATE_LIMIT_SHADOW_REFUSALS, "kind", values::<LimitKind>()),
        (&names::FLEET_REFUSALS, "reason", values::<NoMember>()),
        (&names::FLEET_LEASE_ROUNDS, "outcome", values::<Lease>()),
        (&names::FLEET_MEMBER_STATE, "state", values::<MemberState>()),
        (&names::FLEET_MEMBER_TRANSITIONS, "state", values::<MemberState>()),
        (&names::FLEET_DECISIONS, "reason", values::<MemberReason>()),
        (&names::FLEET_HEARTBEATS, "outcome", values::<Heartbeat>()),
        (&names::GLOBAL_REPORTS, "outcome", values::<Report>()),
        (&names::REWRITE_REQUESTS, "outcome", values::<Outcome>()),
        (&names::REWRITE_ROLLBACKS, "reason", values::<Rollback>()),
        (&names::REWRITE_MIRRORED, "outcome", values::<MirrorOutcome>()),
    ]
}

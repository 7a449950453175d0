//! What belongs to the global tier.

use super::cell::{By, Counter, Gauge, Reading};
use super::labels::{Heartbeat, Lease, MemberReason, MemberState, NoMember, Report};
use super::series::Owned;
use crate::names;

/// Of a router. Help texts of the fields: [`names::FLEET`].
#[derive(Debug, Default)]
pub struct FleetMetrics {
    pub refusals: By<NoMember, Counter>,
    pub frozen: Gauge,
    pub heartbeat_connections: Gauge,
    pub lease_rounds: By<Lease, Counter>,
    pub leases: Gauge,
    pub lease_share: Reading,
    pub store_up: Reading,
    pub pace: FleetPace,
}

/// What the last five minutes were like, and what room the members say they have.
#[derive(Debug, Default)]
pub struct FleetPace {
    pub request_rate: Reading,
    pub error_ratio: Reading,
    pub shed_ratio: Reading,
    pub ttft_p99: Reading,
    pub duration_p99: Reading,
    pub input_token_rate: Reading,
    pub output_token_rate: Reading,
    pub capacity_requests: Reading,
    pub headroom_requests: Reading,
}

/// Of a member. Help texts of the fields: [`names::FLEET_MEMBER`].
#[derive(Debug, Default)]
pub struct FleetMemberMetrics {
    pub state: By<MemberState, Gauge>,
    pub transitions: By<MemberState, Counter>,
    pub decisions: By<MemberReason, Counter>,
    pub failovers: Counter,
    pub heartbeats: By<Heartbeat, Counter>,
    pub heartbeat_age: Reading,
    pub round_trip: Reading,
    pub ramp: Reading,
    pub in_flight: Gauge,
    pub spent: Reading,
    pub saved: Reading,
}

/// Of a gateway that reports to routers. Help texts of the fields: [`names::MEMBERSHIP`].
#[derive(Debug, Default)]
pub struct MembershipMetrics {
    pub reports: By<Report, Counter>,
    pub routers: Gauge,
    pub report_bytes: Gauge,
}

impl FleetMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by(&names::FLEET_REFUSALS, &self.refusals);
        out.gauge(&names::FLEET_FROZEN, &self.frozen);
        out.gauge(&names::FLEET_HEARTBEAT_CONNECTIONS, &self.heartbeat_connections);
        out.counters_by(&names::FLEET_LEASE_ROUNDS, &self.lease_rounds);
        out.gauge(&names::FLEET_LEASES, &self.leases);
        out.reading(&names::FLEET_LEASE_SHARE, &self.lease_share);
        out.reading(&names::FLEET_STORE_UP, &self.store_up);
        for (metric, reading) in self.pace.readings() {
            out.reading(metric, reading);
        }
    }
}

impl FleetPace {
    /// In page order.
    pub fn readings(&self) -> [(&'static names::Metric, &Reading); 9] {
        [
            (&names::FLEET_REQUEST_RATE, &self.request_rate),
            (&names::FLEET_ERROR_RATIO, &self.error_ratio),
            (&names::FLEET_SHED_RATIO, &self.shed_ratio),
            (&names::FLEET_TTFT_P99, &self.ttft_p99),
            (&names::FLEET_DURATION_P99, &self.duration_p99),
            (&names::FLEET_INPUT_TOKEN_RATE, &self.input_token_rate),
            (&names::FLEET_OUTPUT_TOKEN_RATE, &self.output_token_rate),
            (&names::FLEET_CAPACITY_REQUESTS, &self.capacity_requests),
            (&names::FLEET_HEADROOM_REQUESTS, &self.headroom_requests),
        ]
    }
}

impl FleetMemberMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.gauges_by(&names::FLEET_MEMBER_STATE, &self.state);
        out.counters_by(&names::FLEET_MEMBER_TRANSITIONS, &self.transitions);
        out.counters_by(&names::FLEET_DECISIONS, &self.decisions);
        out.counter(&names::FLEET_FAILOVERS, &self.failovers);
        out.counters_by(&names::FLEET_HEARTBEATS, &self.heartbeats);
        out.reading(&names::FLEET_HEARTBEAT_AGE, &self.heartbeat_age);
        out.reading(&names::FLEET_ROUND_TRIP, &self.round_trip);
        out.reading(&names::FLEET_RAMP, &self.ramp);
        out.gauge(&names::FLEET_IN_FLIGHT, &self.in_flight);
        out.reading(&names::FLEET_SPENT, &self.spent);
        out.reading(&names::FLEET_SAVED, &self.saved);
    }
}

impl MembershipMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by(&names::GLOBAL_REPORTS, &self.reports);
        out.gauge(&names::GLOBAL_ROUTERS, &self.routers);
        out.gauge(&names::GLOBAL_REPORT_BYTES, &self.report_bytes);
    }
}

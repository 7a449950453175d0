//! What a router of the global tier sends: its own pace, and each member with the dimension `Member`.

use std::time::SystemTime;

use telemetry::metrics::FleetMetrics;

use crate::report::{COUNT, Group, PER_SECOND, Report, known, percent};

/// The dimension that tells members apart.
const MEMBER: &str = "Member";

/// What is no gauge of the router. Rates are per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetLevels {
    pub refusals: f64,
    pub limit_refusals: f64,
    pub failovers: f64,
    pub members: Vec<MemberLevels>,
}

/// One member, as the router sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberLevels {
    pub name: String,
    /// It gets requests.
    pub is_ready: bool,
    /// Seconds; `None`: it has never reported.
    pub heartbeat_age: Option<f64>,
    pub round_trip: f64,
    /// What may be used of it, 0 to 1.
    pub ramp: f64,
    pub in_flight: f64,
    /// Share of its capacity in use, as it reports; `None` where it has told of none.
    pub load: Option<f64>,
    pub requests: f64,
    pub failovers: f64,
    /// Money; `None` without prices.
    pub spent: Option<f64>,
}

const SECONDS_PER_HOUR: f64 = 3600.0;

impl Report {
    pub fn of_fleet(fleet: &FleetMetrics, levels: &FleetLevels, time: SystemTime) -> Self {
        let ready = levels.members.iter().filter(|member| member.is_ready).count() as f64;
        let spent = levels.members.iter().filter_map(|member| member.spent);
        let spent = spent.fold(None, |sum: Option<f64>, spent| Some(sum.unwrap_or(0.0) + spent));
        let pace = &fleet.pace;
        let values = [
            ("FleetReadyMembers", COUNT, Some(ready)),
            ("FleetUnreadyMembers", COUNT, Some(levels.members.len() as f64 - ready)),
            ("FleetFrozen", COUNT, Some(fleet.frozen.get() as f64)),
            ("FleetRequestRate", PER_SECOND, pace.request_rate.get()),
            ("FleetErrorRate", "Percent", percent(pace.error_ratio.get())),
            ("FleetShedRate", "Percent", percent(pace.shed_ratio.get())),
            ("FleetTimeToFirstTokenP99", "Seconds", pace.ttft_p99.get()),
            ("FleetDurationP99", "Seconds", pace.duration_p99.get()),
            ("FleetInputTokenRate", PER_SECOND, pace.input_token_rate.get()),
            ("FleetOutputTokenRate", PER_SECOND, pace.output_token_rate.get()),
            ("FleetCapacityRequests", COUNT, pace.capacity_requests.get()),
            ("FleetHeadroomRequests", COUNT, pace.headroom_requests.get()),
            ("FleetFailoverRate", PER_SECOND, Some(levels.failovers)),
            ("FleetRefusalRate", PER_SECOND, Some(levels.refusals)),
            ("FleetLimitRefusalRate", PER_SECOND, Some(levels.limit_refusals)),
            ("FleetSpendPerHour", "None", spent.map(|spent| spent * SECONDS_PER_HOUR)),
        ];
        let mut groups = vec![Group { dimension: None, values: known(values) }];
        groups.extend(levels.members.iter().map(of_member));
        Self { time, groups }
    }
}

fn of_member(member: &MemberLevels) -> Group {
    let values = [
        ("MemberReady", COUNT, Some(f64::from(u8::from(member.is_ready)))),
        ("MemberHeartbeatAge", "Seconds", member.heartbeat_age),
        ("MemberRoundTrip", "Seconds", Some(member.round_trip)),
        ("MemberRamp", "Percent", percent(Some(member.ramp))),
        ("MemberInFlight", COUNT, Some(member.in_flight)),
        ("MemberLoad", "Percent", percent(member.load)),
        ("MemberRequestRate", PER_SECOND, Some(member.requests)),
        ("MemberFailoverRate", PER_SECOND, Some(member.failovers)),
        ("MemberSpendPerHour", "None", member.spent.map(|spent| spent * SECONDS_PER_HOUR)),
    ];
    Group { dimension: Some((MEMBER, member.name.clone())), values: known(values) }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn member(name: &str, is_ready: bool, spent: Option<f64>) -> MemberLevels {
        MemberLevels {
            name: name.to_owned(),
            is_ready,
            ramp: 0.5,
            spent,
            ..MemberLevels::default()
        }
    }

    #[test]
    fn a_router_sends_its_pace_once_and_each_member_under_its_name() {
        let fleet = FleetMetrics::default();
        fleet.pace.shed_ratio.set(0.25);
        let levels = FleetLevels {
            failovers: 0.5,
            members: vec![member("east", true, Some(0.001)), member("west", false, Some(0.002))],
            ..FleetLevels::default()
        };
        let report = Report::of_fleet(&fleet, &levels, UNIX_EPOCH);
        let of = |group: usize, name: &str| {
            let values = &report.groups[group].values;
            values.iter().find(|value| value.name == name).map(|value| value.value)
        };
        assert_eq!(
            (of(0, "FleetReadyMembers"), of(0, "FleetUnreadyMembers")),
            (Some(1.0), Some(1.0))
        );
        assert_eq!((of(0, "FleetShedRate"), of(0, "FleetFailoverRate")), (Some(25.0), Some(0.5)));
        let spend = of(0, "FleetSpendPerHour").unwrap();
        assert!((spend - 10.8).abs() < 1e-9, "{spend}");
        assert_eq!(report.groups[2].dimension, Some(("Member", "west".to_owned())));
        assert_eq!((of(2, "MemberReady"), of(2, "MemberRamp")), (Some(0.0), Some(50.0)));
        assert_eq!(of(1, "MemberHeartbeatAge"), None, "what is unknown is not sent");
    }

    #[test]
    fn without_prices_no_money_is_sent() {
        let levels =
            FleetLevels { members: vec![member("east", true, None)], ..Default::default() };
        let report = Report::of_fleet(&FleetMetrics::default(), &levels, UNIX_EPOCH);
        let values = report.groups.iter().flat_map(|group| &group.values);
        assert!(values.clone().all(|value| !value.name.contains("Spend")), "{report:?}");
    }
}

//! What is sent: metrics of a cluster or of a fleet, under CloudWatch's kind of names.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use telemetry::metrics::ClusterMetrics;
use telemetry::metrics::labels::{EndpointState, Label};

/// One value; what is unknown is not sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    pub name: &'static str,
    /// One of CloudWatch's units.
    pub unit: &'static str,
    pub value: f64,
}

/// The values of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub time: SystemTime,
    pub groups: Vec<Group>,
}

/// Values that have the same dimensions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Besides those of the document.
    pub dimension: Option<(&'static str, String)>,
    pub values: Vec<Value>,
}

pub(crate) const COUNT: &str = "Count";
pub(crate) const PER_SECOND: &str = "Count/Second";

impl Report {
    pub fn of(cluster: &ClusterMetrics, time: SystemTime) -> Self {
        let count = |state: EndpointState| cluster.endpoints.of(state).get() as f64;
        let all: f64 = EndpointState::ALL.iter().map(|state| count(*state)).sum();
        let ready = count(EndpointState::Ready);
        let values = [
            ("ReadyEndpoints", COUNT, Some(ready)),
            ("UnreadyEndpoints", COUNT, Some(all - ready)),
            ("KvUsage", "Percent", percent(cluster.kv_usage.get())),
            ("RequestRate", PER_SECOND, cluster.request_rate.get()),
            ("ErrorRate", "Percent", percent(cluster.error_ratio.get())),
            ("ShedRate", "Percent", percent(cluster.shed_ratio.get())),
            ("TimeToFirstTokenP99", "Seconds", cluster.ttft_p99.get()),
            ("DurationP99", "Seconds", cluster.duration_p99.get()),
            ("InputTokenRate", PER_SECOND, cluster.input_token_rate.get()),
            ("OutputTokenRate", PER_SECOND, cluster.output_token_rate.get()),
            ("CapacityRequests", COUNT, cluster.capacity_requests.get()),
            ("HeadroomRequests", COUNT, cluster.headroom_requests.get()),
            ("PrefillCapacity", PER_SECOND, cluster.prefill_capacity.get()),
            ("PrefillHeadroom", PER_SECOND, cluster.prefill_headroom.get()),
        ];
        Self { time, groups: vec![Group { dimension: None, values: known(values) }] }
    }

    pub(crate) fn unix(&self) -> Duration {
        self.time.duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

impl Group {
    /// Those of the document and its own, which goes before one of the same name.
    pub(crate) fn dimensions(&self, usual: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = usual.clone();
        all.extend(self.dimension.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        all
    }
}

/// CloudWatch refuses what is no number.
pub(crate) fn known<const N: usize>(
    values: [(&'static str, &'static str, Option<f64>); N],
) -> Vec<Value> {
    let finite = |(name, unit, value): (_, _, Option<f64>)| {
        value.filter(|value| value.is_finite()).map(|value| Value { name, unit, value })
    };
    values.into_iter().filter_map(finite).collect()
}

pub(crate) fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| share * 100.0)
}

/// Below a minute CloudWatch keeps (and bills) high resolution.
pub(crate) fn is_high_resolution(interval: Duration) -> bool {
    interval < Duration::from_secs(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_not_sent_and_shares_are_percent() {
        let cluster = ClusterMetrics::default();
        cluster.endpoints.of(EndpointState::Ready).set(3);
        cluster.endpoints.of(EndpointState::Ejected).set(1);
        cluster.kv_usage.set(0.25);
        let report = Report::of(&cluster, UNIX_EPOCH);
        let of = |name: &str| {
            report.groups[0].values.iter().find(|value| value.name == name).map(|value| value.value)
        };
        assert_eq!((of("ReadyEndpoints"), of("UnreadyEndpoints")), (Some(3.0), Some(1.0)));
        assert_eq!((of("KvUsage"), of("ErrorRate")), (Some(25.0), None));
    }
}

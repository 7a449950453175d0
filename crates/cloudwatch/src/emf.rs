//! The embedded metric format: a JSON line that says which of its members are metrics.
//!
//! Source: CloudWatch's "Specification: Embedded metric format"; at most 100 metrics in a line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use crate::report::{Report, Value, is_high_resolution};

/// Metrics in one line at most.
const METRICS_MAX: usize = 100;

/// The report as lines, each with its line end.
pub(crate) fn lines(
    report: &Report,
    namespace: &str,
    dimensions: &BTreeMap<String, String>,
    interval: Duration,
) -> String {
    let millis = u64::try_from(report.unix().as_millis()).unwrap_or(u64::MAX);
    let mut out = String::new();
    for group in &report.groups {
        let dimensions = group.dimensions(dimensions);
        for values in group.values.chunks(METRICS_MAX) {
            let line = line(values, millis, namespace, &dimensions, interval);
            out.push_str(&line.to_string());
            out.push('\n');
        }
    }
    out
}

fn line(
    values: &[Value],
    millis: u64,
    namespace: &str,
    dimensions: &BTreeMap<String, String>,
    interval: Duration,
) -> Json {
    let metric = |value: &Value| {
        let mut metric = json!({ "Name": value.name, "Unit": value.unit });
        if is_high_resolution(interval) {
            metric["StorageResolution"] = json!(1);
        }
        metric
    };
    let names: Vec<&str> = dimensions.keys().map(String::as_str).collect();
    let metrics: Vec<Json> = values.iter().map(metric).collect();
    let directive = json!({ "Namespace": namespace, "Dimensions": [names], "Metrics": metrics });
    let mut line = Map::new();
    for (name, value) in dimensions {
        line.insert(name.clone(), json!(value));
    }
    for value in values {
        line.insert(value.name.to_owned(), json!(value.value));
    }
    let about = json!({ "Timestamp": millis, "CloudWatchMetrics": [directive] });
    line.insert("_aws".to_owned(), about);
    Json::Object(line)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::Group;

    fn report() -> Report {
        let value = |name, unit, value| Value { name, unit, value };
        Report {
            time: UNIX_EPOCH + Duration::from_millis(1_789_715_103_042),
            groups: vec![Group {
                dimension: None,
                values: vec![
                    value("KvUsage", "Percent", 25.0),
                    value("ReadyEndpoints", "Count", 3.0),
                ],
            }],
        }
    }

    #[test]
    fn a_line_is_the_golden_one() {
        let dimensions = BTreeMap::from([("Cluster".to_owned(), "prod-1".to_owned())]);
        let line = lines(&report(), "Wicketgate", &dimensions, Duration::from_secs(60));
        assert_eq!(
            line,
            r#"{"Cluster":"prod-1","KvUsage":25.0,"ReadyEndpoints":3.0,"_aws":{"CloudWatchMetrics":[{"Dimensions":[["Cluster"]],"Metrics":[{"Name":"KvUsage","Unit":"Percent"},{"Name":"ReadyEndpoints","Unit":"Count"}],"Namespace":"Wicketgate"}],"Timestamp":1789715103042}}
"#
        );
    }

    #[test]
    fn below_a_minute_high_resolution_is_asked_for() {
        let line = lines(&report(), "W", &BTreeMap::new(), Duration::from_secs(10));
        assert!(
            line.contains(r#""Dimensions":[[]]"#) && line.contains(r#""StorageResolution":1"#),
            "{line}"
        );
    }

    #[test]
    fn a_hundred_metrics_are_as_many_as_a_line_holds() {
        let mut report = report();
        report.groups[0].values = vec![report.groups[0].values[0]; 101];
        let lines = lines(&report, "W", &BTreeMap::new(), Duration::from_secs(60));
        assert_eq!(lines.lines().count(), 2);
    }

    #[test]
    fn a_member_has_a_line_of_its_own_with_its_name_as_a_dimension() {
        let mut report = report();
        let mut west = report.groups[0].clone();
        west.dimension = Some(("Member", "west".to_owned()));
        report.groups.push(west);
        let usual = BTreeMap::from([("Fleet".to_owned(), "world".to_owned())]);
        let lines = lines(&report, "W", &usual, Duration::from_secs(60));
        let lines: Vec<Json> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let dimensions = |at: usize| &lines[at]["_aws"]["CloudWatchMetrics"][0]["Dimensions"][0];
        assert_eq!((dimensions(0), &lines[0]["Member"]), (&json!(["Fleet"]), &Json::Null));
        assert_eq!(
            (dimensions(1), &lines[1]["Member"]),
            (&json!(["Fleet", "Member"]), &json!("west"))
        );
    }
}

//! Bodies of `PutMetricData`: form fields, gzipped.
//!
//! Limits as of CloudWatch's API reference: 1,000 metrics and 1 MB a request, whether compressed or not.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::report::{Report, Value, is_high_resolution};

const METRICS_MAX: usize = 1000;
const BYTES_MAX: usize = 1_000_000;

/// One request's form each, not compressed yet. Values of all groups share requests.
pub(crate) fn forms(
    report: &Report,
    namespace: &str,
    dimensions: &BTreeMap<String, String>,
    interval: Duration,
) -> Vec<String> {
    let of_groups: Vec<_> =
        report.groups.iter().map(|group| group.dimensions(dimensions)).collect();
    let data: Vec<Datum<'_>> = report
        .groups
        .iter()
        .zip(&of_groups)
        .flat_map(|(group, dimensions)| group.values.iter().map(move |value| (value, dimensions)))
        .collect();
    let mut forms = Vec::new();
    let mut rest = data.as_slice();
    while !rest.is_empty() {
        let mut count = rest.len().min(METRICS_MAX);
        let write = |data| form(data, report.unix(), namespace, interval);
        let mut text = write(&rest[..count]);
        while text.len() > BYTES_MAX && count > 1 {
            count = count.div_ceil(2);
            text = write(&rest[..count]);
        }
        forms.push(text);
        rest = &rest[count..];
    }
    forms
}

/// A value and its dimensions.
type Datum<'a> = (&'a Value, &'a BTreeMap<String, String>);

fn form(data: &[Datum<'_>], time: Duration, namespace: &str, interval: Duration) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", "PutMetricData").append_pair("Version", "2010-08-01");
    form.append_pair("Namespace", namespace);
    let time = telemetry::clock::rfc3339(std::time::UNIX_EPOCH + time);
    for (index, (value, dimensions)) in data.iter().enumerate() {
        let member = format!("MetricData.member.{}", index + 1);
        let mut field = |name: &str, text: &str| {
            form.append_pair(&format!("{member}.{name}"), text);
        };
        field("MetricName", value.name);
        field("Unit", value.unit);
        field("Value", &value.value.to_string());
        field("Timestamp", &time);
        if is_high_resolution(interval) {
            field("StorageResolution", "1");
        }
        for (index, (name, value)) in dimensions.iter().enumerate() {
            let dimension = format!("Dimensions.member.{}", index + 1);
            field(&format!("{dimension}.Name"), name);
            field(&format!("{dimension}.Value"), value);
        }
    }
    form.finish()
}

pub(crate) fn gzipped(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::Group;

    fn report(count: usize) -> Report {
        let value = Value { name: "KvUsage", unit: "Percent", value: 25.5 };
        Report {
            time: UNIX_EPOCH + Duration::from_millis(1_789_715_103_042),
            groups: vec![Group { dimension: None, values: vec![value; count] }],
        }
    }

    #[test]
    fn a_form_is_the_golden_one() {
        let dimensions = BTreeMap::from([("Cluster".to_owned(), "a b".to_owned())]);
        let forms = forms(&report(1), "Wicketgate", &dimensions, Duration::from_secs(60));
        assert_eq!(
            forms,
            ["Action=PutMetricData&Version=2010-08-01&Namespace=Wicketgate\
              &MetricData.member.1.MetricName=KvUsage&MetricData.member.1.Unit=Percent\
              &MetricData.member.1.Value=25.5&MetricData.member.1.Timestamp=2026-09-18T07%3A05%3A03.042Z\
              &MetricData.member.1.Dimensions.member.1.Name=Cluster\
              &MetricData.member.1.Dimensions.member.1.Value=a+b"]
        );
    }

    #[test]
    fn no_form_passes_a_thousand_metrics_or_a_megabyte() {
        let none = BTreeMap::new();
        let counts = |forms: &[String]| -> Vec<usize> {
            forms.iter().map(|form| form.matches(".MetricName=").count()).collect()
        };
        let many = forms(&report(2500), "W", &none, Duration::from_secs(60));
        assert_eq!(counts(&many), [1000, 1000, 500]);
        let wide = (0..30).map(|index| (format!("d{index}"), "v".repeat(1000))).collect();
        let large = forms(&report(100), "W", &wide, Duration::from_secs(60));
        assert!(large.iter().all(|form| form.len() <= BYTES_MAX));
        assert_eq!(counts(&large).iter().sum::<usize>(), 100);
    }

    #[test]
    fn members_share_a_request_and_keep_their_dimension() {
        let mut report = report(1);
        for name in ["east", "west"] {
            let mut group = report.groups[0].clone();
            group.dimension = Some(("Member", name.to_owned()));
            report.groups.push(group);
        }
        let usual = BTreeMap::from([("Fleet".to_owned(), "world".to_owned())]);
        let forms = forms(&report, "W", &usual, Duration::from_secs(60));
        assert_eq!(forms.len(), 1);
        for text in [
            "MetricData.member.1.Dimensions.member.1.Name=Fleet",
            "MetricData.member.2.Dimensions.member.2.Name=Member",
            "MetricData.member.3.Dimensions.member.2.Value=west",
        ] {
            assert!(forms[0].contains(text), "{text}");
        }
        assert!(!forms[0].contains("member.1.Dimensions.member.2"));
    }
}

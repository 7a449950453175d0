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

/// One request's form, not compressed yet.
pub(crate) fn forms(
    report: &Report,
    namespace: &str,
    dimensions: &BTreeMap<String, String>,
    interval: Duration,
) -> Vec<String> {
    let mut forms = Vec::new();
    let mut rest = report.values.as_slice();
    while !rest.is_empty() {
        let mut count = rest.len().min(METRICS_MAX);
        let write = |values| form(values, report.unix(), namespace, dimensions, interval);
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

fn form(
    values: &[Value],
    time: Duration,
    namespace: &str,
    dimensions: &BTreeMap<String, String>,
    interval: Duration,
) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("Action", "PutMetricData").append_pair("Version", "2010-08-01");
    form.append_pair("Namespace", namespace);
    for (index, value) in values.iter().enumerate() {
        let member = format!("MetricData.member.{}", index + 1);
        let mut field = |name: &str, text: &str| {
            form.append_pair(&format!("{member}.{name}"), text);
        };
        field("MetricName", value.name);
        field("Unit", value.unit);
        field("Value", &value.value.to_string());
        field("Timestamp", &telemetry::clock::rfc3339(std::time::UNIX_EPOCH + time));
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

    fn report(count: usize) -> Report {
        let value = Value { name: "KvUsage", unit: "Percent", value: 25.5 };
        Report {
            time: UNIX_EPOCH + Duration::from_millis(1_789_715_103_042),
            values: vec![value; count],
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
}

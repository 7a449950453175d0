//! Files for Prometheus: rules, alerts, their tests, and how to scrape.

use std::fmt::Write;

use crate::alerts::{self, Alert};
use crate::rules;
use crate::yaml::{HEAD, quoted};

/// Where alerts lead to.
const RUNBOOK: &str = "docs/runbook.md";

pub(crate) fn recording_rules() -> String {
    let mut out = format!(
        "{HEAD}groups:\n  - name: wicketgate.rules\n    interval: {}\n    rules:\n",
        rules::INTERVAL
    );
    for rule in rules::all() {
        let (record, expr) = (quoted(&rule.record), quoted(&rule.expr));
        write!(out, "      - record: {record}\n        expr: {expr}\n").unwrap_or_default();
    }
    out
}

pub(crate) fn alert_rules() -> String {
    let mut out = format!(
        "{HEAD}groups:\n  - name: wicketgate.alerts\n    interval: {}\n    rules:\n",
        rules::INTERVAL
    );
    for alert in alerts::all() {
        let (expr, summary) = (quoted(alert.expr), quoted(alert.summary));
        let (name, hold, severity) = (alert.name, alert.hold, alert.severity.as_str());
        let url = quoted(&runbook_url(alert));
        write!(
            out,
            "      - alert: {name}\n        expr: {expr}\n        for: {hold}\n        labels:\n          \
             severity: {severity}\n        annotations:\n          summary: {summary}\n          \
             runbook_url: {url}\n"
        )
        .unwrap_or_default();
    }
    out
}

fn runbook_url(alert: &Alert) -> String {
    format!("{RUNBOOK}#{}", alert.name.to_lowercase())
}

/// For `promtool test rules`: each alert fires where it should and not where it should not.
pub(crate) fn alert_tests() -> String {
    let mut out =
        format!("{HEAD}rule_files: [rules.yaml, alerts.yaml]\nevaluation_interval: 1m\ntests:\n");
    for alert in alerts::all() {
        for (series, fires) in [(alert.trial.firing, true), (alert.trial.quiet, false)] {
            test(&mut out, alert, series, fires);
        }
    }
    out
}

fn test(out: &mut String, alert: &Alert, series: &[(&str, &str)], fires: bool) {
    let (name, at) = (alert.name, alert.trial.at);
    let what = if fires { "fires" } else { "is quiet" };
    write!(out, "  - name: {name} {what}\n    interval: 1m\n    input_series:\n")
        .unwrap_or_default();
    for (series, values) in series {
        let (series, values) = (quoted(series), quoted(values));
        write!(out, "      - series: {series}\n        values: {values}\n").unwrap_or_default();
    }
    if series.is_empty() {
        // An empty list in the same place.
        out.truncate(out.trim_end().len());
        out.push_str(" []\n");
    }
    // By the number of alerts, so that the texts need not be written twice.
    let mut labels = format!("alertname=\"{name}\",alertstate=\"firing\"");
    write!(labels, ",severity=\"{}\"", alert.severity.as_str()).unwrap_or_default();
    for (label, value) in alert.trial.labels {
        write!(labels, ",{label}=\"{value}\"").unwrap_or_default();
    }
    let expr = quoted(&format!("count(ALERTS{{{labels}}}) or vector(0)"));
    let samples = if fires { 1 } else { 0 };
    write!(
        out,
        "    promql_expr_test:\n      - expr: {expr}\n        eval_time: {at}\n        \
         exp_samples: [{{ labels: '{{}}', value: {samples} }}]\n"
    )
    .unwrap_or_default();
}

/// A whole configuration for a Prometheus beside a gateway.
pub(crate) fn scrape_config() -> String {
    format!(
        "{HEAD}\
# prometheus --config.file=deploy/prometheus/prometheus.yaml
global:
  scrape_interval: 15s
  evaluation_interval: 30s
rule_files: [rules.yaml, alerts.yaml]
scrape_configs:
  - job_name: wicketgate
    static_configs:
      # The admin address of each gateway; `admin.address` in its document, loopback unless it says otherwise.
      - targets: [\"127.0.0.1:9090\"]
    # A page of a thousand endpoints has some thirty thousand series.
    sample_limit: 200000
"
    )
}

/// For the Prometheus operator.
pub(crate) fn service_monitor() -> String {
    format!(
        "{HEAD}\
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: wicketgate
  labels:
    app.kubernetes.io/name: wicketgate
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: wicketgate
  endpoints:
    # Name of the Service's port that leads to the admin listener.
    - port: admin
      path: /metrics
      interval: 15s
      scrapeTimeout: 10s
"
    )
}

/// For Google's managed collection.
pub(crate) fn pod_monitoring() -> String {
    format!(
        "{HEAD}\
apiVersion: monitoring.googleapis.com/v1
kind: PodMonitoring
metadata:
  name: wicketgate
  labels:
    app.kubernetes.io/name: wicketgate
spec:
  selector:
    matchLabels:
      app.kubernetes.io/name: wicketgate
  endpoints:
    # Name of the container's port of the admin listener.
    - port: admin
      path: /metrics
      interval: 15s
"
    )
}

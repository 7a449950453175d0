//! All files that are made from here.

use crate::{dashboards, grafana, prometheus, runbook};

/// A file of the repository.
#[derive(Debug)]
pub struct File {
    /// Below the repository's root.
    pub path: String,
    pub text: String,
}

pub fn files() -> Vec<File> {
    let file = |path: &str, text: String| File { path: path.to_owned(), text };
    let mut files = vec![
        file("docs/runbook.md", runbook::page()),
        file("deploy/prometheus/rules.yaml", prometheus::recording_rules()),
        file("deploy/prometheus/alerts.yaml", prometheus::alert_rules()),
        file("deploy/prometheus/alerts-test.yaml", prometheus::alert_tests()),
        file("deploy/prometheus/prometheus.yaml", prometheus::scrape_config()),
        file("deploy/prometheus/service-monitor.yaml", prometheus::service_monitor()),
        file("deploy/prometheus/pod-monitoring.yaml", prometheus::pod_monitoring()),
    ];
    for dashboard in dashboards::all() {
        let path = format!("deploy/grafana/{}.json", dashboard.uid);
        files.push(file(&path, grafana::dashboard(dashboard)));
    }
    files
}

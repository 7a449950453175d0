//! Queries name metrics that exist; alerts and dashboards are whole.

use std::collections::BTreeSet;

use telemetry::names::{self, Kind};
use wicketgate_monitoring::{alerts, dashboards, files, queries, rules};

/// Every name that a page of metrics or a recording rule gives.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for metric in names::all() {
        known.insert(metric.name.to_owned());
        if let Kind::Histogram(_) = metric.kind {
            for suffix in ["_bucket", "_sum", "_count"] {
                known.insert(format!("{}{suffix}", metric.name));
            }
        }
    }
    known.extend(rules::all().into_iter().map(|rule| rule.record));
    known
}

#[test]
fn every_query_asks_for_metrics_that_exist() {
    let known = known();
    for asked in queries::all("1m") {
        let names = queries::names(&asked.expr);
        assert!(!names.is_empty(), "{}: {}", asked.whose, asked.expr);
        for name in names {
            assert!(known.contains(&name), "{}: no metric `{name}`", asked.whose);
        }
        assert!(!asked.expr.contains('$'), "{}: {}", asked.whose, asked.expr);
    }
}

#[test]
fn every_alert_says_what_it_means_where_to_look_and_what_to_do() {
    let mut seen = BTreeSet::new();
    for alert in alerts::all() {
        let name = alert.name;
        assert!(seen.insert(name), "{name} stands twice");
        assert!(name.starts_with("Wicketgate"), "{name}");
        assert!(!alert.look.is_empty() && !alert.act.is_empty(), "{name}");
        assert!(alert.means.len() > 60 && alert.means.ends_with('.'), "{name}: {}", alert.means);
        assert!(!alert.trial.quiet.is_empty(), "{name} is never seen quiet");
    }
}

#[test]
fn every_alert_leads_to_its_section_of_the_runbook() {
    let files = files();
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let (rules, runbook) =
        (text("deploy/prometheus/alerts.yaml").unwrap(), text("docs/runbook.md").unwrap());
    for alert in alerts::all() {
        let anchor = format!("docs/runbook.md#{}", alert.name.to_lowercase());
        assert!(rules.contains(&anchor), "{anchor}");
        assert!(runbook.contains(&format!("\n### {}\n", alert.name)), "{}", alert.name);
    }
}

#[test]
fn the_runbook_speaks_of_alerts_and_metrics_that_exist() {
    let known = known();
    let names: BTreeSet<&str> = alerts::all().map(|alert| alert.name).collect();
    for alert in alerts::all() {
        let lines = alert.look.iter().chain(alert.act).chain([&alert.means]);
        for line in lines {
            for word in line.split('`').skip(1).step_by(2) {
                if word.starts_with("Wicketgate") {
                    assert!(names.contains(word), "{}: no alert {word}", alert.name);
                }
                for name in queries::names(word) {
                    assert!(known.contains(&name), "{}: no metric {name}", alert.name);
                }
            }
        }
    }
}

#[test]
fn panels_have_titles_of_their_own_and_words_about_them() {
    for dashboard in dashboards::all() {
        let mut seen = BTreeSet::new();
        for panel in dashboard.rows.iter().flat_map(|row| row.panels) {
            assert!(seen.insert(panel.title), "{}: {}", dashboard.uid, panel.title);
            assert!(panel.about.ends_with('.'), "{}: {}", dashboard.uid, panel.title);
            assert!((1..=3).contains(&panel.queries.len()), "{}", panel.title);
        }
    }
}

#[test]
fn dashboards_are_json_whose_panels_do_not_overlap() {
    for file in files().iter().filter(|file| file.path.ends_with(".json")) {
        let value: serde_json::Value = serde_json::from_str(&file.text).unwrap();
        let mut taken = BTreeSet::new();
        for panel in value["panels"].as_array().unwrap() {
            let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            for x in at("x")..at("x") + at("w") {
                for y in at("y")..at("y") + at("h") {
                    assert!(x < 24 && taken.insert((x, y)), "{}: {panel}", file.path);
                }
            }
        }
    }
}

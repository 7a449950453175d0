//! Every query of dashboards, rules and alerts, as Prometheus can be asked it.

use crate::{alerts, dashboards, rules};

/// A query and where it stands.
#[derive(Debug)]
pub struct Asked {
    pub whose: String,
    pub expr: String,
    /// An alert: it finds something only while it fires. What it compares is asked for by itself.
    pub may_be_empty: bool,
}

/// All of them. `window` stands for Grafana's choice of a rate's window.
pub fn all(window: &str) -> Vec<Asked> {
    let mut asked = Vec::new();
    for dashboard in dashboards::all() {
        for panel in dashboard.rows.iter().flat_map(|row| row.panels) {
            for query in panel.queries {
                let whose = format!("{}, panel {}", dashboard.uid, panel.title);
                asked.push(one(whose, &chosen(query.expr, window)));
            }
        }
        for variable in dashboard.variables {
            let whose = format!("{}, variable {}", dashboard.uid, variable.name);
            asked.push(one(whose, &chosen(variable.of, window)));
        }
    }
    for rule in rules::all() {
        asked.push(one(format!("rule {}", rule.record), &rule.expr));
    }
    for alert in alerts::all() {
        let mut alert_query = one(format!("alert {}", alert.name), alert.expr);
        alert_query.may_be_empty = true;
        asked.push(alert_query);
        for name in names(alert.expr) {
            asked.push(one(format!("alert {}: {name}", alert.name), &name));
        }
    }
    asked
}

/// A panel's query with everything chosen.
pub fn chosen(expr: &str, window: &str) -> String {
    let choices = dashboards::all().into_iter().flat_map(|dashboard| dashboard.variables);
    choices.fold(expr.replace("$__rate_interval", window), |expr, choice| {
        expr.replace(&format!("${}", choice.name), ".*")
    })
}

fn one(whose: String, expr: &str) -> Asked {
    Asked { whose, expr: expr.to_owned(), may_be_empty: false }
}

/// Names of metrics and of recorded series in a query, each once, in order.
pub fn names(expr: &str) -> Vec<String> {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut names: Vec<String> = expr
        .split(|c: char| !of_a_name(c))
        .filter(|word| word.contains("wicketgate_"))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

//! Alerts, each with what it means, what to look at, and what to do: the runbook is made from here.

mod capacity;
mod endpoints;
mod errors;
mod fleet;
mod flow;
mod process;

/// One alert.
#[derive(Debug)]
pub struct Alert {
    /// `Wicketgate…`; also its anchor in the runbook, in lower case.
    pub name: &'static str,
    pub severity: Severity,
    pub expr: &'static str,
    /// How long it must hold.
    pub hold: &'static str,
    /// One line for a pager, with Prometheus' templates.
    pub summary: &'static str,
    /// What it means, and why the threshold is where it is.
    pub means: &'static str,
    /// Where to look, in order.
    pub look: &'static [&'static str],
    /// What to do about it.
    pub act: &'static [&'static str],
    /// Series under which it fires, and under which it does not.
    pub trial: Trial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Someone gets up.
    Critical,
    /// Someone looks within a day.
    Warning,
}

/// An alert's test: series in promtool's notation, a value a minute.
#[derive(Debug)]
pub struct Trial {
    /// When it is looked at, as a duration from the start.
    pub at: &'static str,
    pub firing: &'static [(&'static str, &'static str)],
    /// Labels of the alert that fires, beside its severity.
    pub labels: &'static [(&'static str, &'static str)],
    pub quiet: &'static [(&'static str, &'static str)],
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// All alerts by theme: title of the runbook's chapter, alerts.
pub fn chapters() -> [(&'static str, &'static [Alert]); 6] {
    [
        ("Requests fail", errors::ALERTS),
        ("Capacity", capacity::ALERTS),
        ("Queues and limits", flow::ALERTS),
        ("Endpoints", endpoints::ALERTS),
        ("Clusters behind the global tier", fleet::ALERTS),
        ("The gateway itself", process::ALERTS),
    ]
}

pub fn all() -> impl Iterator<Item = &'static Alert> {
    chapters().into_iter().flat_map(|(_, alerts)| alerts)
}

//! The results for people: a table for each scenario, and what must hold.

use comfy_table::{CellAlignment, Table, presets};
use lab::globe::{Outcome, Scenario};

use super::Line;
use crate::bench::text;

pub(super) const LEGEND: &str = "
Clusters are modelled: places and a queue for each model, no prefix cache (docs/global-benchmarks.md). Times to the first token with all
attempts; `before`, `while it lasts` and `after` are P99, `after` from a minute after its end. `goodput`: answered within 2 s, of all. `dead for`: the longest
that a dead cluster got requests. `moves`: share of the requests that changes its cluster within 30 s, at the end. Rivals have our states of
members, probes and retries: what is compared is the choice.";

/// A column: its title, and what it shows.
pub(super) type Column = (&'static str, fn(&Outcome) -> String);

pub(super) const COLUMNS: [Column; 11] = [
    ("TTFT P50", |of| text::time(of.ttft_p50_ms)),
    ("before", |of| text::time(of.before_p99_ms)),
    ("while it lasts", |of| text::time(of.during_p99_ms)),
    ("after", |of| text::time(of.after_p99_ms)),
    ("goodput", |of| format!("{:.3}", of.goodput)),
    ("failed", |of| format!("{:.2} %", of.failed * 100.0)),
    ("dead for", |of| format!("{:.1} s", of.to_dead_seconds)),
    ("attempts", |of| format!("{:.3}", of.attempts)),
    ("recovery", |of| format!("{:.0} s", of.recovery_seconds)),
    ("moves", |of| format!("{:.1} %", of.oscillation * 100.0)),
    ("price", |of| format!("{:.2}", of.price)),
];

pub(super) fn section(scenario: &Scenario, lines: &[Line]) -> String {
    let mut header = vec!["policy".to_owned(), "seed".to_owned()];
    header.extend(COLUMNS.map(|(title, _)| title.to_owned()));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(&header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for line in lines {
        let mut row = vec![line.policy.to_owned(), line.seed.to_string()];
        row.extend(COLUMNS.map(|(_, shown)| shown(&line.outcome)));
        table.add_row(row);
    }
    let mut out = format!("\n{}: {}\n{table}", scenario.name, scenario.about);
    for line in lines {
        for verdict in line.verdicts.iter().filter(|of| !of.holds) {
            out.push_str(&format!(
                "\n  BROKEN with seed {}: {} is {}, at most {}",
                line.seed, verdict.what, verdict.value, verdict.bound
            ));
        }
        if line.outcome.limit_most > 0.0 {
            let most = line.outcome.limit_most;
            out.push_str(&format!(
                "\n  seed {}: {most:.3} of a limit in a minute at most",
                line.seed
            ));
        }
    }
    out
}

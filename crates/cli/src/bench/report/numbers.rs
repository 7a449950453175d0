//! The table of a scenario: every policy under every load.

use std::fmt::Write;

use lab::RunResult;
use lab::statistics::Word;

use super::super::measured::{Cell, GOODPUT, ITL, Measure, P50, P95, P99, Role, Section, TOKENS};
use super::super::{table, text};
use super::html::escape;

/// Means that stand in the table.
const COLUMNS: [&Measure; 6] = [&P50, &P95, &P99, &ITL, &GOODPUT, &TOKENS];
/// Changes that stand in the table.
const CHANGES: [&Measure; 4] = [&P95, &P99, &GOODPUT, &TOKENS];
/// A column that only some scenarios fill; `None`: it did not come to that.
type Extra = (&'static str, fn(&RunResult) -> Option<f64>);

const EXTRAS: [Extra; 3] = [
    ("adapter loads", |result| (result.adapter_loads > 0).then_some(result.adapter_loads as f64)),
    ("recovery, s", |result| result.recovery_seconds),
    ("to a returning endpoint, %", |result| result.returning_share.map(|share| share * 100.0)),
];
/// Columns beside these: policy, share of the bound, spread, failed.
const OTHERS: usize = 4;

pub(super) fn table(section: &Section) -> String {
    let has_changes =
        section.cells.iter().any(|cell| cell.ours().is_some() && cell.policies.len() > 1);
    let mut out =
        "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr><th scope=\"col\">policy</th>"
            .to_owned();
    for measure in COLUMNS {
        let _ = write!(out, "<th scope=\"col\">{}</th>", measure.title);
    }
    out.push_str(
        "<th scope=\"col\">of bound</th><th scope=\"col\">spread</th><th scope=\"col\">failed</th>",
    );
    let extras = extras(section);
    for (title, _) in &extras {
        let _ = write!(out, "<th scope=\"col\">{title}</th>");
    }
    if has_changes {
        for measure in CHANGES {
            let title = measure.title.trim_start_matches("TTFT ");
            let _ = write!(out, "<th scope=\"col\" class=\"change\">change of {title}</th>");
        }
    }
    out.push_str("</tr></thead>\n");
    let width = COLUMNS.len() + OTHERS + extras.len() + if has_changes { CHANGES.len() } else { 0 };
    for cell in &section.cells {
        out.push_str(&rows(cell, &extras, has_changes, width));
    }
    out + "</table>\n</div>\n"
}

fn rows(cell: &Cell, extras: &[Extra], has_changes: bool, width: usize) -> String {
    let bound = match cell.hit_bound {
        bound if bound > 0.001 => {
            format!(", an endless cache would find {:.0} % of the prompt tokens", 100.0 * bound)
        }
        _ => String::new(),
    };
    let mut out = format!(
        "<tbody>\n<tr class=\"load\"><th scope=\"rowgroup\" colspan=\"{width}\"><span>load {}: {:.1} requests/s{bound}</span></th></tr>\n",
        cell.load, cell.rate,
    );
    for (at, policy) in cell.policies.iter().enumerate() {
        let class = match Role::of(*policy) {
            Role::Ours => " class=\"ours\"",
            Role::Oracle => " class=\"oracle\"",
            Role::Variant | Role::Rival => "",
        };
        let _ = write!(out, "<tr{class}><th scope=\"row\">{}</th>", escape(policy.name()));
        for measure in COLUMNS {
            let class = if is_best(cell, at, measure) { " class=\"best\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", value(cell, at, measure));
        }
        let _ = write!(
            out,
            "<td>{}</td><td>{:.2}</td><td>{}</td>",
            table::of_bound(cell, at),
            cell.mean_of(at, |result| result.max_over_mean_load),
            failed(cell.failed_share(at)),
        );
        for (_, of) in extras {
            let _ = write!(out, "<td>{}</td>", extra(cell, at, *of));
        }
        if has_changes {
            for measure in CHANGES {
                out.push_str(&change(cell, at, measure));
            }
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody>\n"
}

/// Those that any run of the section fills.
fn extras(section: &Section) -> Vec<Extra> {
    let runs = || section.cells.iter().flat_map(|cell| cell.results.iter().flatten());
    EXTRAS.into_iter().filter(|(_, of)| runs().any(|run| of(run).is_some())).collect()
}

/// The mean over the seeds that have it, and how many have not.
fn extra(cell: &Cell, policy: usize, of: fn(&RunResult) -> Option<f64>) -> String {
    let runs = cell.results.get(policy).map(Vec::as_slice).unwrap_or_default();
    let known: Vec<f64> = runs.iter().filter_map(of).collect();
    match (known.len(), runs.len() - known.len()) {
        (0, _) => "-".to_owned(),
        (_, 0) => format!("{:.1}", text::mean(&known)),
        (_, without) => format!("{:.1}, not in {without} seeds", text::mean(&known)),
    }
}

fn value(cell: &Cell, policy: usize, measure: &Measure) -> String {
    let mean = cell.mean(policy, measure);
    match measure.title {
        "goodput" => format!("{mean:.3}"),
        "tok/s" => format!("{mean:.0}"),
        _ if measure.is_known(mean) => text::time(mean),
        _ => "-".to_owned(),
    }
}

/// Among those that one could use.
fn is_best(cell: &Cell, policy: usize, measure: &Measure) -> bool {
    let is_usable = |at: &usize| Role::of(cell.policies[*at]) != Role::Oracle;
    let mean = cell.mean(policy, measure);
    is_usable(&policy)
        && measure.is_known(mean)
        && (0..cell.policies.len()).filter(is_usable).all(|at| {
            let other = cell.mean(at, measure);
            !measure.is_known(other) || !measure.is_better(other, mean)
        })
}

pub(super) fn failed(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        ..0.000_95 => format!("{:.2} %", share * 100.0),
        ..0.0995 => format!("{:.1} %", share * 100.0),
        _ => format!("{:.0} %", share * 100.0),
    }
}

/// From this policy to ours; empty in our own row.
fn change(cell: &Cell, policy: usize, measure: &Measure) -> String {
    let Some(ours) = cell.ours().filter(|ours| *ours != policy) else {
        return "<td></td>".to_owned();
    };
    let Some(change) = cell.change(ours, policy, measure) else { return "<td>-</td>".to_owned() };
    let paired = cell.paired(ours, policy, measure);
    let word = paired.and_then(|paired| paired.word(measure.margin));
    let class = match word {
        Some(Word::Parity | Word::Equal) => "",
        _ if measure.harm(change.mean) > 0.0 => " class=\"worse\"",
        _ => " class=\"better\"",
    };
    format!("<td{class}>{}</td>", worded(change, word))
}

/// `−97 % (−98 to −96) clear`.
pub(super) fn worded(change: lab::Change, word: Option<Word>) -> String {
    let shown = text::change(Some(change)).replace('-', "\u{2212}");
    let (mean, interval) = shown.split_once(" (").unwrap_or((&shown, ""));
    let interval = if interval.is_empty() { String::new() } else { format!("({interval}") };
    let word = word.map_or("", Word::as_str);
    format!("{mean} <small>{interval} {word}</small>")
}

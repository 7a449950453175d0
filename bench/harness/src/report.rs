//! The table for people and the lines for machines.

use std::fmt::Write;

use serde_json::json;

use crate::metric::{self, AtMost, Metric};
use crate::results::Results;
use crate::subject::{DIRECT, NGINX};

/// A table in Markdown: rows with values, one column per subject, `n` for times nginx.
pub fn table(results: &Results, subjects: &[&'static str]) -> String {
    let mut rows = vec![
        std::iter::once(String::new()).chain(subjects.iter().map(ToString::to_string)).collect(),
    ];
    for metric in measured(results, subjects) {
        let cells = subjects.iter().map(|subject| cell(results, metric, subject));
        rows.push(std::iter::once(metric.label.to_owned()).chain(cells).collect::<Vec<_>>());
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=subjects.len()).map(width).collect();
    let mut out = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (text, width) in row.iter().zip(&widths) {
            let _ = write!(out, "| {text:width$} ");
        }
        out.push_str("|\n");
        if number == 0 {
            for width in &widths {
                let _ = write!(out, "|{}", "-".repeat(width + 2));
            }
            out.push_str("|\n");
        }
    }
    out
}

fn measured<'a>(results: &Results, subjects: &[&'static str]) -> impl Iterator<Item = &'a Metric> {
    metric::ALL
        .iter()
        .copied()
        .filter(|metric| subjects.iter().any(|subject| !results.rounds(metric, subject).is_empty()))
}

fn cell(results: &Results, metric: &Metric, subject: &'static str) -> String {
    let Some(median) = results.median(metric, subject) else { return String::new() };
    let value = format!("{median:.*}", metric.decimals);
    if subject == NGINX || subject == DIRECT || metric.key == metric::FAILED.key {
        return value;
    }
    match results.times_nginx(metric, subject) {
        Some(ratio) if ratio.abs() >= 10.0 => format!("{value} {ratio:.0}n"),
        Some(ratio) => format!("{value} {ratio:.2}n"),
        None => value,
    }
}

/// One line for each limit that was measured.
pub fn verdicts(results: &Results) -> String {
    let mut out = String::new();
    for metric in metric::ALL {
        for limit in metric.limits {
            let Some((seen, met)) = results.judge(metric, limit.subject, limit.at_most) else {
                continue;
            };
            let (limit_text, seen_text) = match limit.at_most {
                AtMost::TimesNginx(factor) => (format!("{factor}n"), format!("{seen:.2}n")),
                AtMost::Value(value) => {
                    (value.to_string(), format!("{seen:.*}", metric.decimals.max(1)))
                }
            };
            let verdict = if met { "met   " } else { "MISSED" };
            let _ = writeln!(
                out,
                "{verdict} {}: {} {seen_text}, at most {limit_text}",
                metric.label, limit.subject
            );
        }
    }
    out
}

/// A JSON object a line: one for each row and column.
pub fn lines(results: &Results, subjects: &[&'static str]) -> String {
    let mut out = String::new();
    for metric in measured(results, subjects) {
        for &subject in subjects {
            let rounds = results.rounds(metric, subject);
            if rounds.is_empty() {
                continue;
            }
            let limit = metric.limits.iter().find(|limit| limit.subject == subject);
            let (times, value) = match limit.map(|limit| limit.at_most) {
                Some(AtMost::TimesNginx(factor)) => (Some(factor), None),
                Some(AtMost::Value(value)) => (None, Some(value)),
                None => (None, None),
            };
            let met = limit.and_then(|limit| results.judge(metric, subject, limit.at_most));
            let line = json!({
                "metric": metric.key,
                "label": metric.label,
                "subject": subject,
                "median": results.median(metric, subject),
                "times_nginx": results.times_nginx(metric, subject),
                "rounds": rounds,
                "limit_times_nginx": times,
                "limit": value,
                "met": met.map(|(_, met)| met),
            });
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{CPU_SMALL, RSS_IDLE};

    #[test]
    fn a_limit_that_is_missed_says_so_and_one_not_measured_says_nothing() {
        let mut results = Results::default();
        results.add(&CPU_SMALL, NGINX, 10.0);
        results.add(&CPU_SMALL, "wicketgate", 31.0);
        results.add(&RSS_IDLE, "wicketgate", 20.0);
        let text = verdicts(&results);
        assert!(text.contains(
            "MISSED CPU µs/request, 0.5 KB, shared prompt: wicketgate 3.10n, at most 3n"
        ));
        assert!(text.contains("met    RSS idle MiB: wicketgate 20.0, at most 25"));
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn the_table_has_a_row_for_what_was_measured_only() {
        let mut results = Results::default();
        results.add(&CPU_SMALL, NGINX, 10.0);
        results.add(&CPU_SMALL, "wicketgate", 25.0);
        let text = table(&results, &[NGINX, "wicketgate"]);
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("| 10.0 "));
        assert!(text.contains("25.0 2.50n"), "{text}");
    }
}

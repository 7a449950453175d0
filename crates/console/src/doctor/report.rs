//! Findings for people and for programs.

use serde_json::json;

use super::catalog::{Finding, Severity};
use crate::text::clean;

/// Columns of a terminal that explanations are folded to.
const WIDTH: usize = 100;

pub(super) fn text(findings: &[Finding], looked_at: &str) -> String {
    let mut out = String::new();
    let mut last = None;
    for finding in findings {
        let kind = finding.kind;
        out.push_str(&format!(
            "{}: {}: {} [{}]\n    {}\n",
            kind.severity.as_str(),
            clean(&finding.place),
            kind.title,
            kind.id,
            clean(&finding.seen)
        ));
        // The same thing elsewhere need not be explained again.
        if last != Some(kind.id) {
            for (what, text) in [("why: ", kind.why), ("mend:", kind.remedy)] {
                let mut begin = format!("    {what} ");
                for line in fold(text, WIDTH - begin.len()) {
                    out.push_str(&format!("{begin}{line}\n"));
                    begin = " ".repeat(begin.len());
                }
            }
        }
        last = Some(kind.id);
    }
    let count = |severity: Severity| {
        let count = findings.iter().filter(|finding| finding.kind.severity == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", severity.as_str())
    };
    if findings.is_empty() {
        out.push_str(&format!("{looked_at}: nothing to mend\n"));
    } else {
        out.push_str(&format!(
            "{looked_at}: {}, {}, {}\n",
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Note)
        ));
    }
    out
}

pub(super) fn json(findings: &[Finding], looked_at: &str) -> String {
    let worst = findings.iter().map(|finding| finding.kind.severity).max();
    let findings = findings.iter().map(|finding| {
        let kind = finding.kind;
        json!({
            "id": kind.id, "severity": kind.severity.as_str(), "place": finding.place, "title": kind.title,
            "seen": finding.seen, "why": kind.why, "remedy": kind.remedy,
        })
    });
    let findings: Vec<_> = findings.collect();
    let report = json!({
        "looked_at": looked_at, "worst": worst.map(Severity::as_str), "findings": findings,
    });
    format!("{report:#}")
}

fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

//! The report: one page that needs nothing else.

use std::fmt::Write;

use super::Line;
use super::table::COLUMNS;
use crate::bench::report::escape;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}\
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #d8dee4}th:first-child,td:first-child{text-align:left}\
.ours{font-weight:600}.broken{color:#b3261e}.bar{fill:#5b8def}.ours .bar{fill:#1a7f4b}svg{width:14rem;height:.8rem}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}}";

/// * `lines`: scenario after scenario.
pub(super) fn page(lines: &[Line]) -> String {
    let mut out = String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">");
    let _ = write!(out, "<title>Wicketgate: many clusters</title><style>{STYLE}</style>");
    out.push_str("<h1>Many clusters, in virtual time</h1>");
    if let Some(line) = lines.first() {
        let _ = write!(
            out,
            "<p>{} clusters of {} endpoints in {} regions; each request that is played stands for {}. \
             Bars: P99 of the time to the first token while the scenario lasts, to the longest of them.</p>",
            line.clusters, line.endpoints, line.regions, line.scale
        );
    }
    for scenario in lines.chunk_by(|one, other| one.scenario == other.scenario) {
        section(&mut out, scenario);
    }
    out.push_str("</html>\n");
    out
}

fn section(out: &mut String, lines: &[Line]) {
    let Some(first) = lines.first() else { return };
    let _ = write!(out, "<h2>{}</h2><table><tr><th>policy<th>seed<th>", escape(first.scenario));
    for (title, _) in COLUMNS {
        let _ = write!(out, "<th>{}", escape(title));
    }
    let longest = lines.iter().map(|line| line.outcome.during_p99_ms).fold(1.0, f64::max);
    for line in lines {
        let class = if line.verdicts.is_empty() { "" } else { " class=\"ours\"" };
        let width = line.outcome.during_p99_ms / longest * 100.0;
        let _ = write!(
            out,
            "<tr{class}><td>{}<td>{}<td><svg viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{:.0} ms\">\
             <rect class=\"bar\" width=\"{width:.1}\" height=\"6\"/></svg>",
            escape(line.policy),
            line.seed,
            line.outcome.during_p99_ms,
        );
        for (_, shown) in COLUMNS {
            let _ = write!(out, "<td>{}", escape(&shown(&line.outcome)));
        }
    }
    out.push_str("</table>");
    for line in lines {
        for verdict in &line.verdicts {
            let (class, word) =
                if verdict.holds { ("", "holds") } else { (" class=\"broken\"", "BROKEN") };
            let _ = write!(
                out,
                "<p{class}>seed {}: {}: {} (at most {}), {word}</p>",
                line.seed,
                escape(verdict.what),
                verdict.value,
                verdict.bound
            );
        }
    }
}

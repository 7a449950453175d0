//! What the page says in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use lab::statistics::Word;
use sim::engine::Hardware;

use super::super::losses::{Loss, Tally, losses};
use super::super::measured::{GOODPUT, P95, Section, TOKENS};
use super::Report;
use super::html::escape;
use super::numbers::{failed, worded};
use super::series::shown;

/// First of all: what these numbers are.
pub(super) fn trust(report: &Report) -> String {
    let rows = report.sections.iter().flat_map(|section| section.plan.rows.iter().copied());
    let mut errors: BTreeMap<&str, &str> = BTreeMap::new();
    for row in rows {
        errors.insert(row, Hardware::find(row).map_or("not known", |hardware| hardware.error));
    }
    let errors: Vec<String> = errors.iter().map(|(row, error)| format!("{row} {error}")).collect();
    format!(
        "<p class=\"lead\"><strong>No GPU was used: the engines are simulated.</strong> A step of an \
         engine takes what a formula fitted to published measurements says. Stated error of the step \
         time: {}. An unloaded time to first token is right to about 20&#160;%; under load it is \
         governed by queueing, so read it as a ratio between policies, not as milliseconds. What \
         decides is not simulated: it is the gateway's own picker, ledger, prefix index and scrape \
         rhythm, told only what a gateway can know.</p>\n",
        escape(&errors.join(", "))
    )
}

pub(super) fn how_to_read(report: &Report) -> String {
    format!(
        "<details>\n<summary>How to read this</summary>\n\
         <p>Every policy gets the same requests, fixed by a seed before the run; nobody waits for a slow \
         answer before asking again. Here: {} seeds, {} of simulated time each after the warm-up, more where a scenario needs it. Beyond \
         its capacity a queue grows as long as the run lasts, so times there tell the length of the run.</p>\n\
         <p>Load is a share of the fleet's fluid capacity. Points are means over seeds of each seed's \
         percentile, over requests that got an answer; bands are the 95&#160;% interval of that mean \
         (percentile bootstrap over seeds, from three on). Goodput is the share of the requests offered \
         that were answered in time; failed ones are misses. <i>Of bound</i>: share of the prompt tokens that \
         an endless cache would have found. <i>Spread</i>: the busiest endpoint's requests for its capacity, \
         over the fleet's. <i>Failed</i>: share of the requests that got no whole answer.</p>\n\
         <p>Changes are by <b>wicketgate</b> against the policy of the row, seed by seed, as the mean \
         logarithm of the ratio, with its 95&#160;% interval. <i>Parity</i>: two one-sided tests put the \
         interval inside ±5&#160;% (throughput ±2&#160;%). <i>Equal</i>: less than 5&#160;% apart on average. \
         <i>Clear</i>: more than 20&#160;% in every seed. Bold: the best that one could use. The policies \
         <b>oracle-…</b> know the engines' true state: rulers, not rivals and not bounds.</p>\n</details>\n",
        report.seeds,
        humantime::format_duration(report.duration),
    )
}

/// What the scenario runs on, and where its limits lie.
pub(super) fn fleet(section: &Section) -> String {
    let plan = &section.plan;
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for row in &plan.rows {
        match counts.iter_mut().find(|(other, _)| other == row) {
            Some((_, count)) => *count += 1,
            None => counts.push((row, 1)),
        }
    }
    let groups = counts.iter().map(|(row, count)| {
        let source = Hardware::find(row).map_or("", |hardware| hardware.source);
        format!("{count} × {row} ({source})")
    });
    let (capacity, knee) = (plan.capacity(), plan.round_robin_knee());
    let slo = &plan.scenario.slo;
    format!(
        "<p class=\"fleet\">{}. Capacity {capacity:.1} requests/s; round robin overloads the slowest endpoint from \
         {knee:.1} on (load {:.2}). In time: first token within {}, then {} a token.</p>\n",
        escape(&groups.collect::<Vec<_>>().join(", ")),
        knee / capacity,
        humantime::format_duration(slo.ttft),
        humantime::format_duration(slo.tpot),
    )
}

pub(super) fn where_we_lose(section: &Section) -> String {
    if section.cells.iter().all(|cell| cell.ours().is_none()) {
        return String::new();
    }
    let all: Vec<Loss> = section.cells.iter().flat_map(losses).collect();
    let mut out = "<h3>Where we lose</h3>\n".to_owned();
    if all.is_empty() {
        out.push_str(
            "<p>Nowhere here: no policy that one could use is better by more than 5&#160;% in P95 or goodput.</p>\n",
        );
        return out;
    }
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\">\n<table class=\"losses\">\n<thead><tr><th scope=\"col\">load</th>\
         <th scope=\"col\">rival</th><th scope=\"col\">in</th><th scope=\"col\">rival's</th>\
         <th scope=\"col\">ours</th><th scope=\"col\" class=\"change\">change by us</th>\
         <th scope=\"col\">failed, rival's and ours</th></tr></thead>\n<tbody>\n",
    );
    for loss in &all {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"worse\">{}</td><td>{}, {}</td></tr>",
            loss.load,
            escape(loss.rival.name()),
            loss.measure.title,
            shown(loss.measure, loss.theirs),
            shown(loss.measure, loss.ours),
            worded(loss.change, None),
            failed(loss.failed.1),
            failed(loss.failed.0),
        );
    }
    out + "</tbody>\n</table>\n</div>\n"
}

/// Over all scenarios: losses, "never worse", parity.
pub(super) fn claims(report: &Report) -> String {
    let cells = || report.sections.iter().flat_map(|section| &section.cells);
    let tally = Tally::of(cells());
    if tally.comparisons == 0 {
        return String::new();
    }
    let Tally { comparisons, not_worse, worse } = tally;
    let verdict = if tally.is_never_worse() {
        "So <b>never worse</b> may be said here.".to_owned()
    } else {
        format!(
            "So \"never worse\" may not be said: {worse} are worse by more than 5&#160;% on average, and {} were neither \
             found worse nor shown not to be.",
            comparisons.saturating_sub(not_worse + worse)
        )
    };
    format!(
        "<section id=\"claims\">\n<h2>Over all scenarios</h2>\n\
         <p>{comparisons} comparisons with rivals, in P95 and in goodput. In {not_worse} of them it is shown that \
         wicketgate is not worse by 5&#160;% (one-sided paired tests, after Holm's correction for their number). {verdict}</p>\n\
         {}<p>Raw numbers: <a href=\"results.jsonl\">results.jsonl</a>, an object for each scenario, load, policy and seed.</p>\n</section>\n",
        parity(report)
    )
}

/// Where parity with round robin was shown, or was not, on fleets of equal engines.
fn parity(report: &Report) -> String {
    let mut lines = String::new();
    for section in &report.sections {
        let is_equal = section.plan.rows.windows(2).all(|pair| pair[0] == pair[1]);
        for cell in section.cells.iter().filter(|_| is_equal) {
            let at = |name| cell.policies.iter().position(|policy| policy.name() == name);
            let (Some(ours), Some(theirs)) = (cell.ours(), at("round-robin")) else { continue };
            let shown = [&P95, &TOKENS, &GOODPUT].map(|measure| {
                let paired = cell.paired(ours, theirs, measure)?;
                let word = paired.word(measure.margin);
                let harm = measure.harm(paired.change().mean);
                Some(match word {
                    Some(Word::Parity) => "parity".to_owned(),
                    _ if harm > 0.0 => format!("not shown, {}", worded(paired.change(), word)),
                    _ => format!("better, {}", worded(paired.change(), word)),
                })
            });
            let shown = shown.map(|text| text.unwrap_or_else(|| "-".to_owned()));
            let _ = writeln!(
                lines,
                "<tr><th scope=\"row\">{} {}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(section.plan.scenario.name),
                cell.load,
                shown[0],
                shown[1],
                shown[2],
            );
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "<h3>Parity with round robin, where all engines are equal</h3>\n<div class=\"scroll\" tabindex=\"0\">\n<table>\n\
         <thead><tr><th scope=\"col\">scenario, load</th><th scope=\"col\">TTFT P95, ±5&#160;%</th>\
         <th scope=\"col\">tok/s, ±2&#160;%</th><th scope=\"col\">goodput, ±5&#160;%</th></tr></thead>\n<tbody>\n{lines}</tbody>\n</table>\n</div>\n"
    )
}

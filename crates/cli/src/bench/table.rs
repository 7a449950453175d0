//! The results for people: a heading for each scenario, a table for each load.

use comfy_table::{CellAlignment, Table, presets};
use lab::Plan;

use super::measured::{Cell, GOODPUT, ITL, Measure, P50, P95, P99, TOKENS};
use super::text;

pub(super) const LEGEND: &str = "\
Engines are simulated (docs/benchmarks.md says how well). Times are means over seeds of each seed's percentile, over
requests that got an answer; `failed` were refused, and goodput counts them as misses. Load is a share of the fleet's
fluid capacity, which real queues reach to 85 to 95 %. `of bound`: share of the prompt tokens that an endless cache would
have found. `spread`: the busiest endpoint's requests for its capacity, over the fleet's. Changes are by `wicketgate`
against this policy, same requests, with their 95 % interval over seeds. `parity`: shown to lie within 5 %; `equal`: less
than 5 % apart on average; `clear`: more than 20 % in every seed.";

/// What the scenario is, and where its limits are.
pub(super) fn heading(plan: &Plan) -> String {
    let (capacity, knee) = (plan.capacity(), plan.round_robin_knee());
    format!(
        "\n{}: {}\n{} endpoints, fleet capacity {capacity:.1} requests/s; round robin's knee {knee:.1} requests/s (load {:.2})",
        plan.scenario.name,
        plan.scenario.about,
        plan.rows.len(),
        knee / capacity,
    )
}

/// All policies under one load, and how ours stands to the best rival.
///
/// * `all_changes`: columns for the changes of P99, goodput and tokens as well.
pub(super) fn cell(cell: &Cell, all_changes: bool) -> String {
    let ours = cell.ours().filter(|_| cell.policies.len() > 1);
    let changes: &[&Measure] = match (ours, all_changes) {
        (None, _) => &[],
        (Some(_), false) => &[&P95],
        (Some(_), true) => &[&P95, &P99, &GOODPUT, &TOKENS],
    };
    let mut header: Vec<String> = [
        "policy", "TTFT P50", "P95", "P99", "ITL P99", "goodput", "tok/s", "of bound", "spread",
        "failed",
    ]
    .map(str::to_owned)
    .into();
    let short = |measure: &Measure| measure.title.trim_start_matches("TTFT ").to_owned();
    header.extend(changes.iter().map(|measure| format!("change {}", short(measure))));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(&header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for (at, policy) in cell.policies.iter().enumerate() {
        let mut row = vec![
            policy.name().to_owned(),
            text::time(cell.mean(at, &P50)),
            text::time(cell.mean(at, &P95)),
            text::time(cell.mean(at, &P99)),
            text::time(cell.mean(at, &ITL)),
            format!("{:.3}", cell.mean(at, &GOODPUT)),
            format!("{:.0}", cell.mean(at, &TOKENS)),
            of_bound(cell, at),
            format!("{:.2}", cell.mean_of(at, |result| result.max_over_mean_load)),
            format!("{:.0}", cell.mean_of(at, |result| result.failed as f64)),
        ];
        if let Some(ours) = ours.filter(|ours| *ours != at) {
            row.extend(changes.iter().map(|measure| worded(cell, ours, at, measure)));
        }
        table.add_row(row);
    }
    let (load, rate, seeds) = (cell.load, cell.rate, cell.seeds());
    let best = ours.map(|ours| against_the_best(cell, ours)).unwrap_or_default();
    format!("\nload {load}: {rate:.1} requests/s, {seeds} seeds\n{}{best}", table.trim_fmt())
}

/// Share of the tokens that an endless cache would have found; nothing where there are none.
pub(super) fn of_bound(cell: &Cell, policy: usize) -> String {
    if cell.hit_bound > 0.001 {
        let hit = cell.mean_of(policy, |result| result.prefix_hit_ratio);
        format!("{:.0} %", 100.0 * hit / cell.hit_bound)
    } else {
        "-".to_owned()
    }
}

/// The change, and what it is called.
fn worded(cell: &Cell, ours: usize, theirs: usize, measure: &Measure) -> String {
    let change = text::change(cell.change(ours, theirs, measure));
    let paired = cell.paired(ours, theirs, measure);
    match paired.and_then(|paired| paired.word(measure.margin)) {
        Some(word) => format!("{change} {}", word.as_str()),
        None => change,
    }
}

fn against_the_best(cell: &Cell, ours: usize) -> String {
    let line = |measure: &Measure| {
        let rival = cell.best_rival(measure)?;
        let name = cell.policies[rival].name();
        let change = worded(cell, ours, rival, measure);
        Some(format!("{} {change} against {name}", measure.title))
    };
    let lines: Vec<String> = [&P95, &GOODPUT].into_iter().filter_map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\nwicketgate and the best rival: {}", lines.join("; "))
}

//! The results for people: a heading for each scenario, a table for each load.

use comfy_table::{CellAlignment, Table, presets};
use lab::{Change, Plan, Policy, RunResult, Traffic};

pub(super) const LEGEND: &str = "\
Engines are simulated (docs/benchmarks.md says how well). Times are means over seeds of each seed's percentile, over
requests that got an answer; `failed` were refused, and goodput counts them as misses. Load is a share of the fleet's
fluid capacity, which real queues reach to 85 to 95 %. `of bound`: share of the prompt tokens that an endless cache would
have found. `spread`: the busiest endpoint's requests for its capacity, over the fleet's. The last columns: the change by
`wicketgate` against this policy, same requests, with its 95 % interval over seeds.";

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

/// All policies under one load.
pub(super) fn cell(
    load: f64,
    policies: &[Policy],
    traffics: &[Traffic],
    results: &[Vec<RunResult>],
) -> String {
    let ours = policies.iter().position(|policy| *policy == Policy::Wicketgate);
    let ours = ours.and_then(|at| results.get(at));
    let mut header = vec![
        "policy", "TTFT P50", "P95", "P99", "ITL P99", "goodput", "tok/s", "of bound", "spread",
        "failed",
    ];
    if ours.is_some() && policies.len() > 1 {
        header.extend(["change P95", "change P99", "change tok/s"]);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(&header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let bound = mean(traffics.iter().map(|traffic| traffic.prefix_hit_bound));
    for (policy, results) in policies.iter().zip(results) {
        let of = |of: fn(&RunResult) -> f64| mean(results.iter().map(of));
        let hit = of(|result| result.prefix_hit_ratio);
        let mut row = vec![
            policy.name().to_owned(),
            time(of(|result| result.ttft_p50_ms)),
            time(of(|result| result.ttft_p95_ms)),
            time(of(|result| result.ttft_p99_ms)),
            time(of(|result| result.itl_p99_ms)),
            format!("{:.3}", of(|result| result.goodput)),
            format!("{:.0}", of(|result| result.output_tokens_per_second)),
            if bound > 0.001 { format!("{:.0} %", 100.0 * hit / bound) } else { "-".to_owned() },
            format!("{:.2}", of(|result| result.max_over_mean_load)),
            format!("{:.0}", of(|result| result.failed as f64)),
        ];
        if let Some(ours) = ours
            && *policy != Policy::Wicketgate
        {
            let change = |of: fn(&RunResult) -> f64| {
                let values = |results: &[RunResult]| results.iter().map(of).collect::<Vec<_>>();
                shown(Change::of(&values(ours), &values(results)))
            };
            row.push(change(|result| result.ttft_p95_ms));
            row.push(change(|result| result.ttft_p99_ms));
            row.push(change(|result| result.output_tokens_per_second));
        }
        table.add_row(row);
    }
    let rate = mean(traffics.iter().map(|traffic| traffic.rate));
    let seeds = traffics.len();
    format!("\nload {load}: {rate:.1} requests/s, {seeds} seeds\n{}", table.trim_fmt())
}

/// `-97 % (-98 to -96)`.
fn shown(change: Option<Change>) -> String {
    let Some(change) = change else { return "-".to_owned() };
    let percent = |share: f64| {
        let percent = share * 100.0;
        // One digit more where rounding would say that nothing, or everything, is left.
        let is_fine = percent.abs() < 9.95 || percent <= -98.95;
        if is_fine { format!("{percent:+.1}") } else { format!("{percent:+.0}") }
    };
    match change.interval {
        None => format!("{} %", percent(change.mean)),
        Some((low, high)) => {
            format!("{} % ({} to {})", percent(change.mean), percent(low), percent(high))
        }
    }
}

fn time(ms: f64) -> String {
    match ms {
        ..9.95 => format!("{ms:.1} ms"),
        ..999.5 => format!("{ms:.0} ms"),
        ..99_950.0 => format!("{:.2} s", ms / 1e3),
        _ => format!("{:.0} s", ms / 1e3),
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_sign_and_interval() {
        assert_eq!(shown(Some(Change { mean: -0.9971, interval: None })), "-99.7 %");
        let change = Change { mean: -0.974, interval: Some((-0.98, -0.021)) };
        assert_eq!(shown(Some(change)), "-97 % (-98 to -2.1)");
        assert_eq!(shown(Some(Change { mean: 0.5, interval: None })), "+50 %");
        assert_eq!(shown(None), "-");
    }

    #[test]
    fn times_are_shown_in_a_unit_that_fits() {
        let shown = [8.42, 125.0, 1250.0, 125_000.0].map(time);
        assert_eq!(shown, ["8.4 ms", "125 ms", "1.25 s", "125 s"]);
    }
}

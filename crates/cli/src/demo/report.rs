//! The results: a table and what to know about it, or a JSON object a line.

use std::time::Duration;

use comfy_table::{Cell, CellAlignment, Table, TableComponent, presets};
use serde_json::{Value, json};

use super::Plan;
use super::fleet::{self, FLEET, MODEL};
use super::measure::{Measured, Percentile};
use super::text;

/// Differences below this are called none.
const EQUAL: f64 = 0.05;
/// Columns that remarks take.
const WIDTH: usize = 78;

/// What one policy did.
pub(super) struct Row {
    /// For machines; the same as `wicketgate serve --policy` takes, save ours.
    pub(super) policy: &'static str,
    pub(super) title: &'static str,
    pub(super) measured: Measured,
    /// Share of the measured requests that each group of the fleet got, 0 to 1.
    pub(super) shares: [f64; FLEET.len()],
    /// Share of the prompts' tokens that engines found in their caches, 0 to 1.
    pub(super) cached: f64,
    /// 99 % of the engines' steps ended within this of their time (real).
    pub(super) step_late_p99: Duration,
}

/// Whether the machine kept up with what it simulated: 1 % of the steps at most fell behind by a
/// step, and as many requests were sent more than 5 ms too late.
pub(super) fn valid(plan: &Plan, row: &Row) -> bool {
    const SEND_LATE_MAX: Duration = Duration::from_millis(5);
    let step_late_max = fleet::shortest_step().mul_f64(plan.timetable.time_scale);
    let sent = row.measured.send_late_p99.mul_f64(plan.timetable.time_scale);
    row.step_late_p99 <= step_late_max && sent <= SEND_LATE_MAX
}

/// A line of `--json`.
pub(super) fn json(plan: &Plan, row: &Row) -> Value {
    let Measured { p50, p95, p99, .. } = row.measured;
    let share: serde_json::Map<String, Value> = FLEET
        .iter()
        .zip(&row.shares)
        .map(|(group, share)| (group.hardware.to_owned(), json!(rounded(*share, 4))))
        .collect();
    json!({
        "policy": row.policy,
        "load": plan.load,
        "requests_per_second": rounded(plan.rate, 3),
        "fleet_capacity_requests_per_second": rounded(plan.limits.fleet, 3),
        "round_robin_knee_requests_per_second": rounded(plan.limits.knee, 3),
        "seed": plan.seed,
        "duration_s": plan.timetable.measured.as_secs_f64(),
        "time_scale": plan.timetable.time_scale,
        "requests": row.measured.requests,
        "errors": row.measured.errors,
        "first_error": row.measured.first_error,
        "unanswered": row.measured.unanswered,
        "ttft_p50_ms": millis(p50.value),
        "ttft_p95_ms": millis(p95.value),
        "ttft_p99_ms": millis(p99.value),
        "ttft_p50_is_lower_bound": p50.at_least,
        "ttft_p95_is_lower_bound": p95.at_least,
        "ttft_p99_is_lower_bound": p99.at_least,
        "output_tokens_per_second": rounded(row.measured.tokens_per_second, 1),
        "share": share,
        "prompt_tokens_cached_share": rounded(row.cached, 4),
        "step_lateness_p99_ms": millis(row.step_late_p99),
        "send_lateness_p99_ms": millis(row.measured.send_late_p99),
        "valid": valid(plan, row),
    })
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3, 3)
}

fn rounded(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}

/// One line for a policy whose run is over.
pub(super) fn summary(measured: &Measured) -> String {
    format!("TTFT P50 {}, P95 {}", at_least(measured.p50), at_least(measured.p95),)
}

fn at_least(percentile: Percentile) -> String {
    let sign = if percentile.at_least { "≥ " } else { "" };
    format!("{sign}{}", text::time(percentile.value))
}

/// The table. The first row is what the others are compared with.
pub(super) fn table(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    // A rule below the header and around, none between lines.
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table.remove_style(TableComponent::LeftBorderIntersections);
    table.remove_style(TableComponent::RightBorderIntersections);
    let mut header = vec![Cell::new("")];
    header.extend(rows.iter().map(|row| right(row.title)));
    table.set_header(header);

    type Get = fn(&Measured) -> Percentile;
    let percentiles: [(&str, Get); 3] = [
        ("TTFT P50", |measured| measured.p50),
        ("TTFT P95", |measured| measured.p95),
        ("TTFT P99", |measured| measured.p99),
    ];
    for (name, get) in percentiles {
        add(&mut table, name, rows, |base, row| {
            let (base, own) = (get(&base.measured), get(&row.measured));
            // A lower bound of ours says nothing about a change; one of the base makes it larger.
            let change = if own.at_least {
                String::new()
            } else {
                text::change(base.value.as_secs_f64(), own.value.as_secs_f64())
            };
            (at_least(own), change)
        });
    }
    add(&mut table, "output tokens/s", rows, |base, row| {
        let (base, own) = (base.measured.tokens_per_second, row.measured.tokens_per_second);
        (text::count(own), text::change(base, own))
    });
    let plain = |value: String| (value, String::new());
    add(&mut table, "requests", rows, |_, row| plain(text::count(row.measured.requests as f64)));
    add(&mut table, "errors", rows, |_, row| plain(row.measured.errors.to_string()));
    if rows.iter().any(|row| row.measured.unanswered > 0) {
        add(&mut table, "no token by the end", rows, |_, row| {
            plain(row.measured.unanswered.to_string())
        });
    }
    for (at, group) in FLEET.iter().enumerate() {
        let name = format!("went to {} × {}", group.count, group.gpu);
        add(&mut table, &name, rows, |_, row| plain(text::percent(row.shares[at])));
    }
    add(&mut table, "prompts from cache", rows, |_, row| plain(text::percent(row.cached)));
    table.to_string()
}

/// Adds a line; `cell` gives value and change, from the base's row and the own.
fn add(table: &mut Table, name: &str, rows: &[Row], cell: impl Fn(&Row, &Row) -> (String, String)) {
    let Some(base) = rows.first() else { return };
    let mut cells = vec![Cell::new(name)];
    for (at, row) in rows.iter().enumerate() {
        let (value, change) = cell(base, row);
        let change = if at == 0 { String::new() } else { format!(" {change:>8}") };
        cells.push(right(&format!("{value}{change}")));
    }
    table.add_row(cells);
}

fn right(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// What to know about the table: what was simulated, at which load, and what it does not show.
pub(super) fn remarks(plan: &Plan, rows: &[Row]) -> anyhow::Result<String> {
    let mut gpus = Vec::new();
    let mut errors = Vec::new();
    for group in &FLEET {
        gpus.push(format!("{} × {}", group.count, group.gpu));
        errors.push(format!("{} {}", group.gpu, group.row()?.error));
    }
    let Plan { load, rate, limits, .. } = plan;
    let mut lines = vec![
        format!(
            "Simulated: {} with {MODEL}, each a model of vLLM's scheduler whose step times were \
             fitted to published measurements (error: {}). No GPU was used.",
            gpus.join(" and "),
            errors.join(", "),
        ),
        format!(
            "Load: {rate:.1} requests/s, {load} of what the fleet can do with warm caches ({:.1}/s). {}",
            limits.fleet,
            knee(plan),
        ),
    ];
    lines.extend(lost(rows));
    lines.extend(rows.iter().filter_map(|row| {
        let error = row.measured.first_error.as_ref()?;
        Some(format!("Errors with {}: the first was: {error}.", row.title))
    }));
    lines.push(lateness(plan, rows));
    Ok(lines.iter().map(|line| text::wrapped(line, WIDTH)).collect::<Vec<_>>().join("\n"))
}

/// Where round robin stands at this load; the choice of the rate decides what the table looks like.
fn knee(plan: &Plan) -> String {
    let Plan { rate, limits, .. } = plan;
    let at = limits.knee / limits.fleet;
    let engines: u32 = FLEET.iter().map(|group| group.count).sum();
    if *rate > limits.knee {
        format!(
            "Round robin is overloaded beyond {:.1}/s ({engines} × the slowest GPU, load {at:.2}): \
             it falls behind for as long as the run lasts. Below that all policies are closer: try --load {:.2}.",
            limits.knee,
            at * 0.75,
        )
    } else {
        format!(
            "Round robin keeps up until {:.1}/s ({engines} × the slowest GPU, load {at:.2}).",
            limits.knee
        )
    }
}

/// Says where our policy, the last row, is not the best.
fn lost(rows: &[Row]) -> Option<String> {
    let (ours, others) = rows.split_last()?;
    let seconds = |percentile: Percentile| percentile.value.as_secs_f64();
    type Get<'a> = &'a dyn Fn(&Row) -> f64;
    let measures: [(&str, Get<'_>); 4] = [
        ("TTFT P50", &|row| seconds(row.measured.p50)),
        ("TTFT P95", &|row| seconds(row.measured.p95)),
        ("TTFT P99", &|row| seconds(row.measured.p99)),
        ("throughput", &|row| 1.0 / row.measured.tokens_per_second.max(f64::MIN_POSITIVE)),
    ];
    let mut better = Vec::new();
    for other in others {
        let wins: Vec<&str> = measures
            .iter()
            .filter(|(_, get)| get(other) < get(ours) * (1.0 - EQUAL))
            .map(|(name, _)| *name)
            .collect();
        if !wins.is_empty() {
            better.push(format!("{} wins {}", other.title, wins.join(", ")));
        }
    }
    (!better.is_empty()).then(|| format!("Not the best everywhere: {}.", better.join("; ")))
}

fn lateness(plan: &Plan, rows: &[Row]) -> String {
    let worst = |late: fn(&Row) -> Duration| rows.iter().map(late).max().unwrap_or_default();
    let steps = text::late(worst(|row| row.step_late_p99));
    let sends = worst(|row| row.measured.send_late_p99).mul_f64(plan.timetable.time_scale);
    let said = format!(
        "99 % of simulated steps ended within {steps} of their time, 99 % of requests were sent within {}",
        text::late(sends)
    );
    if rows.iter().all(|row| valid(plan, row)) {
        format!("Kept time: {said}.")
    } else {
        let remedy = if cfg!(debug_assertions) {
            "This is a debug build: use `cargo run --release -- demo`"
        } else {
            "Try again when it is idle, or with --time-scale 2"
        };
        format!("NOT VALID: this machine was too busy to keep time ({said}). {remedy}.")
    }
}

#[cfg(test)]
mod tests;

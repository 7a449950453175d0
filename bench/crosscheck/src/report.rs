//! The tables and the JSON lines.

use std::fmt::Write;

use crate::measure::{Summary, median};
use crate::predict::Prediction;
use crate::round::Measured;
use crate::scene::Stage;
use crate::subject::Kind;

/// One subject's rounds of one scene.
pub struct Row {
    pub kind: Kind,
    pub measured: Vec<Measured>,
    /// The laboratory's, round by round.
    pub predicted: Vec<Prediction>,
    /// Why it does not run, or stopped to.
    pub excuse: Option<String>,
}

const HEAD: &str = "\
| subject | TTFT P50 ms | P95 ms (rounds) | P99 ms | ITL P99 ms | goodput | hit ratio | failed | open | shares | client late | steps late | valid | lab P50 / P95 / P99 ms | lab goodput | lab hits | lab shares |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

/// A scene's table, and below it what does not count and why.
pub fn table(stage: &Stage, rows: &[Row]) -> String {
    let mut text = heading(stage);
    text.push_str(HEAD);
    let mut notes = String::new();
    for row in rows {
        let name = row.kind.name;
        text.push_str(&line(row, stage.scene.groups.is_some()));
        if let Some(excuse) = &row.excuse {
            let _ = writeln!(notes, "* {name} did not run: {excuse}");
        }
        let bad = row.measured.iter().enumerate().filter(|(_, one)| !one.invalid.is_empty());
        for (round, one) in bad {
            let _ = writeln!(
                notes,
                "* {name}, round {}: NOT VALID: {}",
                round + 1,
                one.invalid.join("; ")
            );
        }
        if let Some(failure) = row.measured.iter().find_map(|one| one.failure.as_deref()) {
            let _ = writeln!(notes, "* {name}: a request failed: {failure}");
        }
    }
    text + "\n" + &notes
}

fn heading(stage: &Stage) -> String {
    let mut text = format!(
        "## {}: {}; load {} = {:.1} of {:.1} requests/s\n\n",
        stage.scene.name,
        stage.plan.rows.join(", "),
        stage.scene.load,
        stage.rate(),
        stage.capacity
    );
    if let Some(groups) = &stage.scene.groups {
        let _ = writeln!(
            text,
            "{} groups share {} tokens, {} new, answers of {}. Laboratory (~): engines with straight \
             lines for step times, see `predict.rs`.\n",
            groups.count, groups.prefix, groups.question, groups.answer
        );
    }
    text
}

fn line(row: &Row, is_approximate: bool) -> String {
    let predicted = prediction(row, is_approximate);
    let (name, measured) = (row.kind.name, &row.measured);
    if measured.is_empty() {
        return format!("| {name} |{} not run | {predicted} |\n", " - |".repeat(11));
    }
    let of = |of: fn(&Summary) -> f64| median(measured.iter().map(|one| of(&one.summary)));
    let most = |of: fn(&Measured) -> f64| measured.iter().map(of).fold(0.0, f64::max);
    let sum =
        |of: fn(&Summary) -> usize| measured.iter().map(|one| of(&one.summary)).sum::<usize>();
    let p95 = |one: &Measured| one.summary.ttft_p95_ms;
    let (low, high) = (measured.iter().map(p95).fold(f64::INFINITY, f64::min), most(p95));
    let itl = median(measured.iter().filter_map(|one| one.summary.itl_p99_ms));
    // A router that takes usage out leaves the engines' own books.
    let hits = median(
        measured.iter().map(|one| one.summary.prefix_hit_ratio.unwrap_or(one.engines_hit_ratio)),
    );
    let shares = percents(measured.iter().map(|one| one.shares.as_slice()));
    let good = measured.iter().filter(|one| one.invalid.is_empty()).count();
    let verdict = if good == measured.len() {
        format!("{good}/{good}")
    } else {
        format!("**NOT VALID** ({good}/{})", measured.len())
    };
    format!(
        "| {name} | {:.0} | {:.0} ({low:.0}–{high:.0}) | {:.0} | {itl:.0} | {:.3} | {hits:.3} | {} | {} | \
         {shares} | {:.1} | {:.1} | {verdict} | {predicted} |\n",
        of(|one| one.ttft_p50_ms),
        of(|one| one.ttft_p95_ms),
        of(|one| one.ttft_p99_ms),
        of(|one| one.goodput),
        sum(|one| one.failed),
        sum(|one| one.unfinished),
        most(|one| one.client_late_ms),
        most(|one| one.step_late_ms),
    )
}

fn prediction(row: &Row, is_approximate: bool) -> String {
    if row.predicted.is_empty() {
        return "- | - | - | -".to_owned();
    }
    let of = |of: fn(&Summary) -> f64| median(row.predicted.iter().map(|one| of(&one.summary)));
    let about = if is_approximate { "~" } else { "" };
    format!(
        "{about}{:.0} / {:.0} / {:.0} | {:.3} | {:.3} | {}",
        of(|one| one.ttft_p50_ms),
        of(|one| one.ttft_p95_ms),
        of(|one| one.ttft_p99_ms),
        of(|one| one.goodput),
        of(|one| one.prefix_hit_ratio.unwrap_or(0.0)),
        percents(row.predicted.iter().map(|one| one.shares.as_slice())),
    )
}

/// Medians over rounds, server by server.
fn percents<'a>(rounds: impl Iterator<Item = &'a [f64]> + Clone) -> String {
    let servers = rounds.clone().map(<[f64]>::len).max().unwrap_or(0);
    let share = |at: usize| median(rounds.clone().filter_map(|one| one.get(at).copied())) * 100.0;
    let shares: Vec<String> = (0..servers).map(|at| format!("{:.0}", share(at))).collect();
    format!("{} %", shares.join("/"))
}

/// One object a line: scene, subject, round, what was measured and what was predicted.
pub fn lines(stage: &Stage, rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for (round, measured) in row.measured.iter().enumerate() {
            let line = serde_json::json!({
                "scenario": stage.scene.name,
                "load": stage.scene.load,
                "subject": row.kind.name,
                "round": round + 1,
                "measured": measured,
                "predicted_by": row.kind.policy.map(lab::Policy::name),
                "predicted": row.predicted.get(round),
            });
            let _ = writeln!(text, "{line}");
        }
        if let Some(excuse) = &row.excuse {
            let line = serde_json::json!({
                "scenario": stage.scene.name, "subject": row.kind.name, "not_run": excuse,
            });
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::tests::measured;
    use crate::scene::SCENES;
    use crate::subject::KINDS;

    fn row(measured: Vec<Measured>) -> Row {
        Row { kind: KINDS[0], measured, predicted: Vec::new(), excuse: None }
    }

    fn stage() -> Stage {
        Stage::new(SCENES[0], 5.0, 1.0).unwrap()
    }

    #[test]
    fn a_row_has_the_median_and_the_range_of_its_rounds() {
        let text = table(&stage(), &[row(vec![measured(300.0), measured(100.0), measured(200.0)])]);
        assert!(text.contains("| 200 (100–300) |"), "{text}");
        assert!(text.contains("| 3/3 |"), "{text}");
    }

    #[test]
    fn one_late_round_marks_the_row_and_says_why() {
        let late = Measured { invalid: vec!["engine steps late".to_owned()], ..measured(1.0) };
        let text = table(&stage(), &[row(vec![measured(1.0), late])]);
        assert!(text.contains("**NOT VALID** (1/2)"), "{text}");
        assert!(text.contains("round 2: NOT VALID: engine steps late"), "{text}");
    }

    #[test]
    fn who_cannot_run_has_a_row_and_a_reason() {
        let absent = Row { excuse: Some("no such package".to_owned()), ..row(Vec::new()) };
        let text = table(&stage(), &[absent]);
        assert!(text.contains("not run"), "{text}");
        assert!(text.contains("did not run: no such package"), "{text}");
        let columns = |line: &str| line.matches('|').count();
        let widths: Vec<usize> =
            text.lines().filter(|line| line.starts_with('|')).map(columns).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }
}

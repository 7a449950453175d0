//! Splits as tables.

use comfy_table::{Cell, CellAlignment, Table, presets};
use gateway::{MirrorView, RolloutView, TargetView};

const HEADER: [&str; 9] =
    ["target", "pool", "weight", "share", "requests", "errors", "TTFT P50", "TTFT P95", ""];

/// All rules, or that there are none.
pub(super) fn render_all(views: &[RolloutView]) -> String {
    if views.is_empty() {
        return "the document has no modelRewrites".to_owned();
    }
    views.iter().map(render).collect::<Vec<_>>().join("\n\n")
}

pub(super) fn render(view: &RolloutView) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(HEADER);
    for target in &view.targets {
        let cells = row(target).into_iter().enumerate().map(|(at, text)| {
            let is_number = (2..=7).contains(&at);
            let alignment = if is_number { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(alignment)
        });
        table.add_row(cells);
    }
    let names =
        if view.matches.is_empty() { "every model".to_owned() } else { view.matches.join(", ") };
    let mut notes = vec![view.state.clone()];
    notes.extend(view.pool.as_ref().map(|pool| format!("pool {pool} only")));
    if view.sticky != "none" {
        notes.push(format!("sticky by {}", view.sticky));
    }
    if view.overridden {
        notes.push("weights set by an operator".to_owned());
    }
    if !view.guarded {
        notes.push("no rollback configured".to_owned());
    }
    let below: String = view
        .targets
        .iter()
        .filter_map(|target| {
            let back = target.rolled_back.as_ref()?;
            Some(format!("\n{} rolled back {}: {}", target.target, back.time, back.reason))
        })
        .chain(view.mirror.as_ref().map(mirror))
        .collect();
    let (name, rule) = (&view.name, view.rule);
    format!("{name}, rule {rule}, for {names}: {}\n{table}{below}", notes.join("; "))
}

fn row(target: &TargetView) -> [String; 9] {
    let millis =
        |time: Option<f64>| time.map_or("–".to_owned(), |millis| format!("{millis:.0} ms"));
    let weight = if target.weight == target.configured_weight {
        target.weight.to_string()
    } else {
        format!("{} (document: {})", target.weight, target.configured_weight)
    };
    let note = match (&target.rolled_back, target.stable) {
        (Some(_), _) => "rolled back",
        (None, true) => "stable",
        (None, false) => "",
    };
    [
        target.target.clone(),
        target.pool.clone().unwrap_or_else(|| "not served".to_owned()),
        weight,
        percent(target.share),
        target.requests.to_string(),
        percent(target.error_rate),
        millis(target.ttft_p50_ms),
        millis(target.ttft_p95_ms),
        note.to_owned(),
    ]
}

fn mirror(view: &MirrorView) -> String {
    let p95 =
        view.ttft_p95_ms.map(|millis| format!(", TTFT P95 {millis:.0} ms")).unwrap_or_default();
    format!(
        "\nmirror: {} of requests to {} ({}), {} answered, {} left out, errors {}{p95}",
        percent(view.share),
        view.target,
        view.pool.as_deref().unwrap_or("not served"),
        view.answered,
        view.left_out,
        percent(view.error_rate),
    )
}

/// What to do for a change to last.
pub(super) fn advice(view: &RolloutView) -> String {
    const HOLDS: &str =
        "This holds in this gateway, until it ends or the document changes the rule.";
    if !view.overridden {
        return HOLDS.to_owned();
    }
    let weights: Vec<_> = view
        .targets
        .iter()
        .map(|target| format!("{{ modelRewrite: {}, weight: {} }}", target.target, target.weight))
        .collect();
    format!("{HOLDS} To keep it, write into the document:\n  targets: [{}]", weights.join(", "))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if (percent - percent.round()).abs() < 0.05 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> RolloutView {
        let target = |name: &str, stable, weight, rolled_back| {
            serde_json::json!({
                "target": name, "pool": if stable { "one".into() } else { serde_json::Value::Null },
                "stable": stable, "configured_weight": 50, "weight": weight, "share": f64::from(weight) / 100.0,
                "requests": 10, "errors": 1, "recent_requests": 10, "error_rate": 0.125,
                "ttft_p50_ms": 12.3, "ttft_p95_ms": null, "rolled_back": rolled_back,
            })
        };
        let back = serde_json::json!({ "reason": "too slow", "time": "2026-11-29T12:00:00Z" });
        serde_json::from_value(serde_json::json!({
            "name": "canary", "rule": 0, "matches": ["chat"], "pool": null, "sticky": "session",
            "state": "rolled-back", "overridden": true, "guarded": true,
            "targets": [target("v1", true, 100, serde_json::Value::Null), target("v2", false, 0, back)],
        }))
        .unwrap()
    }

    #[test]
    fn the_table_says_who_is_stable_and_why_somebody_gets_nothing() {
        let text = render(&view());
        for part in [
            "canary, rule 0, for chat: rolled-back; sticky by session; weights set by an operator",
            "100 (document: 50)",
            "12.5 %",
            "12 ms",
            "not served",
            "v2 rolled back 2026-11-29T12:00:00Z: too slow",
        ] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }

    #[test]
    fn the_advice_can_be_pasted_into_the_document() {
        let advice = advice(&view());
        let line = "targets: [{ modelRewrite: v1, weight: 100 }, { modelRewrite: v2, weight: 0 }]";
        assert!(advice.contains(line), "{advice}");
    }
}

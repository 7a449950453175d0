//! The tables of `top`: what stands in which column, and what deserves a colour.

mod members;
mod tenants;

use gateway::{DecisionView, EndpointView};
pub(super) use tenants::tenants;

use super::fleet::{Fleet, PoolRow};
use super::sheet::{Cell, Column, Row, Sheet};
use super::snapshot::QueueView;
use super::theme::Tone;
use crate::text::{self, percent, short, time};

/// Blocks of a bar.
const BAR: usize = 6;

/// Pools: their pace and how full they are.
pub(super) fn pools(fleet: &Fleet) -> Sheet {
    Sheet {
        columns: vec![
            Column::left("pool", 14, 0),
            Column::right("ready", 5, 0),
            Column::right("req/s", 5, 0),
            Column::right("TTFT p50", 8, 64),
            Column::right("p95", 7, 0),
            Column::right("tok/s", 5, 0),
            Column::right("429/s", 5, 56),
            Column::right("err/s", 5, 110),
            Column::left("full", 11, 0),
            Column::right("hits", 5, 78),
            Column::right("waiting", 7, 100),
            Column::right("running", 7, 120),
            Column::right("flying", 6, 100),
            Column::left("req/s, last looks", 30, 130),
        ],
        rows: fleet.pools().iter().map(pool).collect(),
        empty: "no pool has an endpoint yet",
    }
}

fn pool(row: &PoolRow) -> Row {
    let pace = &row.pace;
    let ready = match row.ready {
        0 => Tone::Bad,
        ready if ready < row.endpoints => Tone::Warn,
        _ => Tone::Good,
    };
    let faults = |rate: Option<f64>, tone| {
        Cell::maybe(rate, short, if rate.is_some_and(|rate| rate > 0.0) { tone } else { Tone::Dim })
    };
    let count = |count: u32| Cell::number(count.to_string(), f64::from(count), Tone::Plain);
    Row {
        id: row.pool.clone(),
        cells: vec![
            Cell::text(&row.pool, Tone::Name),
            Cell::number(format!("{}/{}", row.ready, row.endpoints), row.ready as f64, ready),
            Cell::maybe(pace.requests, short, Tone::Plain),
            Cell::maybe(pace.ttft_p50, time, Tone::Plain),
            Cell::maybe(pace.ttft_p95, time, Tone::Plain),
            Cell::maybe(pace.output_tokens, short, Tone::Plain),
            faults(pace.rejected, Tone::Warn),
            faults(pace.errors, Tone::Bad),
            share(row.saturation),
            Cell::maybe(pace.hits, percent, Tone::Plain),
            count(row.waiting),
            count(row.running),
            count(row.in_flight),
            Cell { key: super::sheet::Key::Unknown, ..Cell::text(&row.sparkline, Tone::Good) },
        ],
    }
}

/// Who answers requests: endpoints, or at a router the members.
pub(super) fn servers(fleet: &Fleet) -> Sheet {
    match fleet.clusters() {
        Some(clusters) => members::members(clusters),
        None => endpoints(fleet),
    }
}

/// Endpoints: state, load, and how fast they proved to be.
pub(super) fn endpoints(fleet: &Fleet) -> Sheet {
    Sheet {
        columns: vec![
            Column::left("endpoint", 16, 0),
            Column::left("state", 7, 0),
            Column::left("KV", 11, 0),
            Column::right("wait", 4, 0),
            Column::right("run", 4, 0),
            Column::right("flying", 6, 0),
            Column::right("LoRA", 5, 60),
            Column::right("age", 6, 66),
            Column::right("prefill/s", 9, 76),
            Column::right("step", 6, 92),
            Column::left("full", 11, 104),
            Column::left("engine", 8, 112),
            Column::left("pool", 14, 128),
            Column::right("prediction", 10, 140),
        ],
        rows: fleet.endpoints().iter().map(endpoint).collect(),
        empty: "no endpoint is known yet",
    }
}

fn endpoint(view: &EndpointView) -> Row {
    let count = |count: Option<u32>, tone| {
        Cell::maybe(count.map(f64::from), |count| format!("{count:.0}"), tone)
    };
    let waiting =
        if view.waiting.is_some_and(|waiting| waiting > 0) { Tone::Warn } else { Tone::Plain };
    let adapters = match (view.adapters.len(), view.adapters_max) {
        (0, None) => Cell::unknown(),
        (resident, None) => Cell::number(resident.to_string(), resident as f64, Tone::Plain),
        (resident, Some(most)) => {
            Cell::number(format!("{resident}/{most}"), resident as f64, Tone::Plain)
        }
    };
    let age = view.scrape_age_ms.map(|age| age as f64 / 1000.0);
    let old = if view.state == "stale" { Tone::Bad } else { Tone::Dim };
    let step = view.speed.as_ref().map(|speed| f64::from(speed.step_ms) / 1000.0);
    let prefill = view.speed.as_ref().and_then(|speed| speed.prefill_tokens_per_second);
    Row {
        id: format!("{}\n{}", view.pool, view.endpoint),
        cells: vec![
            Cell::text(&view.endpoint, Tone::Name),
            Cell::text(&view.state, state(&view.state)),
            share(view.kv_usage.map(f64::from)),
            count(view.waiting, waiting),
            count(view.running, Tone::Plain),
            count(Some(view.in_flight), Tone::Plain),
            adapters,
            Cell::maybe(age, time, old),
            Cell::maybe(prefill, short, Tone::Plain),
            Cell::maybe(step, time, Tone::Plain),
            share(Some(f64::from(view.saturation))),
            Cell::text(&view.engine, Tone::Dim),
            Cell::text(&view.pool, Tone::Dim),
            Cell::maybe(view.prediction_error, |error| format!("± {}", percent(error)), Tone::Dim),
        ],
    }
}

pub(super) fn state(state: &str) -> Tone {
    match state {
        "ready" => Tone::Good,
        "asleep" | "draining" => Tone::Warn,
        _ => Tone::Bad,
    }
}

/// The last decisions, newest first.
pub(super) fn decisions(fleet: &Fleet) -> Sheet {
    Sheet {
        columns: vec![
            Column::left("time", 8, 0),
            Column::left("model", 18, 0),
            Column::left("to", 21, 0),
            Column::right("tokens", 6, 62),
            Column::right("cached", 6, 70),
            Column::right("TTFT ≈", 7, 80),
            Column::right("took", 7, 96),
            Column::left("shadow", 21, 120),
            Column::left("request", 36, 150),
        ],
        rows: fleet.decisions().iter().map(decision).collect(),
        empty: "no request was decided yet",
    }
}

fn decision(view: &DecisionView) -> Row {
    let chosen = view.candidates.first();
    let cached = chosen
        .filter(|_| view.prompt_blocks > 0)
        .map(|chosen| f64::from(chosen.matched_blocks) / f64::from(view.prompt_blocks));
    let predicted = chosen.and_then(|chosen| chosen.predicted_ttft_ms);
    let to = match view.order.first() {
        Some(endpoint) => Cell::text(endpoint, Tone::Name),
        None => Cell::text(view.refused.as_deref().unwrap_or("no endpoint"), Tone::Bad),
    };
    let shadow = match &view.shadow {
        None => Cell::unknown(),
        Some(shadow) if shadow.same => Cell::text("same", Tone::Dim),
        Some(shadow) => Cell::text(shadow.endpoint.as_deref().unwrap_or("no endpoint"), Tone::Warn),
    };
    Row {
        id: view.request_id.clone(),
        cells: vec![
            Cell::text(view.time.get(11..19).unwrap_or(&view.time), Tone::Dim),
            Cell::text(&view.model, Tone::Plain),
            to,
            Cell::number(
                text::count(u64::from(view.prompt_tokens)),
                f64::from(view.prompt_tokens),
                Tone::Plain,
            ),
            Cell::maybe(cached, percent, Tone::Plain),
            Cell::maybe(predicted.map(|ms| f64::from(ms) / 1000.0), time, Tone::Plain),
            Cell::number(time(view.took_us / 1e6), view.took_us, Tone::Dim),
            shadow,
            Cell::text(&view.request_id, Tone::Dim),
        ],
    }
}

/// The queues of flow control.
pub(super) fn queues(fleet: &Fleet) -> Sheet {
    let (queues, empty) = match fleet.queues() {
        Some(queues) => (queues, "nothing waits"),
        None => (&[][..], "this gateway has no flow control: requests wait in the engines"),
    };
    Sheet {
        columns: vec![
            Column::left("pool", 14, 0),
            Column::left("band", 12, 0),
            Column::right("requests", 8, 0),
            Column::right("tokens", 6, 0),
            Column::right("oldest", 7, 0),
            Column::right("flows", 5, 0),
        ],
        rows: queues.iter().map(queue).collect(),
        empty,
    }
}

fn queue(view: &QueueView) -> Row {
    let band = match &view.band {
        serde_json::Value::String(band) => band.clone(),
        serde_json::Value::Null => "–".to_owned(),
        other => other.to_string(),
    };
    let count = |count: u64, tone| Cell::number(text::count(count), count as f64, tone);
    let waits = if view.requests > 0 { Tone::Warn } else { Tone::Dim };
    Row {
        id: format!("{}\n{band}", view.pool),
        cells: vec![
            Cell::text(&view.pool, Tone::Name),
            Cell::text(&band, Tone::Plain),
            count(view.requests, waits),
            count(view.tokens, Tone::Plain),
            Cell::maybe(view.oldest_ms.map(|age| age as f64 / 1000.0), time, Tone::Plain),
            count(view.flows, Tone::Plain),
        ],
    }
}

/// A share as a bar and in per cent.
fn share(share: Option<f64>) -> Cell {
    let Some(share) = share else { return Cell::unknown() };
    let tone = match share {
        share if share >= 0.9 => Tone::Bad,
        share if share >= 0.7 => Tone::Warn,
        _ => Tone::Good,
    };
    Cell::number(
        format!("{} {:>3.0}%", bar(share, BAR), share.clamp(0.0, 9.99) * 100.0),
        share,
        tone,
    )
}

/// `share` of `width` blocks, in eighths.
pub(super) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if eighths / 8 < width {
        bar.push(EIGHTHS[eighths % 8]);
        bar.push_str(&"·".repeat(width - eighths / 8 - 1));
    }
    bar.replace(' ', "·")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_always_as_wide_as_asked() {
        for share in [0.0, 0.01, 0.1, 0.33, 0.5, 0.98, 1.0, 7.0, f64::NAN] {
            assert_eq!(bar(share, BAR).chars().count(), BAR, "{share}");
        }
        assert_eq!(
            (bar(0.0, 2), bar(0.5, 2), bar(1.0, 2)),
            ("··".into(), "█·".into(), "██".into())
        );
    }
}

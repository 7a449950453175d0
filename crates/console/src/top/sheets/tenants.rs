//! What tenants took of the GPUs, and what it costs by the price sheet.

use gateway::{PriceView, UsageRow, UsageView};

use super::share;
use crate::text::{self, percent, time};
use crate::top::sheet::{Cell, Column, Row, Sheet};
use crate::top::theme::Tone;

/// Who took most stands first.
pub(in crate::top) fn tenants(usage: Option<&UsageView>) -> Sheet {
    let nothing = UsageView::default();
    let usage = usage.unwrap_or(&nothing);
    let all: f64 = usage.rows.iter().map(taken).sum();
    let mut rows: Vec<&UsageRow> = usage.rows.iter().collect();
    rows.sort_by(|one, other| taken(other).total_cmp(&taken(one)));
    Sheet {
        columns: vec![
            Column::left("tenant", 14, 0),
            Column::left("pool", 12, 40),
            Column::right("GPU time", 8, 0),
            Column::left("share", 11, 0),
            Column::right("cost", 13, 0),
            Column::right("prefill", 7, 84),
            Column::right("decode", 7, 84),
            Column::right("saved", 7, 72),
            Column::right("requests", 8, 94),
            Column::right("prompt", 6, 102),
            Column::right("cached", 6, 110),
            Column::right("answer", 6, 118),
            Column::right("saved cost", 13, 132),
            Column::right("price", 20, 154),
        ],
        rows: rows.into_iter().map(|row| tenant(row, usage, all)).collect(),
        empty: "no request has been accounted yet",
    }
}

fn taken(row: &UsageRow) -> f64 {
    row.prefill_gpu_seconds + row.decode_gpu_seconds
}

fn tenant(row: &UsageRow, usage: &UsageView, all: f64) -> Row {
    let seconds = |seconds: f64, tone| Cell::number(time(seconds), seconds, tone);
    let count = |number: u64| Cell::number(text::count(number), number as f64, Tone::Plain);
    let money = |amount: Option<f64>, tone| {
        Cell::maybe(amount, |amount| self::money(amount, &usage.currency), tone)
    };
    let part = if all > 0.0 { taken(row) / all } else { 0.0 };
    let cached =
        (row.input_tokens > 0).then(|| row.cached_input_tokens as f64 / row.input_tokens as f64);
    let price = usage.prices.iter().find(|price| price.pool == row.pool);
    Row {
        id: format!("{}\n{}", row.pool, row.tenant),
        cells: vec![
            Cell::text(&row.tenant, Tone::Name),
            Cell::text(&row.pool, Tone::Dim),
            seconds(taken(row), Tone::Plain),
            Cell { tone: Tone::Good, ..share(Some(part)) },
            money(row.cost, Tone::Plain),
            seconds(row.prefill_gpu_seconds, Tone::Plain),
            seconds(row.decode_gpu_seconds, Tone::Plain),
            seconds(row.saved_gpu_seconds, Tone::Good),
            count(row.requests),
            count(row.input_tokens),
            Cell::maybe(cached, percent, Tone::Plain),
            count(row.output_tokens),
            money(row.saved, Tone::Good),
            Cell::maybe(price.map(|price| price.gpu_hour), |_| written(price), Tone::Dim),
        ],
    }
}

/// Of a GPU for an hour, and how many an endpoint has.
fn written(price: Option<&PriceView>) -> String {
    price.map_or(String::new(), |price| match price.gpus_per_endpoint {
        0 | 1 => format!("{:.2}/GPU-h", price.gpu_hour),
        gpus => format!("{:.2}/GPU-h × {gpus}", price.gpu_hour),
    })
}

/// An amount, as the live page writes it.
fn money(amount: f64, currency: &str) -> String {
    let currency = text::clean(currency);
    if amount != 0.0 && amount.abs() < 1.0 {
        format!("{amount:.4} {currency}")
    } else {
        format!("{amount:.2} {currency}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tenant: &str, seconds: f64, cost: Option<f64>) -> UsageRow {
        UsageRow {
            pool: "chat".to_owned(),
            tenant: tenant.to_owned(),
            decode_gpu_seconds: seconds,
            cost,
            ..UsageRow::default()
        }
    }

    #[test]
    fn who_took_most_of_the_gpus_stands_first_with_its_share_and_its_cost() {
        let usage = UsageView {
            currency: "EUR".to_owned(),
            prices: vec![PriceView {
                pool: "chat".to_owned(),
                gpu_hour: 3.0,
                gpus_per_endpoint: 2,
            }],
            rows: vec![row("small", 30.0, Some(0.025)), row("large", 90.0, Some(7.5))],
        };
        let text = tenants(Some(&usage)).plain(200);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("large") && lines[1].contains("7.50 EUR"), "{text}");
        assert!(lines[1].contains("75%") && lines[1].contains("3.00/GPU-h × 2"), "{text}");
        assert!(lines[2].starts_with("small") && lines[2].contains("0.0250 EUR"), "{text}");
    }

    #[test]
    fn without_a_price_the_cost_is_unknown_and_without_requests_that_is_said() {
        let usage = UsageView { rows: vec![row("a", 1.0, None)], ..UsageView::default() };
        assert!(tenants(Some(&usage)).plain(80).lines().nth(1).unwrap().contains('–'));
        assert!(tenants(None).plain(80).contains("no request has been accounted yet"));
    }
}

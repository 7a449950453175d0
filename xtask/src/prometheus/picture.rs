//! A dashboard as one SVG: near enough what a reader will see in Grafana, in the reader's own theme.

mod chart;
mod units;

use std::fmt::Write;

use anyhow::Result;
use monitoring::dashboards::{Dashboard, Kind, Panel};
use monitoring::layout::{self, COLUMNS, Item, Place};

use super::Series;
use units::show;

const WIDTH: usize = 1280;
const MARGIN: usize = 20;
const GAP: usize = 12;
const HEAD_HEIGHT: usize = 72;
/// Height of one unit of the grid, the gap below a panel included.
const UNIT: usize = 31;

/// Both themes; a viewer picks. The hues are told apart by people who see colours otherwise, too.
const STYLE: &str = "
svg { --back: #f4f5f8; --card: #fff; --edge: #d9dce3; --ink: #1d2330; --soft: #5b6270; --grid: #e6e8ee;
  --c0: #2563c9; --c1: #c2410c; --c2: #15803d; --c3: #9333a8; --c4: #b78103; --c5: #0e7490; --c6: #be185d; --c7: #525866; }
@media (prefers-color-scheme: dark) {
svg { --back: #111318; --card: #1a1d24; --edge: #2c313c; --ink: #e4e7ee; --soft: #9aa2b1; --grid: #2a2f39;
  --c0: #6ea8fe; --c1: #fb9a5b; --c2: #5fd08a; --c3: #d38bea; --c4: #e5c04b; --c5: #4cc7dd; --c6: #f682b4; --c7: #a7adba; } }
text { fill: var(--ink); }
.soft { fill: var(--soft); }
.bold { font-weight: 600; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.card { fill: var(--card); stroke: var(--edge); }
.grid { stroke: var(--grid); }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
";

/// A line of a chart: its name, and its points as seconds and value.
pub(super) type Line = (String, Vec<(f64, f64)>);

/// * `seconds`: what the charts' width stands for.
/// * `ask`: the series of a query of a panel.
pub(crate) fn page(
    dashboard: &Dashboard,
    seconds: u64,
    mut ask: impl FnMut(&str) -> Result<Vec<Series>>,
) -> Result<String> {
    let mut svg = String::new();
    text(&mut svg, (MARGIN, 34), "class='bold' font-size='20'", dashboard.title);
    text(&mut svg, (MARGIN, 56), "class='soft' font-size='13'", dashboard.about);
    let mut height = HEAD_HEIGHT;
    for (place, item) in layout::of(dashboard) {
        let at = pixels(place);
        height = height.max(at.y + at.height);
        match item {
            Item::Head(row) => {
                text(&mut svg, (at.x, at.y + 19), "class='bold' font-size='15'", row.title);
            }
            Item::Panel(one) => {
                let mut lines = Vec::new();
                for query in one.queries {
                    for series in ask(query.expr)? {
                        lines.push((legend(query.legend, &series), series.points));
                    }
                }
                lines.retain(|(_, points)| !points.is_empty());
                if one.kind == Kind::Stack && lines.iter().any(has_something) {
                    // Parts of nothing would fill the legend.
                    lines.retain(has_something);
                }
                lines.sort_by(|(one, _), (other, _)| one.cmp(other));
                panel(&mut svg, at, one, &lines, seconds as f64);
            }
        }
    }
    height += MARGIN;
    Ok(format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}' \
         font-family='system-ui,Segoe UI,Roboto,DejaVu Sans,sans-serif' font-size='12'>\n<style>{STYLE}</style>\n\
         <rect width='{WIDTH}' height='{height}' fill='var(--back)'/>\n{svg}</svg>\n"
    ))
}

fn has_something((_, points): &Line) -> bool {
    points.iter().any(|(_, value)| *value > 0.0)
}

fn pixels(place: Place) -> Place {
    let column = |x: usize| MARGIN + x * (WIDTH - 2 * MARGIN + GAP) / COLUMNS;
    let (left, right) = (column(place.x), column(place.x + place.width));
    Place {
        x: left,
        y: HEAD_HEIGHT + place.y * UNIT,
        width: right - left - GAP,
        height: place.height * UNIT - GAP,
    }
}

fn panel(svg: &mut String, at: Place, panel: &Panel, lines: &[Line], seconds: f64) {
    let (x, y, width, height) = (at.x, at.y, at.width, at.height);
    let _ = writeln!(
        svg,
        "<g transform='translate({x},{y})'><rect class='card' width='{width}' height='{height}' rx='6'/>"
    );
    text(svg, (14, 23), "class='bold'", panel.title);
    if panel.kind == Kind::Number {
        let last = lines.first().and_then(|(_, points)| points.last());
        let shown = last.map_or("no data".to_owned(), |(_, value)| show(*value, panel.unit));
        text(svg, (14, 72), "font-size='30'", &shown);
    } else if lines.is_empty() {
        text(svg, (width / 2, height / 2), "class='soft middle'", "no data");
    } else {
        chart::draw(svg, (width, height), panel, lines, seconds);
    }
    svg.push_str("</g>\n");
}

fn legend(template: &str, series: &Series) -> String {
    series.labels.iter().fold(template.to_owned(), |text, (label, value)| {
        text.replace(&format!("{{{{{label}}}}}"), value)
    })
}

fn text(svg: &mut String, (x, y): (usize, usize), attributes: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x='{x}' y='{y}' {attributes}>{words}</text>");
}

#[cfg(test)]
mod tests {
    use monitoring::dashboards;

    use super::*;

    fn some(name: &str) -> Series {
        Series {
            labels: vec![("pool".to_owned(), name.to_owned())],
            points: vec![(0.0, 1.0), (3.0, 2.0)],
        }
    }

    #[test]
    fn every_dashboard_becomes_a_picture_of_all_its_panels() {
        for dashboard in dashboards::all() {
            let page = page(dashboard, 60, |_| Ok(vec![some("a<b&c")])).unwrap();
            for panel in dashboard.rows.iter().flat_map(|row| row.panels) {
                assert!(page.contains(&format!(">{}</text>", panel.title)), "{}", panel.title);
            }
            assert!(!page.contains("no data") && !page.contains("a<b"), "{}", dashboard.uid);
        }
    }

    #[test]
    fn parts_that_are_always_zero_are_left_out_unless_all_are() {
        let series = |pool: &str, value| Series { points: vec![(0.0, value)], ..some(pool) };
        let overview = dashboards::all()[0];
        let of = |values: [f64; 2]| {
            let asked = |_: &str| Ok(vec![series("one", values[0]), series("other", values[1])]);
            page(overview, 60, asked).unwrap().matches(">other</text>").count()
        };
        assert!(of([1.0, 0.0]) < of([1.0, 1.0]) && of([0.0, 0.0]) == of([1.0, 1.0]));
    }

    #[test]
    fn a_panel_without_series_says_so() {
        let page = page(dashboards::all()[0], 60, |_| Ok(Vec::new())).unwrap();
        assert!(page.contains("no data"));
    }
}

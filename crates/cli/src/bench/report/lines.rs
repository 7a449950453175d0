//! The sweep: one line for each policy over the loads.

use std::fmt::Write;

use lab::statistics::Better;

use super::super::measured::{Measure, Role, Section};
use super::Shape;
use super::axis::{self, Axis};
use super::html::escape;
use super::labels::spread;
use super::looks::look;
use super::series::{Series, tip};

const TOP: f64 = 44.0;
const BOTTOM: f64 = 46.0;

/// The height, and the plot inside of an `svg`.
pub(super) fn plot(
    section: &Section,
    all: &[Series],
    measure: &Measure,
    shape: Shape,
) -> (f64, String) {
    let (left, right) = (shape.left, shape.width - shape.right);
    let (top, bottom) = (TOP, shape.height - BOTTOM);
    let x = Axis::linear((0.0, load_max(section)), (left, right));
    let y = match measure.better {
        Better::Lower => Axis::log(values(all), (bottom, top)),
        Better::Higher => Axis::linear((0.0, 1.0), (bottom, top)),
    };
    let mut out = String::new();
    frame(&mut out, &x, &y, measure, shape);
    limits(&mut out, section, &x, shape);
    // Ours last, so that it lies on top.
    let mut order: Vec<&Series> = all.iter().filter(|series| !series.points.is_empty()).collect();
    order.sort_by_key(|series| match Role::of(series.policy) {
        Role::Rival => 0,
        Role::Oracle => 1,
        Role::Variant => 2,
        Role::Ours => 3,
    });
    let labelled: Vec<&Series> =
        order.iter().copied().filter(|series| shape.labels_all || is_told(series)).collect();
    let ends: Vec<f64> = labelled.iter().map(|series| y.at(last(series))).collect();
    let places = spread(&ends, shape.line, top + 4.0, bottom - 4.0);
    for series in order {
        let label = labelled.iter().position(|other| std::ptr::eq(*other, series));
        line(&mut out, series, &x, &y, measure, label.map(|at| (right + 18.0, places[at])));
    }
    (shape.height, out)
}

/// The capacity is always on the picture.
fn load_max(section: &Section) -> f64 {
    section.cells.iter().map(|cell| cell.load).fold(1.0, f64::max) * 1.03
}

fn values(all: &[Series]) -> impl Iterator<Item = f64> + '_ {
    all.iter().flat_map(|series| &series.points).flat_map(|point| {
        let (low, high) = point.interval.unwrap_or((point.mean, point.mean));
        [point.mean, low, high]
    })
}

fn last(series: &Series) -> f64 {
    series.points.last().map_or(0.0, |point| point.mean)
}

/// Whether a small plot names it.
fn is_told(series: &Series) -> bool {
    series.is_best_rival || Role::of(series.policy) != Role::Rival
}

fn frame(out: &mut String, x: &Axis, y: &Axis, measure: &Measure, shape: Shape) {
    let (left, right) = (shape.left, shape.width - shape.right);
    let bottom = shape.height - BOTTOM;
    for tick in y.ticks() {
        let place = y.at(tick);
        let text = match measure.better {
            Better::Lower => axis::time(tick),
            Better::Higher => format!("{tick:.1}"),
        };
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{left:.1} {place:.1}H{right:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            left - 7.0,
            place + 4.0,
        );
    }
    for tick in x.ticks() {
        let place = x.at(tick);
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{place:.1} {bottom:.1}v5\"/><text class=\"tick\" x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick:.1}</text>",
            bottom + 19.0,
        );
    }
    let _ = writeln!(
        out,
        "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">load ρ, share of the fleet's capacity</text>",
        (left + right) / 2.0,
        shape.height - 8.0,
    );
}

/// Where round robin overloads the slowest endpoint, and where the fleet ends.
fn limits(out: &mut String, section: &Section, x: &Axis, shape: Shape) {
    let knee = section.plan.round_robin_knee() / section.plan.capacity();
    let is_one = knee > 0.995;
    let mut marks =
        vec![(1.0, if is_one { "capacity = round robin's knee" } else { "capacity" }, 18.0)];
    if !is_one {
        marks.push((knee, "round robin's knee", 34.0));
    }
    for (load, text, row) in marks {
        let place = x.at(load);
        let half = text.len() as f64 * 3.2;
        let middle = place.clamp(shape.left + half - 30.0, shape.width - half);
        let _ = writeln!(
            out,
            "<path class=\"limit\" d=\"M{place:.1} {:.1}V{:.1}\"/><text class=\"limit\" x=\"{middle:.1}\" y=\"{row:.1}\" text-anchor=\"middle\">{text}</text>",
            row + 5.0,
            shape.height - BOTTOM,
        );
    }
}

/// * `label`: where its name begins.
fn line(
    out: &mut String,
    series: &Series,
    x: &Axis,
    y: &Axis,
    measure: &Measure,
    label: Option<(f64, f64)>,
) {
    let look = look(series.policy);
    let name = escape(series.policy.name());
    let _ = writeln!(out, "<g class=\"series {}\" style=\"--c:var({})\">", look.class, look.colour);
    let places: Vec<(f64, f64)> =
        series.points.iter().map(|point| (x.at(point.load), y.at(point.mean))).collect();
    if let Some(band) = band(series, x, y) {
        let _ = writeln!(out, "<path class=\"band\" d=\"{band}\"/>");
    }
    let path = path(places.iter().copied());
    // Wide and unseen, so that the line is easily pointed at.
    let _ = writeln!(
        out,
        "<path class=\"reach\" d=\"{path}\"><title>{name}</title></path><path class=\"line\" d=\"{path}\" stroke-dasharray=\"{}\"/>",
        if look.dashes.is_empty() { "none" } else { look.dashes },
    );
    for (point, (at_x, at_y)) in series.points.iter().zip(&places) {
        let _ = writeln!(
            out,
            "<path class=\"point\" d=\"{}\"><title>{}</title></path>",
            look.point(*at_x, *at_y),
            escape(&tip(series, point, measure)),
        );
    }
    if let (Some((label_x, label_y)), Some((end_x, end_y))) = (label, places.last()) {
        let _ = writeln!(
            out,
            "<path class=\"leader\" d=\"M{:.1} {end_y:.1}L{:.1} {label_y:.1}h8\"/><text class=\"label\" x=\"{label_x:.1}\" y=\"{:.1}\">{name}</text>",
            end_x + 7.0,
            label_x - 11.0,
            label_y + 4.0,
        );
    }
    out.push_str("</g>\n");
}

/// Around the intervals; `None` where one is missing.
fn band(series: &Series, x: &Axis, y: &Axis) -> Option<String> {
    let edge = |pick: fn((f64, f64)) -> f64| {
        let place =
            |point: &super::series::Point| Some((x.at(point.load), y.at(pick(point.interval?))));
        series.points.iter().map(place).collect::<Option<Vec<_>>>()
    };
    let (mut around, back) = (edge(|(low, _)| low)?, edge(|(_, high)| high)?);
    around.extend(back.into_iter().rev());
    (around.len() > 3).then(|| path(around.into_iter()) + "Z")
}

fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let places: Vec<String> = places.map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    format!("M{}", places.join("L"))
}

//! One load: a row for each policy, the best on top.

use std::fmt::Write;

use lab::statistics::Better;

use super::super::measured::Measure;
use super::Shape;
use super::axis::{self, Axis};
use super::html::escape;
use super::looks::look;
use super::series::{Point, Series, shown, tip};

const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
const ROW: f64 = 22.0;
/// Room for a policy's name, and for its value.
const NAMES: f64 = 134.0;
const VALUES: f64 = 62.0;
/// Room for a mark's text.
const MARK: f64 = 48.0;

/// The height, and the plot inside of an `svg`.
pub(super) fn plot(all: &[Series], measure: &Measure, shape: Shape) -> (f64, String) {
    let mut rows: Vec<(&Series, &Point)> =
        all.iter().filter_map(|series| Some((series, series.points.first()?))).collect();
    rows.sort_by(|(_, a), (_, b)| match measure.better {
        Better::Lower => a.mean.total_cmp(&b.mean),
        Better::Higher => b.mean.total_cmp(&a.mean),
    });
    let bottom = TOP + ROW * rows.len() as f64;
    let range = (NAMES + 8.0, shape.width - VALUES - 8.0);
    let x = match measure.better {
        Better::Lower => {
            let ends = rows.iter().flat_map(|(_, point)| {
                let (low, high) = point.interval.unwrap_or((point.mean, point.mean));
                [low, high]
            });
            Axis::log(ends, range)
        }
        Better::Higher => Axis::linear((0.0, 1.0), range),
    };
    let mut out = String::new();
    let mut free_from = f64::MIN;
    for tick in x.ticks() {
        let place = x.at(tick);
        // Marks that would touch the one before are left out.
        if place < free_from {
            continue;
        }
        free_from = place + MARK;
        let text = match measure.better {
            Better::Lower => axis::time(tick),
            Better::Higher => format!("{tick:.1}"),
        };
        let _ = writeln!(
            out,
            "<path class=\"grid\" d=\"M{place:.1} {TOP}V{bottom:.1}\"/><text class=\"tick\" x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 17.0,
        );
    }
    for (place, (series, point)) in rows.into_iter().enumerate() {
        let y = TOP + ROW * (place as f64 + 0.5);
        row(&mut out, series, point, measure, &x, (y, shape.width));
    }
    (bottom + BOTTOM, out)
}

fn row(
    out: &mut String,
    series: &Series,
    point: &Point,
    measure: &Measure,
    x: &Axis,
    (y, width): (f64, f64),
) {
    let look = look(series.policy);
    let place = x.at(point.mean);
    let (low, high) = point.interval.unwrap_or((point.mean, point.mean));
    let _ = writeln!(
        out,
        "<g class=\"series dot {}\" style=\"--c:var({})\">\
         <text class=\"label\" x=\"{NAMES}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <path class=\"row\" d=\"M{:.1} {y:.1}H{:.1}\"/>\
         <path class=\"whisker\" d=\"M{:.1} {y:.1}H{:.1}\"/>\
         <path class=\"point\" d=\"{}\"><title>{}</title></path>\
         <text class=\"value\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></g>",
        look.class,
        look.colour,
        y + 4.0,
        escape(series.policy.name()),
        NAMES + 8.0,
        width - VALUES - 8.0,
        x.at(low),
        x.at(high),
        look.point(place, y),
        escape(&tip(series, point, measure)),
        width - 4.0,
        y + 4.0,
        shown(measure, point.mean),
    );
}

//! Lines and stacked areas with their axes and names.

use std::collections::BTreeMap;
use std::fmt::Write;

use monitoring::dashboards::{Kind, Panel};

use super::units::{round_up, show, within};
use super::{Line, text};

const LEFT: f64 = 84.0;
const TOP: f64 = 38.0;
const RIGHT: f64 = 16.0;
const PARTS: u32 = 4;
/// Hues of the style; who comes after them is dashed.
const COLOURS: usize = 8;
const LEGEND_LINE: usize = 17;
const LEGEND_LINES_MAX: usize = 3;
/// A generous width of a letter, since fonts differ.
const LETTER: f64 = 6.7;

pub(super) fn draw(
    svg: &mut String,
    (width, height): (usize, usize),
    panel: &Panel,
    lines: &[Line],
    seconds: f64,
) {
    let names = names(lines, width);
    let legend_height = names.len() * LEGEND_LINE;
    let stacked = panel.kind == Kind::Stack;
    let drawn = if stacked { stack(lines) } else { lines.to_vec() };
    let values = drawn.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
    let (lowest, highest) =
        values.fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    let bound = round_up(highest.max(-lowest));
    let frame = Frame {
        right: width as f64 - RIGHT,
        bottom: (height - legend_height) as f64 - 32.0,
        // As far below zero as above it, so that zero has a line.
        least: if lowest < 0.0 { -bound } else { 0.0 },
        most: bound,
        seconds,
    };
    frame.axes(svg, panel);
    // The topmost first, so that the areas below it stay visible.
    for (index, (_, points)) in drawn.iter().enumerate().rev() {
        frame.line(svg, index, points, stacked);
    }
    for (line, names) in names.iter().enumerate() {
        let y = height - legend_height + line * LEGEND_LINE + 6;
        for (x, index, name) in names {
            let colour = index % COLOURS;
            let _ = writeln!(
                svg,
                "<rect x='{x}' y='{}' width='12' height='4' rx='2' fill='var(--c{colour})'/>",
                y - 6
            );
            text(svg, (x + 17, y), "class='soft'", name);
        }
    }
}

/// Where values and times are in a panel.
struct Frame {
    right: f64,
    bottom: f64,
    /// The value at the bottom: zero, unless some are below.
    least: f64,
    /// The value at the top.
    most: f64,
    /// The time at the right.
    seconds: f64,
}

impl Frame {
    fn x(&self, time: f64) -> f64 {
        LEFT + (self.right - LEFT) * time / self.seconds
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - TOP) * (value - self.least) / (self.most - self.least)
    }

    fn axes(&self, svg: &mut String, panel: &Panel) {
        for part in 0..=PARTS {
            let value = self.least + (self.most - self.least) * f64::from(part) / f64::from(PARTS);
            let y = self.y(value);
            let _ = writeln!(svg, "<path class='grid' d='M{LEFT} {y:.1}H{:.1}'/>", self.right);
            let label = within(value, self.most, panel.unit);
            text(svg, (LEFT as usize - 8, y as usize + 4), "class='soft end'", &label);
        }
        for (part, class) in [(0.0, "soft"), (0.5, "soft middle"), (1.0, "soft end")] {
            let at = self.seconds * part;
            let label = match self.seconds - at {
                now if now <= 0.0 => "now".to_owned(),
                ago => format!("−{}", show(ago, monitoring::dashboards::Unit::Seconds)),
            };
            let attributes = format!("class='{class}' font-size='11'");
            text(svg, (self.x(at) as usize, self.bottom as usize + 15), &attributes, &label);
        }
    }

    fn line(&self, svg: &mut String, index: usize, points: &[(f64, f64)], stacked: bool) {
        let colour = index % COLOURS;
        let mut path = String::new();
        for (number, (time, value)) in points.iter().enumerate() {
            let letter = if number == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.0} {:.1}", self.x(*time), self.y(*value));
        }
        if stacked && let (Some(first), Some(last)) = (points.first(), points.last()) {
            let (first, last, bottom) = (self.x(first.0), self.x(last.0), self.bottom);
            let area = format!("{path}L{last:.0} {bottom:.1}L{first:.0} {bottom:.1}Z");
            let _ = writeln!(svg, "<path d='{area}' fill='var(--card)'/>");
            let _ = writeln!(svg, "<path d='{area}' fill='var(--c{colour})' fill-opacity='.4'/>");
        }
        let dashes = if index >= COLOURS { " stroke-dasharray='5 3'" } else { "" };
        let _ = writeln!(svg, "<path class='line' d='{path}' stroke='var(--c{colour})'{dashes}/>");
    }
}

/// The legend by lines: column, index and name of each that fits.
fn names(lines: &[Line], width: usize) -> Vec<Vec<(usize, usize, String)>> {
    let mut out: Vec<Vec<(usize, usize, String)>> = vec![Vec::new()];
    let mut x = 14;
    for (index, (name, _)) in lines.iter().enumerate() {
        let wide = 30 + (name.chars().count() as f64 * LETTER) as usize;
        if x + wide > width && x > 14 {
            if out.len() == LEGEND_LINES_MAX {
                break;
            }
            out.push(Vec::new());
            x = 14;
        }
        if let Some(line) = out.last_mut() {
            line.push((x, index, name.clone()));
        }
        x += wide;
    }
    out
}

/// Each series on top of those before it, by position; a value that is missing counts as zero.
fn stack(series: &[Line]) -> Vec<Line> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    let key = |time: f64| (time * 10.0).round().max(0.0) as u64;
    for (_, points) in series {
        points.iter().for_each(|(time, _)| {
            sums.insert(key(*time), 0.0);
        });
    }
    let stacked = series.iter().map(|(name, points)| {
        for (time, value) in points {
            *sums.entry(key(*time)).or_default() += value;
        }
        (name.clone(), sums.iter().map(|(time, sum)| (*time as f64 / 10.0, *sum)).collect())
    });
    stacked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, value: f64) -> Line {
        (name.to_owned(), vec![(0.0, value), (3.0, value)])
    }

    #[test]
    fn parts_of_a_whole_lie_on_each_other() {
        let stacked = stack(&[part("a", 1.0), part("b", 2.0)]);
        assert_eq!(stacked[1].1, [(0.0, 3.0), (3.0, 3.0)]);
    }

    #[test]
    fn values_below_zero_have_room_above_the_bottom() {
        let frame = Frame { right: 100.0, bottom: 90.0, least: -2.0, most: 2.0, seconds: 1.0 };
        assert_eq!((frame.y(-2.0), frame.y(2.0)), (90.0, TOP));
        assert!((frame.y(0.0) - (90.0 + TOP) / 2.0).abs() < 1e-9);
    }

    #[test]
    fn names_that_do_not_fit_go_on_the_next_line_and_none_leaves_the_panel() {
        let many: Vec<Line> =
            (0..12).map(|index| part(&format!("endpoint {index}"), 1.0)).collect();
        let lines = names(&many, 400);
        assert_eq!(lines.len(), LEGEND_LINES_MAX);
        assert!(lines.iter().flatten().all(|(x, _, name)| x + 17 + name.len() * 7 < 400));
    }
}

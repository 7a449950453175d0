//! `--report`: one page with plots and tables that needs nothing else, made for printing as well as
//! for a telephone, in light and in dark.
//!
//! Order: what this is and how far to trust it; then each scenario, its sweep over the load first,
//! then its numbers, then where we lose, then the command that makes it; at last what may be claimed
//! over all of them.

mod axis;
mod dots;
mod html;
mod labels;
mod lines;
mod looks;
mod numbers;
mod series;
#[cfg(test)]
mod tests;
mod words;

use std::fmt::Write;
use std::time::Duration;

use super::losses::losses;
use super::measured::{GOODPUT, Measure, P95, P99, Section};
pub(super) use html::escape;

const STYLE: &str = include_str!("report/style.css");
const SCRIPT: &str = include_str!("report/script.js");

/// All that was run by one command.
pub(super) struct Report {
    pub(super) sections: Vec<Section>,
    /// Seeds 1 to this number.
    pub(super) seeds: u64,
    /// Simulated time that counts, of each run.
    pub(super) duration: Duration,
    /// The command's options, save scenario and loads.
    pub(super) options: String,
}

impl Report {
    /// What makes the runs of a section again.
    fn command(&self, section: &Section) -> String {
        let loads: Vec<String> = section.cells.iter().map(|cell| cell.load.to_string()).collect();
        format!(
            "wicketgate bench routing --scenario {} --load {} {}",
            section.plan.scenario.name,
            loads.join(","),
            self.options,
        )
    }
}

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Wicketgate routing benchmark</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<h1>Routing benchmark</h1>\n"
    );
    page.push_str(&words::trust(report));
    page.push_str(&words::how_to_read(report));
    page.push_str(&contents(report));
    for section in &report.sections {
        page.push_str(&scenario(report, section));
    }
    page.push_str(&words::claims(report));
    let _ = write!(
        page,
        "</main>\n<div id=\"tip\" hidden=\"hidden\"></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    page
}

fn contents(report: &Report) -> String {
    let mut list = "<nav aria-label=\"Scenarios\">\n<ul>\n".to_owned();
    for section in &report.sections {
        let name = escape(section.plan.scenario.name);
        let lost: usize = section.cells.iter().filter(|cell| !losses(cell).is_empty()).count();
        let has_ours = section.cells.iter().any(|cell| cell.ours().is_some());
        let standing = match (has_ours, lost) {
            (false, _) => String::new(),
            (true, 0) => "no rival better".to_owned(),
            (true, _) => format!("a rival better at {lost} of {} loads", section.cells.len()),
        };
        let class = if lost > 0 { " class=\"lost\"" } else { "" };
        let _ = writeln!(
            list,
            "<li><a href=\"#{name}\"><b>{name}</b> <span{class}>{standing}</span></a></li>"
        );
    }
    list + "</ul>\n</nav>\n"
}

fn scenario(report: &Report, section: &Section) -> String {
    let name = escape(section.plan.scenario.name);
    let mut out = format!(
        "<section id=\"{name}\">\n<h2>{name}</h2>\n<p class=\"about\">{}.</p>\n",
        escape(section.plan.scenario.about)
    );
    out.push_str(&words::fleet(section));
    out.push_str(&figure(section, &P95, Place::Main));
    out.push_str("<div class=\"pair\">\n");
    out.push_str(&figure(section, &P99, Place::Small));
    out.push_str(&figure(section, &GOODPUT, Place::Small));
    out.push_str("</div>\n");
    out.push_str(&numbers::table(section));
    out.push_str(&words::where_we_lose(section));
    let command = escape(&report.command(section));
    let _ = write!(
        out,
        "<p class=\"command\">Figures and table of this scenario:</p>\n<pre><code>{command}</code></pre>\n</section>\n"
    );
    out
}

/// Where a figure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Alone in its row, drawn once for wide screens and once for narrow ones.
    Main,
    /// One of two.
    Small,
}

fn figure(section: &Section, measure: &Measure, place: Place) -> String {
    let all = series::of(section, measure);
    let what = match measure.title {
        "goodput" => "Goodput: share of the requests answered in time".to_owned(),
        title => format!("{title}, the time to the first token"),
    };
    let sweep = section.cells.len() > 1;
    let against = if sweep { " against the load, a share of the fleet's capacity" } else { "" };
    let draw = |shape| match sweep {
        true => lines::plot(section, &all, measure, shape),
        false => dots::plot(&all, measure, shape),
    };
    let label = escape(&format!("{}: {what}{against}", section.plan.scenario.name));
    let svg = |class: &str, shape: Shape| {
        let (height, body) = draw(shape);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n",
            shape.width
        )
    };
    let body = match place {
        Place::Main => svg("wide", Shape::WIDE) + &svg("narrow", Shape::NARROW),
        Place::Small => svg("small", Shape::SMALL),
    };
    let caption = match place {
        Place::Main => escape(&format!("{what}{against}")),
        Place::Small => escape(&what),
    };
    format!("<figure>\n<figcaption>{caption}</figcaption>\n{body}</figure>\n")
}

/// Room of a plot, in its own units, which are pixels where it is shown in full size.
#[derive(Clone, Copy, Debug)]
struct Shape {
    width: f64,
    height: f64,
    left: f64,
    /// Room for labels at the ends of the lines.
    right: f64,
    /// Distance of two labels.
    line: f64,
    /// Whether every line gets a label, or only ours, the best rival and the oracle.
    labels_all: bool,
}

impl Shape {
    const WIDE: Self = Self {
        width: 920.0,
        height: 470.0,
        left: 60.0,
        right: 160.0,
        line: 17.0,
        labels_all: true,
    };
    const NARROW: Self = Self {
        width: 380.0,
        height: 460.0,
        left: 50.0,
        right: 124.0,
        line: 15.0,
        labels_all: true,
    };
    const SMALL: Self = Self {
        width: 420.0,
        height: 290.0,
        left: 50.0,
        right: 124.0,
        line: 15.0,
        labels_all: false,
    };
}

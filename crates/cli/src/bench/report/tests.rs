//! The page as a browser reads it.

use std::sync::LazyLock;
use std::time::Duration;

use lab::Policy;

use super::super::measured::fixtures::{cell, section, with};
use super::Report;

const POLICIES: [Policy; 4] =
    [Policy::Wicketgate, Policy::Reference, Policy::RoundRobin, Policy::OracleTtft];

/// A sweep and a single load; `reference` wins the second.
fn report() -> Report {
    let sweep = |load: f64| {
        cell(load, &POLICIES, 4, move |policy, seed, result| {
            let slow = if policy == Policy::RoundRobin { 90.0 } else { 1.0 };
            with(result, (100.0 + 100.0 * load + seed as f64) * slow, 0.95)
        })
    };
    let single = cell(0.6, &POLICIES, 4, |policy, seed, result| {
        let p95 = if policy == Policy::Reference { 150.0 } else { 200.0 };
        with(result, p95 + seed as f64, 0.9)
    });
    Report {
        sections: vec![
            section("mixed-8b", vec![sweep(0.15), sweep(0.5), sweep(0.85)]),
            section("hot-prefix", vec![single]),
        ],
        seeds: 4,
        duration: Duration::from_secs(120),
        options: "--policy wicketgate,reference,round-robin,oracle-ttft --seeds 4 --duration 2m"
            .to_owned(),
    }
}

/// Made once, for intervals take their time.
static PAGE: LazyLock<String> = LazyLock::new(|| super::page(&report()));

/// Names of the elements, in order; fails where one is not closed, an attribute is not quoted or a
/// bare `<` or `&` stands in the text.
fn elements(page: &str) -> Vec<String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    let (mut open, mut all) = (Vec::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        text_is_escaped(&rest[..at]);
        let end = rest[at..].find('>').expect("a tag ends") + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed in the wrong order");
            continue;
        }
        let name = tag.split([' ', '/', '\n']).next().unwrap().to_owned();
        let mut attributes = tag[name.len()..].trim_end_matches('/').trim();
        while !attributes.is_empty() {
            let (_, value) = attributes.split_once("=\"").expect("a quoted value");
            let (value, others) = value.split_once('"').expect("the end of a value");
            text_is_escaped(value);
            attributes = others.trim_start();
        }
        all.push(name.clone());
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            let end = rest.find(&close).expect("a script or style ends");
            rest = &rest[end + close.len()..];
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    all
}

fn text_is_escaped(text: &str) {
    for (at, _) in text.match_indices('&') {
        let entity = &text[at..text.len().min(at + 8)];
        assert!(entity.contains(';'), "bare & in {text:?}");
    }
    assert!(!text.contains('>'), "bare > in {text:?}");
}

#[test]
fn the_page_is_well_formed_and_holds_every_figure_and_cell() {
    let page = PAGE.as_str();
    let elements = elements(page);
    let count = |name: &str| elements.iter().filter(|element| *element == name).count();
    // For each scenario one figure drawn for wide and for narrow screens, and two small ones.
    assert_eq!((count("figure"), count("svg")), (2 * 3, 2 * 4));
    for load in ["load 0.15:", "load 0.5:", "load 0.85:", "load 0.6:"] {
        assert!(page.contains(load), "no {load}");
    }
    let rows = page.matches("<tr class=\"ours\">").count();
    assert_eq!(rows, 4, "a row of ours in each cell");
    for policy in POLICIES {
        let rows = page.matches(&format!("<th scope=\"row\">{}</th>", policy.name())).count();
        assert!(rows >= 4, "{} has {rows} rows", policy.name());
    }
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let page = PAGE.as_str();
    for outside in ["http:", "https:", "//cdn", "url(", "@import", "src=", "<link", "<img"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let links = page.match_indices("href=\"").map(|(at, _)| page[at + 6..].split('"').next());
    for link in links.flatten() {
        assert!(link.starts_with('#') || link == "results.jsonl", "{link}");
    }
}

#[test]
fn what_it_is_comes_first_then_the_sweep_then_numbers_then_losses_then_the_command() {
    let page = PAGE.as_str();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text:?}"));
    let first_paragraph = &page[at("<p")..at("</p>")];
    for said in ["No GPU was used", "simulated", "llama-3.1-8b/a10g ±15 %"] {
        assert!(first_paragraph.contains(said), "{said}");
    }
    let section = &page[at("<section id=\"mixed-8b\"")..at("<section id=\"hot-prefix\"")];
    let order =
        ["TTFT P95", "<figure>", "TTFT P99", "Goodput", "<table>", "Where we lose", "<pre>"];
    let places: Vec<usize> = order
        .iter()
        .map(|text| section.find(text).unwrap_or_else(|| panic!("no {text:?}")))
        .collect();
    assert!(places[2..].is_sorted(), "{places:?}");
    assert!(places[1] < places[4], "figures before the table");
    assert!(section.contains(
        "wicketgate bench routing --scenario mixed-8b --load 0.15,0.5,0.85 --policy wicketgate,"
    ));
}

#[test]
fn a_loss_is_named_and_none_is_said_to_be_none() {
    let page = PAGE.as_str();
    let section = |name: &str| {
        let begin = page.find(&format!("<section id=\"{name}\"")).unwrap();
        &page[begin..begin + page[begin..].find("</section>").unwrap()]
    };
    assert!(section("mixed-8b").contains("Nowhere here"));
    let lost = section("hot-prefix");
    let losses = &lost[lost.find("Where we lose").unwrap()..];
    assert!(losses.contains("<th scope=\"row\">reference</th><td>TTFT P95</td>"), "{losses}");
    assert!(!losses.contains("oracle-ttft</th>"), "an oracle is no rival");
    assert!(page.contains("a rival better at 1 of 1 loads"));
    assert!(page.contains("\"never worse\" may not be said"));
}

#[test]
fn the_knee_and_the_capacity_are_marked_and_ours_lies_on_top() {
    let page = PAGE.as_str();
    assert!(page.contains(">round robin's knee</text>") && page.contains(">capacity</text>"));
    let svg = &page[page.find("<svg").unwrap()..page.find("</svg>").unwrap()];
    let last = svg.rfind("<g class=\"series").unwrap();
    assert!(svg[last..].starts_with("<g class=\"series ours\""));
    assert_eq!(svg.matches("class=\"band\"").count(), POLICIES.len());
}

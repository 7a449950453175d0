//! One endpoint, or one decision with everything that was said for and against each candidate.

use gateway::{CandidateView, DecisionView, EndpointView};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Paragraph;

use crate::text::{clean, count as count_of, fit, percent, short, time};
use crate::top::app::{App, Receipt};
use crate::top::sheets::{bar, state};
use crate::top::theme::{Theme, Tone};

/// Blocks of a bar here.
const BAR: usize = 20;

pub(super) fn endpoint(frame: &mut Frame<'_>, area: Rect, app: &App, id: &str, theme: Theme) {
    let found =
        app.fleet.endpoints().iter().find(|view| format!("{}\n{}", view.pool, view.endpoint) == id);
    let lines = match found {
        Some(view) => endpoint_lines(view, app, theme),
        None => vec![Line::styled("this endpoint has left", theme.style(Tone::Warn))],
    };
    page(frame, area, lines, app.scroll);
}

fn endpoint_lines(view: &EndpointView, app: &App, theme: Theme) -> Vec<Line<'static>> {
    let millis = |ms: f64| time(ms / 1000.0);
    let count = |count: Option<u32>| count.map_or("not said".to_owned(), |count| count.to_string());
    let share = |share: Option<f64>| {
        share.map_or("not said".to_owned(), |share| {
            format!("{} {}", bar(share, BAR), percent(share))
        })
    };
    let field = |name: &str, value: String| {
        Line::from(vec![
            Span::styled(format!("{name:<20}"), theme.style(Tone::Dim)),
            Span::raw(value),
        ])
    };
    let adapters = match view.adapters_max {
        None => {
            format!("{} believed loaded; the engine does not say how many fit", view.adapters.len())
        }
        Some(most) => format!("{} of {most} believed loaded", view.adapters.len()),
    };
    let speed = match &view.speed {
        None => "nothing learned yet".to_owned(),
        Some(speed) => format!(
            "{} prompt tokens/s, a step takes {}",
            speed.prefill_tokens_per_second.map_or("–".to_owned(), short),
            millis(f64::from(speed.step_ms)),
        ),
    };
    let prediction = match (view.prediction_bias, view.prediction_error) {
        (Some(bias), Some(error)) => format!(
            "{bias:.2} times the observed TTFT, off by {} ({} compared)",
            percent(error),
            count_of(view.predictions)
        ),
        _ => "nothing compared yet".to_owned(),
    };
    let blocks = match (view.block_size_tokens, view.block_count) {
        (Some(size), Some(count)) => {
            format!(
                "{} of {size} tokens: room for {} tokens",
                short(count as f64),
                short(count as f64 * f64::from(size))
            )
        }
        _ => "not said".to_owned(),
    };
    let peers = if view.peers_in_flight > 0 {
        format!(", {} of them by other gateways", view.peers_in_flight)
    } else {
        String::new()
    };
    let age = match view.scrape_age_ms {
        None => "never scraped".to_owned(),
        Some(age) => {
            format!("{} old, {} scrapes failed since", millis(age as f64), view.scrape_failures)
        }
    };
    let mut lines = vec![
        Line::from(vec![
            Span::styled(clean(&view.endpoint).into_owned(), theme.style(Tone::Title)),
            Span::raw("  "),
            Span::styled(clean(&view.state).into_owned(), theme.style(state(&view.state))),
        ]),
        Line::default(),
        field("pool", clean(&view.pool).into_owned()),
        field("engine", clean(&view.engine).into_owned()),
        field("signals", age),
        field("KV cache", share(view.kv_usage.map(f64::from))),
        field("capacity in use", share(Some(f64::from(view.saturation)))),
        field("waiting", count(view.waiting)),
        field("running", count(view.running)),
        field("in flight", format!("{}{peers}", view.in_flight)),
        field("prompts to compute", format!("{} tokens", count_of(view.prefill_tokens))),
        field("KV blocks", blocks),
        field("adapters", adapters),
        field("learned speed", speed),
        field("prediction", prediction),
        Line::default(),
        Line::styled("last decisions for it", theme.style(Tone::Title)),
    ];
    let here = app.fleet.decisions().iter().filter(|decision| {
        decision.pool == view.pool && decision.order.first() == Some(&view.endpoint)
    });
    let mut any = false;
    for decision in here.take(20) {
        any = true;
        lines.push(Line::raw(format!(
            "{}  {}  {} tokens  {}",
            decision.time.get(11..19).unwrap_or_default(),
            clean(&decision.model),
            decision.prompt_tokens,
            clean(&decision.request_id)
        )));
    }
    if !any {
        lines.push(Line::styled("none among the last", theme.style(Tone::Dim)));
    }
    lines
}

pub(super) fn decision(
    frame: &mut Frame<'_>,
    area: Rect,
    request_id: &str,
    receipt: &Receipt,
    scroll: u16,
    theme: Theme,
) {
    let lines = match receipt {
        Receipt::Asked => vec![Line::styled("asking for the receipt…", theme.style(Tone::Dim))],
        Receipt::Gone(why) => vec![
            Line::raw(clean(request_id).into_owned()),
            Line::styled(clean(why).into_owned(), theme.style(Tone::Warn)),
        ],
        Receipt::Here(view) => decision_lines(view, usize::from(area.width), theme),
    };
    page(frame, area, lines, scroll);
}

fn decision_lines(view: &DecisionView, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let weights: Vec<String> = view
        .scorers
        .iter()
        .map(|scorer| format!("{} ×{}", clean(&scorer.name), scorer.weight))
        .collect();
    let goes = view.order.first().map_or_else(
        || format!("no endpoint: {}", clean(view.refused.as_deref().unwrap_or("none fits"))),
        |best| format!("went to {}", clean(best)),
    );
    let mut lines = vec![
        Line::styled(fit(&view.request_id, width), theme.style(Tone::Title)),
        Line::raw(fit(&format!("{}  {}  {goes}", view.time, view.model), width)),
        Line::styled(
            fit(
                &format!(
                    "{} prompt tokens, {} blocks; profile {}, picker {}, decided in {:.1} µs; {}",
                    view.prompt_tokens,
                    view.prompt_blocks,
                    view.profile,
                    view.picker,
                    view.took_us,
                    weights.join(", ")
                ),
                width,
            ),
            theme.style(Tone::Dim),
        ),
    ];
    if let Some(shadow) = &view.shadow {
        let choice = match (&shadow.endpoint, shadow.regret_ms) {
            (None, _) => "no endpoint".to_owned(),
            (Some(_), _) if shadow.same => "the same".to_owned(),
            (Some(endpoint), None) => endpoint.clone(),
            (Some(endpoint), Some(regret)) => {
                let way = if regret < 0.0 { "later" } else { "sooner" };
                format!("{endpoint}, ≈ {} {way}", time(f64::from(regret.abs()) / 1000.0))
            }
        };
        lines.push(Line::styled(
            fit(&format!("shadow policy: {choice}"), width),
            theme.style(Tone::Warn),
        ));
    }
    lines.push(Line::default());
    let mut candidates: Vec<&CandidateView> = view.candidates.iter().collect();
    let place = |candidate: &CandidateView| {
        view.order.iter().position(|endpoint| *endpoint == candidate.endpoint).unwrap_or(usize::MAX)
    };
    candidates.sort_by(|one, other| {
        place(one).cmp(&place(other)).then(other.total.total_cmp(&one.total))
    });
    for candidate in candidates {
        lines.extend(candidate_lines(view, candidate, width, theme));
    }
    lines
}

fn candidate_lines(
    view: &DecisionView,
    candidate: &CandidateView,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let is_chosen = view.order.first() == Some(&candidate.endpoint);
    let mark = if is_chosen { "▶ " } else { "  " };
    let predicted = candidate
        .predicted_ttft_ms
        .map_or(String::new(), |ms| format!("TTFT ≈ {}, ", time(f64::from(ms) / 1000.0)));
    let kv = candidate.kv_usage.map_or("–".to_owned(), |usage| percent(f64::from(usage)));
    let age = candidate.scrape_age_ms.map_or("never scraped".to_owned(), |age| {
        format!("signals {} old", time(age as f64 / 1000.0))
    });
    let facts = format!(
        "{predicted}{:.0} waiting, {:.0} running, KV {kv}, {} in flight, {}/{} blocks cached, {age}",
        candidate.waiting,
        candidate.running,
        candidate.in_flight,
        candidate.matched_blocks,
        view.prompt_blocks,
    );
    let name = if is_chosen { Tone::Title } else { Tone::Plain };
    let mut head = vec![Span::styled(
        fit(&format!("{mark}{}  {:.2}", candidate.endpoint, candidate.total), width),
        theme.style(name),
    )];
    if let Some(filter) = &candidate.removed_by {
        head.push(Span::styled(format!("  removed by {}", clean(filter)), theme.style(Tone::Bad)));
    }
    let mut lines = vec![Line::from(head)];
    for (scorer, score) in view.scorers.iter().zip(&candidate.scores) {
        let text =
            format!("    {:<18} {} {score:.2}", clean(&scorer.name), bar(f64::from(*score), BAR));
        lines.push(Line::styled(fit(&text, width), theme.style(Tone::Good)));
    }
    lines.push(Line::styled(fit(&format!("    {facts}"), width), theme.style(Tone::Dim)));
    lines
}

fn page(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>, scroll: u16) {
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(area.height);
    frame.render_widget(Paragraph::new(Text::from(lines)).scroll((scroll.min(most), 0)), area);
}

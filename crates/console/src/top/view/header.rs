//! The three lines on top: which gateway, how it does as a whole, which screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use types::Timestamp;
use unicode_width::UnicodeWidthStr;

use crate::text::{clean, duration, fit, percent, short, time};
use crate::top::app::{App, Screen};
use crate::top::fleet::{Contact, Fleet};
use crate::top::theme::{Theme, Tone};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme, now: Timestamp) {
    let width = usize::from(area.width);
    let (status, tone) = status(app, now);
    let status = fit(&status, width.saturating_sub(12));
    let room = width.saturating_sub(status.width() + 1);
    let identity = fit(&identity(&app.fleet, &app.gateway), room);
    let gap = " ".repeat(width.saturating_sub(status.width() + identity.width()));
    let lines = [
        Line::from(vec![
            Span::styled(identity, theme.style(Tone::Title)),
            Span::raw(gap),
            Span::styled(status, theme.style(tone)),
        ]),
        Line::raw(fit(&totals(&app.fleet), width)),
        tabs(app, width, theme),
    ];
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// Which gateway this is.
pub(in super::super) fn identity(fleet: &Fleet, gateway: &str) -> String {
    match fleet.snapshot() {
        None => format!("wicketgate top  {gateway}"),
        Some(snapshot) => {
            let ready = if snapshot.is_ready { "" } else { "  NOT READY" };
            format!("wicketgate {}  {gateway}{ready}", clean(&snapshot.version))
        }
    }
}

/// Whether what is shown is live.
fn status(app: &App, now: Timestamp) -> (String, Tone) {
    match &app.fleet.contact {
        Contact::None => ("asking…".to_owned(), Tone::Dim),
        Contact::Lost { since, why } => {
            let ago = duration(now.since(*since));
            (format!("no answer for {ago}, trying again: {why}"), Tone::Bad)
        }
        Contact::Live if app.is_paused => ("paused: p goes on".to_owned(), Tone::Warn),
        Contact::Live => match app.fleet.restarted(now) {
            Some(ago) => (format!("the gateway restarted {} ago", duration(ago)), Tone::Warn),
            None => ("live".to_owned(), Tone::Good),
        },
    }
}

/// All pools together, the most important first, so that a narrow terminal cuts off the least.
pub(in super::super) fn totals(fleet: &Fleet) -> String {
    let Some(snapshot) = fleet.snapshot() else { return String::new() };
    if !snapshot.has_metrics {
        return "no rates: /metrics has other names (observability.metricNames: both shows them)"
            .to_owned();
    }
    let pace = fleet.total();
    let or_unknown =
        |value: Option<f64>, write: fn(f64) -> String| value.map_or("–".to_owned(), write);
    let (ready, all) = fleet.ready();
    let window = fleet.window().map_or(String::new(), |window| format!("   over {window:.0} s"));
    format!(
        "{}/{} ready   {} req/s   TTFT {} p95 {}   {} tok/s   429 {}/s   err {}/s   hits {}   {} conns{window}",
        ready,
        all,
        or_unknown(pace.requests, short),
        or_unknown(pace.ttft_p50, time),
        or_unknown(pace.ttft_p95, time),
        or_unknown(pace.output_tokens, short),
        or_unknown(pace.rejected, short),
        or_unknown(pace.errors, short),
        or_unknown(pace.hits, percent),
        short(snapshot.connections),
    )
}

/// Names whole where they fit, else the numbers with the present one's name.
fn tabs(app: &App, width: usize, theme: Theme) -> Line<'static> {
    let whole: usize = Screen::ALL.iter().map(|(_, name)| name.len() + 4).sum();
    let mut spans = Vec::new();
    for (at, (screen, name)) in Screen::ALL.into_iter().enumerate() {
        let is_here = screen == app.screen;
        let text = if is_here || whole <= width {
            format!(" {} {name} ", at + 1)
        } else {
            format!(" {} ", at + 1)
        };
        let style = if is_here { theme.selected() } else { theme.style(Tone::Dim) };
        spans.push(Span::styled(text, style));
    }
    if !app.filter.is_empty() && !app.is_typing {
        spans.push(Span::styled(
            format!("  only `{}`", clean(&app.filter)),
            theme.style(Tone::Warn),
        ));
    }
    Line::from(spans)
}

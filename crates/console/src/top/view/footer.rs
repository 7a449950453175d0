//! The last line: keys that do something here, or the filter while it is typed.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use crate::text::{clean, fit};
use crate::top::app::{App, Over, Screen};
use crate::top::theme::{Theme, Tone};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let width = usize::from(area.width);
    let line = if app.is_typing {
        let text = format!("/{}▏  Enter keeps it, Esc shows all", clean(&app.filter));
        Line::styled(fit(&text, width), theme.style(Tone::Warn))
    } else {
        Line::styled(keys(app, width), theme.style(Tone::Dim))
    };
    frame.render_widget(line, area);
}

/// As many as fit, the most needed first.
fn keys(app: &App, width: usize) -> String {
    let sorted =
        app.sort().column.and_then(|column| app.sheet().columns.get(column).map(|c| c.title));
    let sort = format!("s sort: {}", sorted.unwrap_or("–"));
    let open = match app.screen {
        Screen::Pools => "Enter endpoints",
        Screen::Queues | Screen::Tenants => "",
        _ => "Enter details",
    };
    let pause = if app.is_paused { "p go on" } else { "p pause" };
    let all: &[&str] = match app.over {
        Over::Nothing => &[
            "q quit",
            "? help",
            "1–6 screens",
            "/ filter",
            &sort,
            "r reverse",
            open,
            "↑↓ choose",
            pause,
        ],
        _ => &["q quit", "Esc back", "↑↓ scroll"],
    };
    let mut text = String::new();
    for key in all.iter().filter(|key| !key.is_empty()) {
        let gap = if text.is_empty() { "" } else { "  " };
        if text.width() + gap.len() + key.width() > width {
            break;
        }
        text.push_str(gap);
        text.push_str(key);
    }
    text
}

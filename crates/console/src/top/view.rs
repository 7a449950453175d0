//! What is where on the screen.

mod detail;
mod footer;
pub(super) mod header;
mod help;
mod table;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use types::Timestamp;

use super::app::{App, Over, Screen};
use super::sheet::{Sheet, Sort};
use super::sheets;
use super::theme::{Theme, Tone};

/// Lines from which the fleet's screen shows decisions too.
const DECISIONS_FROM: u16 = 30;
/// Decisions shown there, with the title.
const DECISIONS_LINES: u16 = 7;
/// Smaller than this there is nothing to arrange.
const WIDTH_MIN: u16 = 20;
const HEIGHT_MIN: u16 = 5;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, app: &App, theme: Theme, now: Timestamp) {
    let area = frame.area();
    if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
        frame.render_widget(Line::raw("too small"), area);
        return;
    }
    let [top, body, bottom] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)])
            .areas(area);
    header::draw(frame, top, app, theme, now);
    match &app.over {
        Over::Nothing => screen(frame, body, app, theme),
        Over::Help => help::draw(frame, body, app.scroll, theme),
        Over::Endpoint(id) => detail::endpoint(frame, body, app, id, theme),
        Over::Decision { request_id, receipt } => {
            detail::decision(frame, body, request_id, receipt, app.scroll, theme);
        }
    }
    footer::draw(frame, bottom, app, theme);
}

fn screen(frame: &mut Frame<'_>, area: Rect, app: &App, theme: Theme) {
    let sheet = app.sheet();
    if app.screen != Screen::Fleet {
        return main(frame, area, app, &sheet, theme);
    }
    let mut pools = sheets::pools(&app.fleet);
    // Of many pools the busiest are worth the lines.
    if pools.rows.len() as u16 > area.height / 3 {
        pools.sort(Sort { column: Some(2), reversed: false });
    }
    let shown = (pools.rows.len() as u16).clamp(1, (area.height / 3).max(1));
    // A router makes no receipts.
    let has_receipts = app.fleet.clusters().is_none();
    let decisions = if has_receipts && area.height >= DECISIONS_FROM { DECISIONS_LINES } else { 0 };
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(shown + 2),
        Constraint::Min(0),
        Constraint::Length(decisions),
    ])
    .areas(area);
    table::draw(frame, top, &pools, Sort::default(), None, theme);
    main(frame, middle, app, &sheet, theme);
    if decisions > 0 {
        let mut decisions = sheets::decisions(&app.fleet);
        // The newest; how many more there are is no news.
        decisions.rows.truncate(usize::from(DECISIONS_LINES - 1));
        table::draw(frame, bottom, &decisions, Sort::default(), None, theme);
    }
}

/// The table that keys act on.
fn main(frame: &mut Frame<'_>, area: Rect, app: &App, sheet: &Sheet, theme: Theme) {
    if sheet.rows.is_empty() && !app.filter.is_empty() {
        let text = format!("nothing here has `{}` in its name; Esc shows all", app.filter);
        frame.render_widget(Line::from(Span::styled(text, theme.style(Tone::Dim))), area);
        return;
    }
    table::draw(frame, area, sheet, app.sort(), Some(app.selected(sheet)), theme);
}

//! A sheet on the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::top::sheet::{Sheet, Sort, padded};
use crate::top::theme::{Theme, Tone};

/// Draws as many rows as there is room for; with a selected one, those around it.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    sheet: &Sheet,
    sort: Sort,
    selected: Option<usize>,
    theme: Theme,
) {
    if area.height == 0 {
        return;
    }
    let widths = sheet.widths(area.width);
    let mut lines = vec![Line::styled(sheet.titles(&widths, sort), theme.style(Tone::Title))];
    if sheet.rows.is_empty() {
        lines.push(Line::styled(sheet.empty, theme.style(Tone::Dim)));
    }
    let room = usize::from(area.height - 1);
    let first = first_shown(sheet.rows.len(), room, selected.unwrap_or(0));
    for (at, row) in sheet.rows.iter().enumerate().skip(first).take(room) {
        let is_selected = selected == Some(at);
        let mut spans = Vec::new();
        for ((cell, column), width) in row.cells.iter().zip(&sheet.columns).zip(&widths) {
            if *width == 0 {
                continue;
            }
            if !spans.is_empty() {
                spans.push(Span::raw(" "));
            }
            // A line that is shown reversed has one colour, else it looks torn.
            let tone = if is_selected { Tone::Plain } else { cell.tone };
            spans.push(Span::styled(padded(&cell.text, *width, column.right), theme.style(tone)));
        }
        let line = Line::from(spans);
        lines.push(if is_selected { line.style(theme.selected()) } else { line });
    }
    let more = sheet.rows.len().saturating_sub(first + room);
    if more > 0
        && room > 1
        && let Some(last) = lines.last_mut()
        && selected != Some(first + room - 1)
    {
        *last = Line::styled(format!("… {} more", more + 1), theme.style(Tone::Dim));
    }
    for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// The first row to show, so that the selected one is in sight with what comes after it.
fn first_shown(rows: usize, room: usize, selected: usize) -> usize {
    // The line of `… more` would hide the last one.
    let ends = (selected + 2).min(rows);
    ends.saturating_sub(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_row_is_always_in_sight() {
        for room in 2..6 {
            for selected in 0..20 {
                let first = first_shown(20, room, selected);
                assert!((first..first + room).contains(&selected), "{selected} in {room}");
            }
        }
        assert_eq!(first_shown(3, 5, 2), 0);
    }
}

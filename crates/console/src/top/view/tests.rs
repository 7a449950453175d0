//! Screens as they are, at several sizes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use types::Timestamp;

use super::*;
use crate::top::fleet::testing::{decision, snapshot};
use crate::top::source::News;

fn app() -> App {
    let mut app = App::new("127.0.0.1:9090".to_owned());
    app.fleet.hear(snapshot(1, 100.0));
    app.fleet.hear(snapshot(2, 120.0));
    app
}

fn press(app: &mut App, code: KeyCode) {
    app.press(KeyEvent::new(code, KeyModifiers::NONE));
}

fn screen_at(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let now = Timestamp::from_millis(2500);
    terminal.draw(|frame| draw(frame, app, Theme::new(true), now)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_fleet_fits_eighty_columns() {
    insta::assert_snapshot!(screen_at(&app(), 80, 24));
}

#[test]
fn a_wide_terminal_shows_every_column_and_the_decisions() {
    insta::assert_snapshot!(screen_at(&app(), 160, 45));
}

#[test]
fn a_narrow_terminal_keeps_what_matters_most() {
    insta::assert_snapshot!(screen_at(&app(), 56, 14));
}

#[test]
fn details_help_queues_and_decisions_have_screens() {
    let mut app = app();
    let mut out = String::new();
    for key in [KeyCode::Char('4'), KeyCode::Char('5'), KeyCode::Char('6'), KeyCode::Char('?')] {
        press(&mut app, key);
        out.push_str(&screen_at(&app, 100, 26));
    }
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Char('3'));
    press(&mut app, KeyCode::Enter);
    out.push_str(&screen_at(&app, 100, 26));
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Char('4'));
    press(&mut app, KeyCode::Enter);
    let outcome = Ok(Some(Box::new(decision(0, "10.0.0.1:8000"))));
    app.hear(News::Decision { request_id: "request-0".to_owned(), outcome }, Timestamp::ZERO);
    out.push_str(&screen_at(&app, 100, 26));
    insta::assert_snapshot!(out);
}

#[test]
fn a_gateway_that_does_not_answer_is_told_and_the_last_picture_stays() {
    let mut app = app();
    let now = Timestamp::from_millis(2000);
    app.hear(News::Missed("nothing answers at 127.0.0.1:9090".to_owned()), now);
    let screen = screen_at(&app, 100, 24);
    assert!(screen.contains("no answer for 500 ms, trying again: nothing answers"), "{screen}");
    assert!(screen.contains("10.0.0.1:8000"), "{screen}");
}

#[test]
fn every_screen_can_be_drawn_at_any_size_and_no_name_steers_the_terminal() {
    let mut app = app();
    for digit in '1'..='6' {
        press(&mut app, KeyCode::Char(digit));
        for (width, height) in [(1, 1), (20, 5), (33, 7), (80, 24), (211, 60)] {
            let screen = screen_at(&app, width, height);
            assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{width}×{height}");
        }
    }
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut terminal = Terminal::new(TestBackend::new(160, 45)).unwrap();
    let now = Timestamp::from_millis(2500);
    terminal.draw(|frame| draw(frame, &app(), Theme::new(false), now)).unwrap();
    let reset = ratatui::style::Color::Reset;
    let cells = terminal.backend().buffer().content();
    assert!(cells.iter().all(|cell| cell.fg == reset && cell.bg == reset));
}

//! The terminal: taken over, drawn to, and given back, however this ends.
//!
//! `ratatui` puts the terminal back in a panic; signals become events here, so that they end the loop as
//! `q` does. What happens arrives through one channel; nothing is looked at in vain.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use telemetry::clock;

use super::app::{App, Then};
use super::source::{self, News, Wish};
use super::theme::Theme;
use super::view;
use crate::admin::Admin;

/// Ages on the screen grow even if nothing happens.
const REDRAW: Duration = Duration::from_secs(1);

/// What can happen.
pub(super) enum Event {
    Terminal(TerminalEvent),
    News(News),
    /// SIGTERM and the like.
    Stop,
}

pub(super) fn run(admin: Admin, interval: Duration, theme: Theme) -> anyhow::Result<()> {
    let (events, happened) = channel();
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).context("cannot catch signals")?;
    let handle = signals.handle();
    let stop = events.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            // Nobody left to tell: it ends anyway.
            let _ = stop.send(Event::Stop);
        }
    });
    let app = App::new(admin.authority());
    let mut terminal =
        ratatui::try_init().context("cannot take over the terminal; --once prints plain text")?;
    listen(events.clone());
    let wishes = source::start(admin, interval, events);
    let outcome = show(&mut terminal, app, theme, &happened, &wishes);
    ratatui::restore();
    handle.close();
    outcome
}

/// Reads keys until nobody wants them. The thread ends with the process.
fn listen(events: Sender<Event>) {
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if events.send(Event::Terminal(event)).is_err() {
                return;
            }
        }
        // The terminal is gone.
        let _ = events.send(Event::Stop);
    });
}

fn show(
    terminal: &mut DefaultTerminal,
    mut app: App,
    theme: Theme,
    happened: &std::sync::mpsc::Receiver<Event>,
    wishes: &Sender<Wish>,
) -> anyhow::Result<()> {
    loop {
        let now = clock::now();
        terminal.draw(|frame| view::draw(frame, &app, theme, now)).context("cannot draw")?;
        let mut event = match happened.recv_timeout(REDRAW) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        // All that has happened, then one drawing: pasted keys do not each cost one.
        loop {
            let then = match event {
                Event::Stop => Then::Quit,
                Event::News(news) => {
                    app.hear(news, clock::now());
                    Then::Draw
                }
                Event::Terminal(TerminalEvent::Key(key)) if key.kind != KeyEventKind::Release => {
                    break_on_purpose(key.code);
                    app.press(key)
                }
                Event::Terminal(_) => Then::Draw,
            };
            match then {
                Then::Quit => return Ok(()),
                // The thread that asks has ended: the next look at the channel says so.
                Then::Ask(wish) => drop(wishes.send(wish)),
                Then::Draw => {}
            }
            match happened.try_recv() {
                Ok(next) => event = next,
                Err(_) => break,
            }
        }
    }
}

/// F12 panics in builds for tests, which look whether the terminal comes back.
#[cfg_attr(debug_assertions, expect(clippy::panic, reason = "that is its purpose"))]
fn break_on_purpose(code: event::KeyCode) {
    if cfg!(debug_assertions) && code == event::KeyCode::F(12) {
        #[cfg(debug_assertions)]
        panic!("F12 was pressed");
    }
}

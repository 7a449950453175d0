//! What the user has asked to see, and what keys do to it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use gateway::DecisionView;

use super::fleet::Fleet;
use super::sheet::{Sheet, Sort};
use super::source::{News, Wish};
use super::{sheets, snapshot::Snapshot};
use types::Timestamp;

/// Lines of a page for PgUp and PgDn.
const PAGE: usize = 10;
/// Longest filter.
const FILTER_MAX: usize = 60;

/// One of the screens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Screen {
    /// Pools, endpoints, and the last decisions where there is room.
    #[default]
    Fleet,
    Pools,
    Endpoints,
    Decisions,
    Queues,
    Tenants,
}

/// What lies over the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help,
    /// `pool\nendpoint`.
    Endpoint(String),
    /// A request's receipt, once it is there.
    Decision {
        request_id: String,
        receipt: Receipt,
    },
}

/// The receipt of one request.
#[derive(Clone, Debug)]
pub(super) enum Receipt {
    Asked,
    Here(Box<DecisionView>),
    Gone(String),
}

impl PartialEq for Receipt {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// What a key asks of whoever runs the screen.
#[derive(Clone, Debug, Default)]
pub(super) enum Then {
    #[default]
    Draw,
    Ask(Wish),
    Quit,
}

#[derive(Debug, Default)]
pub(super) struct App {
    pub(super) gateway: String,
    pub(super) fleet: Fleet,
    pub(super) screen: Screen,
    pub(super) over: Over,
    /// By screen.
    sorts: [Sort; 6],
    /// The selected line's id, by screen.
    selected: [Option<String>; 6],
    pub(super) filter: String,
    /// The filter is being typed.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    /// Lines that the detail is scrolled down.
    pub(super) scroll: u16,
}

impl Screen {
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Fleet, "Fleet"),
        (Self::Pools, "Pools"),
        (Self::Endpoints, "Endpoints"),
        (Self::Decisions, "Decisions"),
        (Self::Queues, "Queues"),
        (Self::Tenants, "Tenants"),
    ];

    fn index(self) -> usize {
        Self::ALL.iter().position(|(screen, _)| *screen == self).unwrap_or(0)
    }
}

impl App {
    pub(super) fn new(gateway: String) -> Self {
        Self { gateway, ..Self::default() }
    }

    /// The table that keys act on, as it is shown.
    pub(super) fn sheet(&self) -> Sheet {
        let mut sheet = match self.screen {
            Screen::Fleet | Screen::Endpoints => sheets::servers(&self.fleet),
            Screen::Pools => sheets::pools(&self.fleet),
            Screen::Decisions => sheets::decisions(&self.fleet),
            Screen::Queues => sheets::queues(&self.fleet),
            Screen::Tenants => sheets::tenants(self.fleet.usage()),
        };
        sheet.filter(&self.filter);
        sheet.sort(self.sort());
        sheet
    }

    pub(super) fn sort(&self) -> Sort {
        self.sorts[self.screen.index()]
    }

    /// The selected line of a sheet: where its id stands now, else the first.
    pub(super) fn selected(&self, sheet: &Sheet) -> usize {
        let wanted = self.selected[self.screen.index()].as_deref();
        sheet.rows.iter().position(|row| Some(row.id.as_str()) == wanted).unwrap_or(0)
    }

    pub(super) fn hear(&mut self, news: News, now: Timestamp) {
        match news {
            News::Snapshot(snapshot) => self.hear_snapshot(*snapshot),
            News::Missed(why) => self.fleet.miss(why, now),
            News::Decision { request_id: about, outcome } => {
                if let Over::Decision { request_id, receipt } = &mut self.over
                    && *request_id == about
                {
                    *receipt = match outcome {
                        Ok(Some(view)) => Receipt::Here(view),
                        Ok(None) => Receipt::Gone(
                            "the gateway keeps the last 256 decisions; this one is gone".to_owned(),
                        ),
                        Err(why) => Receipt::Gone(why),
                    };
                }
            }
        }
    }

    fn hear_snapshot(&mut self, snapshot: Snapshot) {
        // While paused the picture stays; that the gateway answers is known all the same.
        if self.is_paused && self.fleet.snapshot().is_some() {
            self.fleet.contact = super::fleet::Contact::Live;
        } else {
            self.fleet.hear(snapshot);
        }
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Then {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Then::Quit;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Then::Draw;
        }
        if self.over != Over::Nothing {
            return self.press_over(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Then::Quit,
            KeyCode::Char(digit @ '1'..='6') => self.show(digit as usize - '1' as usize),
            KeyCode::Tab | KeyCode::Right => {
                self.show((self.screen.index() + 1) % Screen::ALL.len())
            }
            KeyCode::BackTab | KeyCode::Left => {
                self.show((self.screen.index() + Screen::ALL.len() - 1) % Screen::ALL.len());
            }
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.over = Over::Help,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.sort_by_next(),
            KeyCode::Char('r') => {
                let sort = &mut self.sorts[self.screen.index()];
                sort.reversed = !sort.reversed;
            }
            KeyCode::Down | KeyCode::Char('j') => self.step(1, true),
            KeyCode::Up | KeyCode::Char('k') => self.step(1, false),
            KeyCode::PageDown => self.step(PAGE, true),
            KeyCode::PageUp => self.step(PAGE, false),
            KeyCode::Home | KeyCode::Char('g') => self.step(usize::MAX, false),
            KeyCode::End | KeyCode::Char('G') => self.step(usize::MAX, true),
            KeyCode::Enter => return self.open(),
            _ => {}
        }
        Then::Draw
    }

    fn press_over(&mut self, code: KeyCode) -> Then {
        match code {
            KeyCode::Char('q') => return Then::Quit,
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(PAGE as u16),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE as u16),
            KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace | KeyCode::Char('?' | 'h') => {
                self.over = Over::Nothing;
                self.scroll = 0;
            }
            _ => {}
        }
        Then::Draw
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) if !c.is_control() && self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(c);
            }
            _ => {}
        }
    }

    fn show(&mut self, index: usize) {
        if let Some((screen, _)) = Screen::ALL.get(index) {
            self.screen = *screen;
        }
    }

    fn sort_by_next(&mut self) {
        let columns = self.sheet().columns.len();
        let sort = &mut self.sorts[self.screen.index()];
        let next = sort.column.map_or(0, |column| column + 1);
        *sort = Sort { column: (next < columns).then_some(next), reversed: false };
    }

    fn step(&mut self, lines: usize, down: bool) {
        let sheet = self.sheet();
        let at = self.selected(&sheet);
        let to = if down { at.saturating_add(lines) } else { at.saturating_sub(lines) };
        let to = to.min(sheet.rows.len().saturating_sub(1));
        self.selected[self.screen.index()] = sheet.rows.get(to).map(|row| row.id.clone());
    }

    /// Opens what the selected line is about.
    fn open(&mut self) -> Then {
        let sheet = self.sheet();
        let Some(row) = sheet.rows.get(self.selected(&sheet)) else { return Then::Draw };
        let id = row.id.clone();
        self.scroll = 0;
        match self.screen {
            // A member has no endpoint's detail.
            Screen::Fleet | Screen::Endpoints if self.fleet.clusters().is_some() => {}
            Screen::Fleet | Screen::Endpoints => self.over = Over::Endpoint(id),
            Screen::Decisions => {
                self.over = Over::Decision { request_id: id.clone(), receipt: Receipt::Asked };
                return Then::Ask(Wish::Decision(id));
            }
            // A pool's detail is its endpoints.
            Screen::Pools => {
                self.filter = id;
                self.screen = Screen::Endpoints;
            }
            Screen::Queues | Screen::Tenants => {}
        }
        Then::Draw
    }
}

#[cfg(test)]
mod tests {
    use super::super::fleet::testing::{decision, snapshot};
    use super::*;

    fn app() -> App {
        let mut app = App::new("gate:9090".to_owned());
        app.fleet.hear(snapshot(1, 100.0));
        app.fleet.hear(snapshot(2, 120.0));
        app
    }

    fn press(app: &mut App, keys: &str) -> Then {
        let mut then = Then::Draw;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '↓' => KeyCode::Down,
                c => KeyCode::Char(c),
            };
            then = app.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        then
    }

    #[test]
    fn the_selection_stays_with_its_line_when_the_order_changes() {
        let mut app = app();
        press(&mut app, "3↓");
        let before = app.sheet();
        let id = before.rows[app.selected(&before)].id.clone();
        assert_eq!(id, "chat\n10.0.0.2:8000");
        press(&mut app, "sss");
        let after = app.sheet();
        assert_eq!(after.rows[0].id, id, "by KV use the fullest is first");
        assert_eq!(app.selected(&after), 0);
    }

    #[test]
    fn a_filter_is_typed_and_letters_of_it_are_no_commands() {
        let mut app = app();
        press(&mut app, "3/q2");
        assert!(app.is_typing);
        assert_eq!(app.filter, "q2");
        press(&mut app, "\x1b/.2:8\n");
        assert!(!app.is_typing);
        assert_eq!(app.sheet().rows.len(), 1);
        press(&mut app, "\x1b");
        assert_eq!(app.sheet().rows.len(), 4);
    }

    #[test]
    fn a_receipt_is_asked_for_and_one_that_nobody_waits_for_is_dropped() {
        let mut app = app();
        let Then::Ask(Wish::Decision(id)) = press(&mut app, "4\n") else {
            panic!("Enter asks for the receipt")
        };
        let news = |id: &str| News::Decision {
            request_id: id.to_owned(),
            outcome: Ok(Some(Box::new(decision(0, "10.0.0.1:8000")))),
        };
        app.hear(news("another"), Timestamp::ZERO);
        let asked = Over::Decision { request_id: id.clone(), receipt: Receipt::Asked };
        assert_eq!(app.over, asked);
        app.hear(news(&id), Timestamp::ZERO);
        assert!(matches!(&app.over, Over::Decision { receipt: Receipt::Here(_), .. }));
        press(&mut app, "\x1b");
        assert_eq!(app.over, Over::Nothing);
    }

    #[test]
    fn a_pause_keeps_the_picture_and_a_pool_leads_to_its_endpoints() {
        let mut app = app();
        press(&mut app, "p");
        app.hear(News::Snapshot(Box::new(snapshot(9, 900.0))), Timestamp::ZERO);
        assert_eq!(app.fleet.snapshot().unwrap().at, Timestamp::from_millis(2000));
        press(&mut app, "p2↓\n");
        assert_eq!((app.screen, app.filter.as_str()), (Screen::Endpoints, "embed"));
        assert!(matches!(press(&mut app, "q"), Then::Quit));
    }
}

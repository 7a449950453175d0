//! Colours by meaning, and their absence.

use ratatui::style::{Color, Modifier, Style};

/// What a cell's value means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    /// Less important, or not known.
    Dim,
    Good,
    Warn,
    Bad,
    /// Names.
    Name,
    /// Titles of columns.
    Title,
}

/// The sixteen colours that every terminal lets its user choose; none at all if that is wished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colours: bool,
}

impl Theme {
    pub(super) fn new(colours: bool) -> Self {
        Self { colours }
    }

    pub(super) fn style(self, tone: Tone) -> Style {
        let style = Style::default();
        let (colour, modifier) = match tone {
            Tone::Plain => return style,
            Tone::Dim => (Color::DarkGray, Modifier::DIM),
            Tone::Good => (Color::Green, Modifier::empty()),
            Tone::Warn => (Color::Yellow, Modifier::empty()),
            Tone::Bad => (Color::Red, Modifier::BOLD),
            Tone::Name => (Color::Cyan, Modifier::empty()),
            Tone::Title => (Color::Reset, Modifier::BOLD),
        };
        if self.colours && colour != Color::Reset {
            // DIM and a dark colour together are unreadable in many terminals.
            let modifier = if tone == Tone::Dim { Modifier::empty() } else { modifier };
            style.fg(colour).add_modifier(modifier)
        } else {
            style.add_modifier(modifier)
        }
    }

    /// The line that keys act on.
    pub(super) fn selected(self) -> Style {
        Style::default().add_modifier(Modifier::REVERSED)
    }
}

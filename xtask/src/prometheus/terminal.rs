//! A picture of `wicketgate top`: what a real terminal shows, as SVG.

use std::fmt::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::clock::{Stopwatch, wait_until};
use crate::workspace::Workspace;

const COLUMNS: usize = 120;
const LINES: usize = 34;
/// Rates are over ten seconds.
const SETTLE: Duration = Duration::from_secs(12);
const READY_LIMIT: Duration = Duration::from_secs(10);
/// Pixels of one letter, at the size of the text; every letter is placed by its column, whatever the font.
const LETTER: f64 = 7.8;
const LINE: f64 = 17.0;
const PAD: f64 = 14.0;

const STYLE: &str = "
svg { --back: #fbfbfc; --edge: #d9dce3; --ink: #1d2330; --dim: #767d8c; --red: #c02626; --green: #15803d; --yellow: #96690a;
  --blue: #2563c9; --magenta: #9333a8; --cyan: #0e7490; --white: #525866; }
@media (prefers-color-scheme: dark) {
svg { --back: #14161b; --edge: #2c313c; --ink: #e4e7ee; --dim: #8b93a3; --red: #ff7b72; --green: #5fd08a; --yellow: #e5c04b;
  --blue: #6ea8fe; --magenta: #d38bea; --cyan: #4cc7dd; --white: #a7adba; } }
text { white-space: pre; }
.b { font-weight: 700; }
";

/// Runs `top` in a terminal before the gateway at `admin` and draws what it shows.
pub(crate) fn picture(workspace: &Workspace, admin: SocketAddr) -> Result<String> {
    let terminal = Terminal::start(workspace, admin)?;
    let watch = Stopwatch::start();
    wait_until(SETTLE + Duration::from_secs(1), || watch.elapsed() >= SETTLE);
    Ok(draw(&terminal.tmux(&["capture-pane", "-p", "-e"])?))
}

/// A tmux server of its own; ended when dropped.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn start(workspace: &Workspace, admin: SocketAddr) -> Result<Self> {
        let terminal = Self { socket: format!("wicketgate-pictures-{}", std::process::id()) };
        let top = format!("{} top --admin {admin}", workspace.wicketgate().display());
        let (columns, lines) = (COLUMNS.to_string(), LINES.to_string());
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &lines,
            &top,
        ])?;
        terminal.tmux(&["set-option", "-g", "status", "off"])?;
        let shows = || terminal.tmux(&["capture-pane", "-p"]).is_ok_and(|text| text.contains("KV"));
        if !wait_until(READY_LIMIT, shows) {
            bail!("`wicketgate top` shows nothing");
        }
        Ok(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        // `top` reads no description of the terminal, but tmux does.
        command.args(["-u", "-L", &self.socket]).args(arguments).env("TERM", "xterm-256color");
        let output = command.output().context("cannot run tmux")?;
        if !output.status.success() {
            bail!("tmux: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

/// How letters look from here on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Looks {
    colour: Option<&'static str>,
    is_bold: bool,
    is_reversed: bool,
}

/// By number; the bright ones stand behind, of which black is the grey of what matters less.
const COLOURS: [&str; 16] = [
    "ink", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "dim", "red", "green",
    "yellow", "blue", "magenta", "cyan", "ink",
];

impl Looks {
    /// Takes one SGR sequence, the text between `ESC [` and `m`.
    fn take(&mut self, parameters: &str) {
        let mut codes = parameters.split(';').map(|code| code.parse::<usize>().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                7 => self.is_reversed = true,
                22 => self.is_bold = false,
                27 => self.is_reversed = false,
                30..=37 => self.colour = COLOURS.get(code - 30).copied(),
                90..=97 => self.colour = COLOURS.get(code - 90 + 8).copied(),
                39 => self.colour = None,
                // One of 256, of which the first sixteen are those above.
                38 if codes.next() == Some(5) => {
                    self.colour = codes.next().and_then(|number| COLOURS.get(number).copied());
                }
                _ => {}
            }
        }
    }
}

fn draw(screen: &str) -> String {
    let (width, height) = (COLUMNS as f64 * LETTER + 2.0 * PAD, LINES as f64 * LINE + 2.0 * PAD);
    let mut svg = String::new();
    let mut looks = Looks::default();
    for (number, line) in screen.lines().take(LINES).enumerate() {
        let y = PAD + number as f64 * LINE;
        let mut column = 0;
        let mut rest = line;
        while !rest.is_empty() {
            let run = rest.split('\u{1b}').next().unwrap_or("");
            span(&mut svg, (column, y), looks, run);
            column += run.chars().count();
            rest = &rest[run.len()..];
            if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
                if sequence[end..].starts_with('m') {
                    looks.take(&sequence[..end]);
                }
                rest = sequence.get(end + 1..).unwrap_or("");
            } else {
                // Another sequence, of which none is drawn: its first letter goes.
                rest = rest.strip_prefix('\u{1b}').unwrap_or("");
            }
        }
    }
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0}' height='{height:.0}' viewBox='0 0 {width:.0} {height:.0}' \
         font-family='ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace' font-size='13'>\n<style>{STYLE}</style>\n\
         <rect width='100%' height='100%' rx='8' fill='var(--back)' stroke='var(--edge)'/>\n{svg}</svg>\n"
    )
}

/// Letters that look alike. Each word has a place of its own, so that another font does not bend the columns.
fn span(svg: &mut String, (column, y): (usize, f64), looks: Looks, run: &str) {
    let at = |column: usize| PAD + column as f64 * LETTER;
    let colour = looks.colour.unwrap_or("ink");
    let fill = if looks.is_reversed { "back" } else { colour };
    if looks.is_reversed {
        let (x, width) = (at(column), run.chars().count() as f64 * LETTER);
        let _ = writeln!(
            svg,
            "<rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='{LINE}' fill='var(--{colour})'/>"
        );
    }
    let bold = if looks.is_bold { " class='b'" } else { "" };
    let letters: Vec<char> = run.chars().collect();
    let mut from = 0;
    for word in letters.split(|c| *c == ' ') {
        let x = at(column + from);
        let width = word.len() as f64 * LETTER;
        from += word.len() + 1;
        if word.is_empty() {
            continue;
        }
        let text: String = word.iter().collect();
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            svg,
            "<text x='{x:.1}' y='{:.1}' textLength='{width:.1}' lengthAdjust='spacingAndGlyphs' fill='var(--{fill})'{bold}>{text}</text>",
            y + 13.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_places_of_a_screen_are_kept() {
        let svg = draw("a \u{1b}[32mready\u{1b}[39m b\u{1b}[1m<c\u{1b}[0m\n  \u{1b}[7mx\u{1b}[0m");
        let x = |column: usize| format!("x='{:.1}'", PAD + column as f64 * LETTER);
        let line = |text: &str| {
            let found = svg.lines().find(|line| line.contains(&format!(">{text}</text>")));
            found.unwrap_or_else(|| panic!("{text} is not in {svg}")).to_owned()
        };
        assert!(line("ready").contains("--green") && line("ready").contains(&x(2)));
        assert!(line("b").contains("--ink") && line("b").contains(&x(8)));
        assert!(line("&lt;c").contains("class='b'") && line("&lt;c").contains(&x(9)));
        let grey = draw("\u{1b}[38;5;8mg\u{1b}[90mh");
        assert_eq!(grey.matches("fill='var(--dim)'").count(), 2, "{grey}");
        assert!(line("x").contains("--back") && line("x").contains(&x(2)));
    }

    #[test]
    fn a_sequence_that_ends_nowhere_ends_the_line() {
        assert!(draw("ok \u{1b}[31").contains(">ok</text>"));
    }
}

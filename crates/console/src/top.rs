//! `wicketgate top`: the fleet, live, in a terminal.
//!
//! A thread asks the gateway once in each interval ([`source`]), what it says becomes numbers that
//! people read ([`fleet`]), these become tables ([`sheet`]), and tables are drawn ([`view`]) or printed
//! ([`plain`]). The gateway does no more for it than for any scrape.

mod app;
mod fleet;
mod history;
mod plain;
mod sheet;
mod sheets;
mod snapshot;
mod source;
mod terminal;
mod theme;
mod view;

use std::io::IsTerminal;
use std::time::Duration;

use crate::admin::{Admin, AdminFlags};

/// Most time for one answer.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    admin: AdminFlags,

    /// Between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// Print once as plain text and end; so it is when standard output is no terminal
    #[arg(long)]
    once: bool,

    /// No colours; the same as a variable NO_COLOR that is not empty
    #[arg(long)]
    no_color: bool,
}

impl Args {
    /// The same look at another gateway.
    #[must_use]
    pub fn at(mut self, admin: types::EndpointAddress) -> Self {
        self.admin = self.admin.at(admin);
        self
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let bounds = Duration::from_millis(100)..=Duration::from_secs(3600);
    match humantime::parse_duration(text) {
        Ok(time) if bounds.contains(&time) => Ok(time),
        Ok(_) => Err("an interval is 100ms to 1h".to_owned()),
        Err(error) => Err(format!("{error}; write for example 500ms or 2s")),
    }
}

/// Runs until the user quits.
///
/// # Errors
/// When the terminal cannot be used; with `--once` also when no gateway answers.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let admin = Admin::new(&args.admin, TIMEOUT);
    if args.once || !std::io::stdout().is_terminal() {
        return plain::print(&admin, args.interval);
    }
    let no_color = args.no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    terminal::run(admin, args.interval, theme::Theme::new(!no_color))
}

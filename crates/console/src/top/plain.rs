//! `top --once`: the same as plain text, for scripts, logs and whoever has no terminal.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use telemetry::clock;

use super::fleet::Fleet;
use super::snapshot::Snapshot;
use super::{sheets, view};
use crate::admin::Admin;

/// Wide enough for nearly all columns.
const WIDTH: u16 = 150;
/// Decisions that are printed.
const DECISIONS: usize = 10;
/// Tenants that are printed, those that took most.
const TENANTS: usize = 10;

/// Looks twice, `interval` apart, since a rate takes two; prints what it saw.
pub(super) fn print(admin: &Admin, interval: Duration) -> anyhow::Result<()> {
    let mut fleet = Fleet::default();
    fleet.hear(Snapshot::take(admin, clock::now)?);
    pause(interval);
    fleet.hear(Snapshot::take(admin, clock::now)?);
    // A reader that has seen enough (`head`) is no failure.
    match std::io::stdout().write_all(text(&fleet, &admin.authority()).as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// The time between two looks is not a condition that could be waited for.
fn pause(time: Duration) {
    let (_sender, receiver) = channel::<()>();
    let ended: Result<(), RecvTimeoutError> = receiver.recv_timeout(time);
    debug_assert!(ended.is_err());
}

pub(super) fn text(fleet: &Fleet, gateway: &str) -> String {
    let mut out =
        format!("{}\n{}\n\n", view::header::identity(fleet, gateway), view::header::totals(fleet));
    let mut sheets = vec![sheets::pools(fleet), sheets::servers(fleet)];
    // A router has no queues, no tenants and no receipts: these are at the clusters.
    let is_router = fleet.clusters().is_some();
    if fleet.queues().is_some() && !is_router {
        sheets.push(sheets::queues(fleet));
    }
    if !is_router {
        let mut tenants = sheets::tenants(fleet.usage());
        tenants.rows.truncate(TENANTS);
        sheets.push(tenants);
        let mut decisions = sheets::decisions(fleet);
        decisions.rows.truncate(DECISIONS);
        sheets.push(decisions);
    }
    let texts: Vec<String> = sheets.iter().map(|sheet| sheet.plain(WIDTH)).collect();
    out.push_str(&texts.join("\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::super::fleet::testing::snapshot;
    use super::*;

    #[test]
    fn plain_text_has_all_tables_and_no_control_character() {
        let mut fleet = Fleet::default();
        fleet.hear(snapshot(1, 100.0));
        fleet.hear(snapshot(2, 120.0));
        let text = text(&fleet, "127.0.0.1:9090");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        insta::assert_snapshot!(text);
    }
}

//! What a person asks of a running router.

use std::net::SocketAddr;

use anyhow::Context;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use gateway::FleetView;

use crate::admin_client;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Of {
    /// The router's administration address
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_ADMIN", default_value = "127.0.0.1:9090")]
    admin: SocketAddr,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct OfMember {
    /// Name of the member
    member: String,

    #[command(flatten)]
    of: Of,
}

pub(super) fn status(of: &Of) -> anyhow::Result<()> {
    print(of, &admin_client::request(of.admin, "GET", "/debug/fleet", b"")?)
}

pub(super) fn drain(of: &OfMember, is_drained: bool) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if of.member.is_empty() || !of.member.chars().all(plain) {
        anyhow::bail!("`{}` is no name of a member", of.member);
    }
    let action = if is_drained { "drain" } else { "undrain" };
    let body = serde_json::json!({ "action": action }).to_string();
    let path = format!("/debug/fleet/{}", of.member);
    print(&of.of, &admin_client::request(of.of.admin, "POST", &path, body.as_bytes())?)
}

#[expect(clippy::print_stdout, reason = "a command's output")]
fn print(of: &Of, answer: &[u8]) -> anyhow::Result<()> {
    let view: FleetView =
        serde_json::from_slice(answer).context("the router's answer cannot be read")?;
    if of.json {
        println!("{}", serde_json::to_string_pretty(&view)?);
    } else {
        println!("{}", table(&view));
    }
    Ok(())
}

fn table(view: &FleetView) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(["member", "state", "heartbeat", "ramp", "flying", "sent", "share", "url"]);
    for member in &view.members {
        let age = member
            .heartbeat_age_ms
            .map_or("never".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
        let state = if member.drained {
            format!("{} (drained)", member.state)
        } else {
            member.state.clone()
        };
        table.add_row([
            member.member.clone(),
            state,
            age,
            format!("{:.0} %", member.ramp * 100.0),
            member.in_flight.to_string(),
            member.sent.to_string(),
            format!("{:.1} %", member.share * 100.0),
            member.url.clone(),
        ]);
    }
    let mut text = table.to_string();
    if view.frozen {
        text.push_str("\nmost members fell silent at once: this router holds on to what it knew");
    }
    let saved: f64 = view.savings.iter().map(|saving| saving.saved).sum();
    let spent: f64 = view.savings.iter().map(|saving| saving.spent).sum();
    if spent > 0.0 {
        text.push_str(&format!("\nspent {spent:.4}, saved {saved:.4} by shaping, by estimate"));
    }
    for budget in &view.budgets {
        text.push_str(&format!(
            "\nbudget of {}: {:.4} of {:.4} left today",
            budget.tenant, budget.remaining, budget.per_day
        ));
    }
    text
}

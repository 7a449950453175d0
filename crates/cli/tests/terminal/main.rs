//! `wicketgate top` in a real terminal: tmux, which is driven by keys and read as text.
//!
//! Each test has a tmux server, a gateway and a fleet of its own. Needs tmux; hence ignored unless asked for:
//! `cargo xtask test --only terminal`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[path = "../e2e/gateway.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
mod gateway;
#[path = "../e2e/http.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
mod http;
#[path = "../e2e/sims.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
mod sims;
mod terminal;

use serde_json::json;
use sim::Fleet;

use gateway::Gateway;
use http::{CHAT, ask};
use sims::{fast, fleet, prompt};
use terminal::Terminal;

/// A fleet, its gateway, and a request that was served.
async fn stand() -> (Fleet, Gateway) {
    let fleet = fleet(3, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let body = prompt("Hello", 4).to_string();
    let headers = [("X-Request-Id", "seen-in-the-terminal")];
    assert_eq!(ask(gateway.traffic, "POST", CHAT, &headers, body.as_bytes()).await.status, 200);
    (fleet, gateway)
}

fn top(gateway: &Gateway) -> String {
    format!("{} top --interval 100ms --admin {}", gateway::BINARY, gateway.admin)
}

#[tokio::test]
#[ignore = "needs tmux: cargo xtask test --only terminal"]
async fn keys_lead_to_every_screen_at_every_size() {
    let (fleet, gateway) = stand().await;
    let terminal = Terminal::start(80, 24, &top(&gateway));
    let names: Vec<String> =
        fleet.servers().iter().map(|server| server.address().to_string()).collect();
    for name in &names {
        terminal.shows(name).await;
    }
    terminal.shows("3/3 ready").await;
    terminal.shows("q quit").await;
    for (key, wanted) in [
        ("2", "TTFT p50"),
        ("3", "state"),
        ("4", "llama-3.1-8b"),
        ("5", "nothing waits"),
        ("6", "anonymous"),
        ("?", "Keys"),
        ("Escape", "anonymous"),
        ("4", "took"),
        ("3", "flying"),
        ("Enter", "learned speed"),
        ("Escape", "flying"),
    ] {
        terminal.press(key);
        if key == "4" && wanted == "took" {
            terminal.resize(160, 45);
            terminal.shows("seen-in-the-terminal").await;
            terminal.press("Enter");
            terminal.shows("expected-time").await;
            terminal.press("Escape");
        }
        terminal.shows(wanted).await;
    }
    terminal.press("/");
    terminal.press(&names[1]);
    terminal.press("Enter");
    terminal.shows(&format!("only `{}`", names[1])).await;
    terminal.lacks(&names[0]).await;
    terminal.press("Escape");
    terminal.shows(&names[0]).await;
    terminal.press("s");
    terminal.shows("endpoint▼").await;
    terminal.press("p");
    terminal.shows("paused").await;
    terminal.press("p");
    terminal.shows("live").await;
    for (width, height) in [(40, 12), (30, 6), (8, 3), (200, 50)] {
        terminal.resize(width, height);
        terminal.shows(if width < 20 { "too smal" } else { "wicketgate" }).await;
    }
    terminal.press("q");
    terminal.shows("ended 0 in order").await;
}

#[tokio::test]
#[ignore = "needs tmux: cargo xtask test --only terminal"]
async fn the_terminal_comes_back_after_signals_and_panics() {
    let (_fleet, gateway) = stand().await;
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let terminal = Terminal::start(80, 24, &top(&gateway));
        terminal.shows("3/3 ready").await;
        terminal.signal(signal);
        terminal.shows("ended 0 in order").await;
        terminal.lacks("3/3 ready").await;
    }
    let terminal = Terminal::start(80, 24, &top(&gateway));
    terminal.shows("3/3 ready").await;
    terminal.press("C-c");
    terminal.shows("ended 0 in order").await;
    let terminal = Terminal::start(80, 24, &top(&gateway));
    terminal.shows("3/3 ready").await;
    terminal.press("F12");
    terminal.shows("F12 was pressed").await;
    terminal.shows("ended 101 in order").await;
}

#[tokio::test]
#[ignore = "needs tmux: cargo xtask test --only terminal"]
async fn a_gateway_that_restarts_is_found_again_and_that_is_told() {
    let (fleet, gateway) = stand().await;
    let (admin, command) = (gateway.admin, top(&gateway));
    let terminal = Terminal::start(120, 24, &command);
    terminal.shows("live").await;
    drop(gateway);
    terminal.shows("no answer for").await;
    terminal.shows(&fleet.server(0).address().to_string()).await;
    let extra = json!({ "admin": { "address": admin.to_string() } });
    let _again = Gateway::over(&fleet.urls(), extra).await;
    terminal.shows("the gateway restarted").await;
    terminal.lacks("no answer for").await;
}

#[tokio::test]
#[ignore = "needs tmux: cargo xtask test --only terminal"]
async fn colours_are_left_out_when_that_is_wished() {
    let (_fleet, gateway) = stand().await;
    let command = top(&gateway);
    let coloured = Terminal::start(80, 24, &command);
    coloured.shows("3/3 ready").await;
    coloured.shows("q quit").await;
    assert!(coloured.has_colours());
    for command in [format!("{command} --no-color"), format!("env NO_COLOR=1 {command}")] {
        let plain = Terminal::start(80, 24, &command);
        plain.shows("3/3 ready").await;
        plain.shows("q quit").await;
        assert!(!plain.has_colours(), "{command}");
    }
}

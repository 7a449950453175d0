//! `wicketgate explain`.

mod prospects;

use std::net::SocketAddr;

use anyhow::Context;
use comfy_table::{Cell, CellAlignment, Table, presets};
use gateway::{DecisionView, RewriteView, ShadowView};

use crate::admin_client;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The model to ask for
    #[arg(long, value_name = "NAME", required_unless_present_any = ["body", "request_id"])]
    model: Option<String>,

    /// Text of the prompt
    #[arg(long, value_name = "TEXT", default_value = "")]
    prompt: String,

    /// A whole request body (JSON) in a file, instead of --model and --prompt; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "request_id"])]
    body: Option<String>,

    /// Path that the body belongs to
    #[arg(long, value_name = "PATH", default_value = "/v1/chat/completions")]
    path: String,

    /// Ask as this caller of the document (`auth.callers`); without it, as somebody without credentials
    #[arg(long, value_name = "NAME", conflicts_with = "request_id")]
    caller: Option<String>,

    /// Name of the caller's key, where rate limits tell keys apart
    #[arg(long, value_name = "NAME", conflicts_with = "request_id")]
    key: Option<String>,

    /// The objective that the request names
    #[arg(long, value_name = "NAME", conflicts_with = "request_id")]
    objective: Option<String>,

    /// Milliseconds within which the first token has to come
    #[arg(long, value_name = "MS", conflicts_with = "request_id")]
    deadline_ms: Option<u64>,

    /// Explain a request that was decided already, by its x-request-id (of the last 256)
    #[arg(long, value_name = "ID", conflicts_with = "model")]
    request_id: Option<String>,

    /// The gateway's administration address
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_ADMIN", default_value = "127.0.0.1:9090")]
    admin: SocketAddr,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// The same question to another gateway.
    pub(crate) fn at(mut self, admin: SocketAddr) -> Self {
        self.admin = admin;
        self
    }
}

#[derive(serde::Deserialize)]
struct Decisions {
    decisions: Vec<DecisionView>,
}

#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let view = fetch(args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&view)?);
        return Ok(());
    }
    println!("{}", render(&view));
    Ok(())
}

fn fetch(args: &Args) -> anyhow::Result<DecisionView> {
    if let Some(id) = &args.request_id {
        let path = format!("/debug/decisions?request_id={id}&most=1");
        let answer = admin_client::request(args.admin, "GET", &path, b"")?;
        let decisions: Decisions = serde_json::from_slice(&answer)?;
        let decided = decisions.decisions.into_iter().next();
        return decided
            .with_context(|| format!("request {id} is not among the last 256 decisions"));
    }
    let body = match args.body.as_deref() {
        Some("-") => std::io::read_to_string(std::io::stdin())?.into_bytes(),
        Some(file) => std::fs::read(file).with_context(|| format!("cannot read {file}"))?,
        None => serde_json::to_vec(&serde_json::json!({
            "model": args.model,
            "messages": [{ "role": "user", "content": args.prompt }],
        }))?,
    };
    let mut path = format!("/debug/explain?path={}", encoded(&args.path));
    let deadline = args.deadline_ms.map(|deadline| deadline.to_string());
    let parameters = [
        ("caller", &args.caller),
        ("key", &args.key),
        ("objective", &args.objective),
        ("deadline_ms", &deadline),
    ];
    for (name, value) in parameters {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encoded(value)));
        }
    }
    let answer = admin_client::request(args.admin, "POST", &path, &body)?;
    Ok(serde_json::from_slice(&answer)?)
}

/// A value as it can stand in a query.
fn encoded(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn render(view: &DecisionView) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    let mut header = vec!["".to_owned(), "endpoint".to_owned()];
    header.extend(view.scorers.iter().map(|scorer| format!("{} ×{}", scorer.name, scorer.weight)));
    header.extend(
        ["total", "waiting", "running", "KV", "in flight", "matched", "TTFT", "signals", "note"]
            .map(str::to_owned),
    );
    table.set_header(&header);
    for candidate in &view.candidates {
        let place = view.order.iter().position(|endpoint| *endpoint == candidate.endpoint);
        let mut row = vec![
            place.map_or_else(String::new, |place| {
                if place == 0 { "▶".to_owned() } else { format!("{}", place + 1) }
            }),
            candidate.endpoint.clone(),
        ];
        let scores = view.scorers.iter().enumerate();
        row.extend(scores.map(|(at, _)| {
            candidate.scores.get(at).map_or_else(|| "–".to_owned(), |score| format!("{score:.2}"))
        }));
        row.push(format!("{:.2}", candidate.total));
        row.push(format!("{:.0}", candidate.waiting));
        row.push(format!("{:.0}", candidate.running));
        row.push(
            candidate
                .kv_usage
                .map_or_else(|| "–".to_owned(), |usage| format!("{:.0} %", usage * 100.0)),
        );
        row.push(candidate.in_flight.to_string());
        row.push(format!("{}/{}", candidate.matched_blocks, view.prompt_blocks));
        row.push(
            candidate
                .predicted_ttft_ms
                .map_or_else(|| "–".to_owned(), |millis| format!("≈ {millis:.0} ms")),
        );
        row.push(
            candidate
                .scrape_age_ms
                .map_or_else(|| "never".to_owned(), |age| format!("{age} ms old")),
        );
        row.push(note(candidate));
        let cells = row.into_iter().enumerate().map(|(at, text)| {
            let alignment = if at <= 1 || at + 2 >= header.len() {
                CellAlignment::Left
            } else {
                CellAlignment::Right
            };
            Cell::new(text).set_alignment(alignment)
        });
        table.add_row(cells);
    }
    let verdict = match (&view.refused, view.order.first()) {
        (Some(reason), _) => format!("no endpoint: {reason}"),
        (None, Some(best)) => format!("goes to {best}"),
        (None, None) => "no endpoint".to_owned(),
    };
    format!(
        "{}{} (pool {}), about {} prompt tokens, {} blocks: {verdict}\n{table}\nprofile {}, picker {}, decided in {:.1} µs{}{}{}",
        view.rewrite.as_ref().map(rewrite).unwrap_or_default(),
        view.model,
        view.pool,
        view.prompt_tokens,
        view.prompt_blocks,
        view.profile,
        view.picker,
        view.took_us,
        view.shadow.as_ref().map(shadow).unwrap_or_default(),
        view.flow.as_ref().map(prospects::flow).unwrap_or_default(),
        prospects::limits(&view.limits),
    )
}

fn rewrite(view: &RewriteView) -> String {
    let shares: Vec<_> = view
        .shares
        .iter()
        .map(|(target, share)| format!("{target} {:.1} %", share * 100.0))
        .collect();
    let why = if view.sticky { "its key decides" } else { "the next in the split" };
    let (name, rule) = (&view.name, view.rule);
    format!(
        "rewrite {name}, rule {rule}, sends it to {} ({why}; {})\n",
        view.target,
        shares.join(", ")
    )
}

fn shadow(view: &ShadowView) -> String {
    let weights: Vec<_> =
        view.scorers.iter().map(|scorer| format!("{} ×{}", scorer.name, scorer.weight)).collect();
    let choice = match (&view.endpoint, view.regret_ms) {
        (None, _) => "no endpoint".to_owned(),
        (Some(endpoint), _) if view.same => format!("{endpoint} as well"),
        (Some(endpoint), Some(regret)) if regret < 0.0 => {
            format!("{endpoint}, ≈ {:.0} ms later", -regret)
        }
        (Some(endpoint), Some(regret)) => format!("{endpoint}, ≈ {regret:.0} ms sooner"),
        (Some(endpoint), None) => endpoint.clone(),
    };
    format!("\nshadow ({}): {choice}", weights.join(", "))
}

fn note(candidate: &gateway::CandidateView) -> String {
    let mut notes = Vec::new();
    if let Some(filter) = &candidate.removed_by {
        notes.push(format!("removed by {filter}"));
    }
    if candidate.health != "Healthy" {
        notes.push(candidate.health.to_lowercase());
    }
    if candidate.freshness < 0.5 && candidate.scrape_age_ms.is_some() {
        notes.push("signals fading".to_owned());
    }
    if candidate.lora != "Unknown" {
        notes.push(format!("adapter {}", candidate.lora.to_lowercase()));
    }
    notes.join(", ")
}

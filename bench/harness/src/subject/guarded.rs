//! Wicketgate with everything on that is asked of a request before it may go: who sends it, how much they
//! may, and whose turn it is.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::prompts::BEARER;

/// Writes the document and the key of the load's clients; the document's path.
///
/// A caller, an objective and three rules of limits are looked at for each request; all are beyond reach.
pub(super) fn document(
    dir: &Path,
    program: &Path,
    endpoints: &[SocketAddr],
) -> anyhow::Result<PathBuf> {
    let keys = dir.join("keys.yaml");
    import(program, &keys)?;
    let urls: Vec<_> =
        endpoints.iter().map(|at| serde_json::json!({ "url": format!("http://{at}") })).collect();
    const MANY: u64 = 1_000_000_000_000;
    let document = serde_json::json!({
        "apiVersion": "gateway.wicketgate.dev/v1alpha1",
        "kind": "InferenceGatewayConfig",
        "spec": {
            "discover": urls,
            "auth": {
                "apiKeys": { "file": keys },
                "callers": [{ "name": "bench", "match": { "any": true }, "tenant": "bench", "objective": "chat" }],
            },
            "flowControl": {},
            "objectives": [{ "name": "chat", "priority": "Standard", "ttft": "500ms" }],
            "rateLimits": [
                {
                    "name": "tenant",
                    "per": ["tenant"],
                    "requests": { "perMinute": MANY },
                    "tokens": { "perMinute": MANY, "perDay": MANY },
                },
                { "name": "key", "per": ["key"], "requests": { "perSecond": MANY }, "concurrent": 1_000_000 },
                { "name": "model", "per": ["tenant", "model"], "outputTokens": { "perHour": MANY } },
            ],
        },
    });
    let file = dir.join("gateway.json");
    std::fs::write(&file, document.to_string()).context("cannot write the document")?;
    Ok(file)
}

/// Lets the key in that the load shows.
fn import(program: &Path, keys: &Path) -> anyhow::Result<()> {
    let mut child = Command::new(program)
        .args(["keys", "create", "--name", "bench", "--import", "--file"])
        .arg(keys)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(BEARER.as_bytes()).context("the key was not taken")?;
    }
    if !child.wait()?.success() {
        bail!("`wicketgate keys create --import` failed");
    }
    Ok(())
}

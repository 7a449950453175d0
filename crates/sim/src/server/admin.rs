//! Admin calls: faults, state and the request log, at each server and at the fleet's own address.
//!
//! | call | does |
//! | --- | --- |
//! | `POST /admin/fault` | switches a [`Fault`] on (a JSON object) |
//! | `DELETE /admin/fault` | ends all; a closed listener opens again |
//! | `GET /admin/state` | engine, caches, faults, how late the simulator is |
//! | `GET /admin/requests?after=REVISION&wait=MS` | requests that arrived or ended since |
//!
//! At the fleet's address each path is preceded by `/servers/INDEX`, and `GET /servers` lists them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Mode, Server, Shared, listen};
use crate::fault::Fault;
use crate::wire::{Connection, Framing, Request};

/// A status and a JSON body.
pub(super) type Reply = (u16, Value);

/// Answers `path`, which begins with `/admin/`.
pub(super) async fn handle(server: &Server, path: &str, request: &Request) -> Reply {
    match (request.method.as_str(), path) {
        ("POST", "/admin/fault") => match serde_json::from_slice::<Fault>(&request.body) {
            Ok(fault) => {
                server.inject(fault);
                (200, state(server))
            }
            Err(error) => (400, json!({"error": error.to_string()})),
        },
        ("DELETE", "/admin/fault") => {
            server.heal();
            (200, state(server))
        }
        ("GET", "/admin/state") => (200, state(server)),
        ("GET", "/admin/requests") => {
            let number = |name| request.query(name).and_then(|text| text.parse().ok()).unwrap_or(0);
            let wait = Duration::from_millis(number("wait").min(60_000));
            let page = server.log.changed(number("after"), wait).await;
            (200, serde_json::to_value(page).unwrap_or_default())
        }
        _ => (404, json!({"error": "no such admin call"})),
    }
}

fn state(server: &Server) -> Value {
    let up = *server.mode.borrow() == Mode::Up;
    let faults = server.faults().list(Instant::now());
    let core = server.core();
    let stats = core.engine.stats();
    let resident = core.engine.resident_adapters();
    let resident: Vec<&str> = core
        .adapters
        .iter()
        .filter(|(_, id)| resident.contains(id))
        .map(|(name, _)| name.as_str())
        .collect();
    let (finished, aborted) = core.books.totals();
    json!({
        "url": format!("http://{}", server.address),
        "engine": server.spec.engine.as_str(),
        "hardware": server.spec.hardware,
        "model": server.spec.model,
        "adapters": core.adapters.keys().collect::<Vec<_>>(),
        "resident_adapters": resident,
        "listening": up,
        "deaths": core.deaths,
        "requests": core.engine.requests(),
        "running": stats.running,
        "waiting": stats.waiting(),
        "waiting_deferred": stats.waiting_deferred,
        "blocks": stats.blocks,
        "blocks_used": stats.blocks_used,
        "blocks_cached": stats.blocks_cached,
        "prefix_query_tokens": stats.prefix_query_tokens,
        "prefix_hit_tokens": stats.prefix_hit_tokens,
        "preemptions": stats.preemptions,
        "steps": stats.steps,
        "generation_tokens": stats.generation_tokens,
        "finished": finished,
        "aborted": aborted,
        "step_lateness_ms_p99": core.books.lateness_ms_p99(),
        "faults": faults,
    })
}

/// Answers admin calls for all servers on a listener of its own.
pub(crate) async fn control(servers: Vec<Shared>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(converse(servers.clone(), stream));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(servers: Vec<Shared>, stream: TcpStream) {
    let mut connection = Connection::new(stream);
    loop {
        let request = match connection.read().await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(error) => return listen::refuse(&mut connection, &error).await,
        };
        let reply = control_reply(&servers, &request).await;
        if write(&mut connection, reply).await.is_err() || !request.keep_alive {
            return;
        }
    }
}

async fn control_reply(servers: &[Shared], request: &Request) -> Reply {
    if request.path() == "/servers" {
        return (200, servers.iter().map(|server| state(server)).collect());
    }
    let rest = request.path().strip_prefix("/servers/").unwrap_or_default();
    let (index, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match index.parse::<usize>().ok().and_then(|index| servers.get(index)) {
        Some(server) => handle(server, path, request).await,
        None => (404, json!({"error": "no such server"})),
    }
}

pub(super) async fn write(
    connection: &mut Connection,
    (status, body): Reply,
) -> std::io::Result<()> {
    let body = body.to_string();
    let headers = [("content-type", "application/json")];
    connection.head(status, &headers, Framing::Length(body.len()));
    connection.chunk(body.as_bytes());
    connection.flush().await
}

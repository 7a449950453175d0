//! The listener and its connections.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, sleep_until};

use super::{Mode, Server, Shared, route};
use crate::wire::{After, Connection, Framing, ReadError};

/// Pause before listening is tried again on a port that is taken, and after a failed accept.
const RETRY: Duration = Duration::from_millis(50);

/// Accepts connections while the server is up; closes listener and connections while it is down.
pub(crate) async fn listen(server: Shared, listener: TcpListener) {
    let mut mode = server.mode.subscribe();
    let mut listener = Some(listener);
    loop {
        let state = *mode.borrow_and_update();
        match state {
            Mode::Up => {
                let open = match listener.take() {
                    Some(open) => open,
                    None => match TcpListener::bind(server.address).await {
                        Ok(open) => open,
                        Err(_) => {
                            sleep(RETRY).await;
                            continue;
                        }
                    },
                };
                server.listening.send_replace(true);
                // Dropped at the end of this arm: listener and connections go together.
                let mut connections = JoinSet::new();
                while mode.has_changed().is_ok_and(|changed| !changed) {
                    tokio::select! {
                        accepted = open.accept() => match accepted {
                            Ok((stream, _)) => {
                                connections.spawn(converse(server.clone(), stream));
                            }
                            Err(_) => sleep(RETRY).await,
                        },
                        _ = mode.changed() => break,
                        Some(_) = connections.join_next() => {}
                    }
                }
            }
            Mode::Down { until } => {
                listener = None;
                server.listening.send_replace(false);
                let back = async {
                    match until {
                        Some(until) => sleep_until(until).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = back => {
                        server.mode.send_if_modified(|now| {
                            // Another fault may have begun meanwhile.
                            *now == state && std::mem::replace(now, Mode::Up) != Mode::Up
                        });
                    }
                    _ = mode.changed() => {}
                }
            }
        }
    }
}

/// Answers one connection's requests.
async fn converse(server: Arc<Server>, stream: TcpStream) {
    let mut connection = Connection::new(stream);
    let after = loop {
        if !connection.awaits_request(server.spec.keep_alive).await {
            break After::Close;
        }
        match connection.read().await {
            Ok(Some(request)) => {
                let keep_alive = request.keep_alive;
                match route::serve(&server, &mut connection, request).await {
                    After::KeepAlive if keep_alive => {}
                    After::KeepAlive => break After::Close,
                    after => break after,
                }
            }
            Ok(None) | Err(ReadError::Io(_) | ReadError::Truncated) => break After::Close,
            Err(error) => {
                refuse(&mut connection, &error).await;
                break After::Close;
            }
        }
    };
    connection.close(after);
}

pub(super) async fn refuse(connection: &mut Connection, error: &ReadError) {
    let status = if matches!(error, ReadError::TooLarge) { 413 } else { 400 };
    let text = error.to_string();
    let headers = [("content-type", "text/plain"), ("connection", "close")];
    connection.head(status, &headers, Framing::Length(text.len()));
    connection.chunk(text.as_bytes());
    // The peer may be gone; nobody is left to tell.
    let _ = connection.flush().await;
}

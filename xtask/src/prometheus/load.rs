//! Clients that chat with gateways until told to stop.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::watched::{ALIAS, CANARY};
use crate::clock::{Stopwatch, wait_until};
use crate::parts::{ADAPTERS, MODEL};

/// Clients that are always there, and those that come and go.
const CLIENTS: usize = 20;
const WAVE: usize = 40;
/// Seconds from one wave to the next, and how many of them it lasts.
const WAVE_EVERY: u64 = 60;
const WAVE_LASTS: u64 = 25;
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE_LIMIT: Duration = Duration::from_secs(1);
/// Of the shared beginning of all prompts.
const SHARED_WORDS: usize = 600;

/// Clients at work; stopped and waited for when dropped.
#[derive(Debug)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// * `targets`: each client keeps to one of these.
    pub(crate) fn start(targets: &[SocketAddr]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let watch = Stopwatch::start();
        let clients = (0..CLIENTS + WAVE).map(|client| {
            let stop = Arc::clone(&stop);
            let target = targets[client % targets.len()];
            std::thread::spawn(move || {
                let is_done = || stop.load(Ordering::Relaxed);
                let is_due = || {
                    let seconds = watch.elapsed().as_secs() % WAVE_EVERY;
                    client < CLIENTS || seconds >= WAVE_EVERY - WAVE_LASTS
                };
                let mut number = client;
                while !is_done() {
                    if !wait_until(PAUSE_LIMIT, || is_done() || is_due()) || is_done() {
                        continue;
                    }
                    // Who is refused comes again in a moment; other errors are something to see as well.
                    if !matches!(chat(target, number), Ok(200)) {
                        wait_until(PAUSE_LIMIT, is_done);
                    }
                    number += CLIENTS + WAVE;
                }
            })
        });
        Self { clients: clients.collect(), stop }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ = client.join();
        }
    }
}

/// Mostly the base model; now and then an adapter, the alias, the canary by its name, an answer in one piece, a
/// request that is wrong, an objective that is not there. Gives the status.
fn chat(target: SocketAddr, number: usize) -> std::io::Result<u16> {
    let model = match number % 20 {
        3 => ADAPTERS[0],
        7 => ADAPTERS[1],
        9 | 11 | 13 | 15 => ALIAS,
        17 => CANARY,
        _ => MODEL,
    };
    let objective = match number % 23 {
        2..=5 => "chat",
        7..=9 => "batch",
        11 => "not-there",
        _ => "",
    };
    let stream = !number.is_multiple_of(5);
    let tokens =
        if number.is_multiple_of(53) { "0".to_owned() } else { (20 + number % 60).to_string() };
    let shared = "shared ".repeat(SHARED_WORDS);
    let own = format!("question {number} ").repeat(20 + number % 100);
    let usage = if stream { r#","stream_options":{"include_usage":true}"# } else { "" };
    let body = format!(
        r#"{{"model":"{model}","stream":{stream}{usage},"max_tokens":{tokens},"messages":[{{"role":"user","content":"{shared}{own}"}}]}}"#
    );
    let objective = match objective {
        "" => String::new(),
        name => format!("x-gateway-inference-objective: {name}\r\n"),
    };
    let mut connection = TcpStream::connect_timeout(&target, LIMIT)?;
    connection.set_read_timeout(Some(LIMIT))?;
    write!(
        connection,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {target}\r\ncontent-type: application/json\r\n\
         {objective}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let status = String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).parse();
    status.map_err(std::io::Error::other)
}

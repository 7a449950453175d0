//! One page fetched as a scraper does: a connection of its own, timed to the last byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::clock;

const ANSWER_MAX: Duration = Duration::from_secs(20);

/// An answer with status 200.
#[derive(Debug)]
pub struct Page {
    pub body: Vec<u8>,
    /// From before the connection to the last byte.
    pub ns: u64,
}

pub fn fetch(address: SocketAddr, path: &str) -> anyhow::Result<Page> {
    let begin_ns = clock::now_ns();
    let mut stream = TcpStream::connect(address).with_context(|| format!("nobody at {address}"))?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::with_capacity(4 << 20);
    stream.read_to_end(&mut answer)?;
    let ns = clock::now_ns() - begin_ns;
    let head_end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body_at = head_end.context("no head in the answer")? + 4;
    if !answer.starts_with(b"HTTP/1.1 200") {
        bail!("{path}: {}", String::from_utf8_lossy(&answer[..body_at.min(80)]));
    }
    Ok(Page { body: answer.split_off(body_at), ns })
}

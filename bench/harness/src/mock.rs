//! A model server that does as little as a server can: what a gateway costs shows beside it.
//!
//! Plain answers are one write of ready bytes. Streams leave the connection's task and go to one
//! pacer thread with exact deadlines, so that the chunks of many streams are spread evenly instead
//! of ticking together. It is its own process: its CPU is accounted apart, and it can be told and
//! asked over its standard input and output (see [`handle`]).

mod answers;
mod connection;
mod counters;
pub mod handle;
mod pacer;

use std::io::{BufRead, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context;
use tokio::net::TcpListener;

pub use counters::Stats;

/// Digits of the send time in a chunk's text, zero-padded nanoseconds of [`crate::clock`].
pub const STAMP_DIGITS: usize = 20;
/// What stands before those digits.
pub const STAMP_MARK: &[u8] = b"\"T";

/// Serves on `ports` free ports of `host`, loopback or all addresses, until standard input ends.
///
/// Prints one JSON line with the ports. Then reads lines: `stats` prints a line of [`Stats`],
/// `gap_us N` sets the time between chunks of streams that begin later.
pub fn serve(host: IpAddr, ports: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let counters = Arc::new(counters::Counters::new(ports));
    let pacer = pacer::start(Arc::clone(&counters))?;
    let mut addresses = Vec::new();
    for port in 0..ports {
        let listener = runtime.block_on(TcpListener::bind((host, 0)))?;
        addresses.push(listener.local_addr()?.port());
        let shared = connection::Shared { counters: Arc::clone(&counters), pacer: pacer.clone() };
        runtime.spawn(accept(listener, port, shared));
    }
    println!("{}", serde_json::to_string(&addresses)?);
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("control".into()).spawn(move || {
        let _ = obey(&counters);
        let _ = ended.send(());
    })?;
    let _ = runtime.block_on(end);
    Ok(())
}

async fn accept(listener: TcpListener, port: usize, shared: connection::Shared) {
    // An accept that fails (too many files) ends the port: the run then shows failed requests.
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        tokio::spawn(connection::serve(socket, port, shared.clone()));
    }
}

fn obey(counters: &counters::Counters) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line == "stats" {
            writeln!(out, "{}", serde_json::to_string(&counters.read())?)?;
            out.flush()?;
        } else if let Some(gap) = line.strip_prefix("gap_us ") {
            let gap_us: u64 = gap.parse().context("gap_us takes a number")?;
            counters.gap_ns.store(gap_us * 1_000, Ordering::Relaxed);
        }
    }
    Ok(())
}

//! `wicketgate sim`: the command line.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use clap::Parser;
use types::EngineKind;

use crate::engine::TABLE;
use crate::fleet::{Fleet, ServerSpec, StartError};

mod group;

pub use group::{Group, GroupError};

/// Simulated model servers: vLLM, SGLang, TGI or TensorRT-LLM as seen from outside, with the step
/// times of a named model on a named GPU. No GPU is needed.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1", env = "WICKETGATE_SIM_HOST")]
    pub host: IpAddr,

    /// Port of the first server; the others follow. 0: ephemeral ports.
    #[arg(long, default_value_t = 8001)]
    pub port: u16,

    /// Number of servers.
    #[arg(long, default_value_t = 1)]
    pub count: u16,

    /// What a server looks like: vllm, sglang, tgi or trtllm.
    #[arg(long, default_value = "vllm", value_parser = group::engine)]
    pub engine: EngineKind,

    /// Model and node whose speed and memory it has; see --list-hardware.
    #[arg(long, default_value = "llama-3.1-8b/h100")]
    pub hardware: String,

    /// Name under which the model is served. Default: the hardware row's.
    #[arg(long)]
    pub model: Option<String>,

    /// A LoRA adapter that is served from the start (repeatable).
    #[arg(long = "lora", value_name = "NAME")]
    pub loras: Vec<String>,

    /// LoRA adapters on the GPU at once. Default: 4 if any --lora is given, else none.
    #[arg(long)]
    pub max_loras: Option<u32>,

    /// LoRA adapters in host memory. Default: as many as on the GPU.
    #[arg(long)]
    pub max_cpu_loras: Option<u32>,

    /// Requests that one server runs at once. Default: the engine's on this GPU.
    #[arg(long)]
    pub max_num_seqs: Option<u32>,

    /// Requests that may wait at one server before it answers 503. Default: no limit.
    #[arg(long)]
    pub max_num_queued_reqs: Option<u32>,

    /// Median length of an answer that no limit cuts, tokens.
    #[arg(long, default_value_t = 128)]
    pub answer_tokens: u32,

    /// Real time for one unit of modelled time: 2 is half speed, 0.1 is ten times as fast.
    #[arg(long, default_value_t = 1.0)]
    pub time_scale: f64,

    /// Decides answers, their lengths and adapter load times.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    /// A group of servers (repeatable; replaces --count): comma-separated `key=value` with keys
    /// engine, hardware, model, count, port, lora (repeatable), max-loras, max-num-seqs,
    /// max-num-queued-reqs, time-scale, max-model-len, keep-alive (seconds), prefix-caching (on,
    /// off), block-size, version, clock-ahead (seconds), silent (start of the names of metrics that
    /// are left out, repeatable). What a group does not say, the other options say.
    #[arg(long = "server", value_name = "KEY=VALUE,…")]
    pub servers: Vec<Group>,

    /// Answer admin calls for all servers here, also while one has its listener closed.
    #[arg(long, value_name = "ADDR")]
    pub admin: Option<SocketAddr>,

    /// List the rows that --hardware takes, with source and error, and exit.
    #[arg(long)]
    pub list_hardware: bool,
}

/// Why `sim` ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot start")]
    Start(#[from] StartError),
    #[error("--port {port}: no room for {count} servers")]
    Ports { port: u16, count: usize },
    #[error("cannot write to standard output")]
    Output(#[from] std::io::Error),
}

impl Args {
    /// The servers that were asked for, in order; ports are counted up from `--port` unless a
    /// group names one.
    pub fn specs(&self) -> Result<Vec<ServerSpec>, RunError> {
        let whole = Group { count: Some(self.count), ..Group::default() };
        let groups =
            if self.servers.is_empty() { std::slice::from_ref(&whole) } else { &self.servers };
        let total: usize = groups.iter().map(|group| usize::from(group.count.unwrap_or(1))).sum();
        let mut next_port = self.port;
        let mut specs = Vec::with_capacity(total);
        for group in groups {
            next_port = group.port.unwrap_or(next_port);
            for _ in 0..group.count.unwrap_or(1) {
                let bind = SocketAddr::new(self.host, next_port);
                let seed = self.seed.wrapping_add(specs.len() as u64);
                specs.push(group.spec(self, bind, seed));
                if next_port != 0 {
                    next_port = next_port
                        .checked_add(1)
                        .ok_or(RunError::Ports { port: self.port, count: total })?;
                }
            }
        }
        Ok(specs)
    }
}

/// Starts the servers, prints a line for each, and serves until interrupted (SIGINT or SIGTERM).
pub async fn run(args: Args) -> Result<(), RunError> {
    let mut out = std::io::stdout();
    if args.list_hardware {
        writeln!(out, "{:<34} {:>9} {:>6}  {:<10} source", "name", "KV tokens", "seqs", "error")?;
        for row in TABLE {
            let (name, tokens, sequences) = (row.name, row.kv_tokens, row.sequences_max);
            writeln!(
                out,
                "{name:<34} {tokens:>9} {sequences:>6}  {:<10} {}",
                row.error, row.source
            )?;
        }
        return Ok(());
    }
    let mut fleet = Fleet::start(args.specs()?).await?;
    for server in fleet.servers() {
        let spec = server.spec();
        let (engine, hardware, model) = (spec.engine.as_str(), &spec.hardware, &spec.model);
        let loras = if spec.adapters.is_empty() {
            String::new()
        } else {
            format!("  loras {}", spec.adapters.join(","))
        };
        writeln!(out, "{}  {engine}  {hardware}  model {model}{loras}", server.url())?;
    }
    if let Some(address) = args.admin {
        let address = fleet.control(address).await?;
        writeln!(out, "http://{address}/servers  admin of all")?;
    }
    out.flush()?;
    interrupted().await?;
    Ok(())
}

#[cfg(unix)]
async fn interrupted() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn interrupted() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

//! Many simulated servers in one process.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use types::EngineKind;

use crate::engine::{EngineStats, Hardware};
use crate::fault::Fault;
use crate::quirks::Quirks;
use crate::server::{self, LogPage, Server};

/// One simulated server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSpec {
    /// What it looks like from outside: vLLM, SGLang, TGI or TensorRT-LLM.
    pub engine: EngineKind,
    /// A row of [`crate::engine::TABLE`], for example `llama-3.1-8b/h100`.
    pub hardware: String,
    /// Name under which the base model is served.
    pub model: String,
    /// LoRA adapters known from the start.
    pub adapters: Vec<String>,
    /// Adapters on the GPU at once. `None`: 4 if `adapters` are given, else LoRA is off.
    pub max_loras: Option<u32>,
    /// Adapters in host memory. `None`: as many as on the GPU.
    pub max_cpu_loras: Option<u32>,
    /// Where it listens. Port 0: an ephemeral one.
    pub bind: SocketAddr,
    /// Real time for one unit of modelled time: 2 is half speed, 0.1 is ten times as fast.
    pub time_scale: f64,
    /// Decides answers, their lengths, adapter load times and which requests a fault strikes.
    pub seed: u64,
    /// Median length of an answer that no limit cuts, tokens.
    pub answer_tokens: u32,
    /// Overrides of the engine's defaults.
    pub max_num_seqs: Option<u32>,
    pub max_num_batched_tokens: Option<u32>,
    /// Requests that may wait before the server answers 503. `None`: no limit.
    pub max_num_queued_reqs: Option<u32>,
    pub max_model_len: Option<u32>,
    /// KV blocks.
    pub block_count: Option<u32>,
    /// An idle connection is closed after so long; uvicorn's default of 5 s.
    pub keep_alive: Duration,
    pub quirks: Quirks,
}

impl Default for ServerSpec {
    /// vLLM with `llama-3.1-8b` on an H100, on an ephemeral port of 127.0.0.1.
    fn default() -> Self {
        Self {
            engine: EngineKind::Vllm,
            hardware: "llama-3.1-8b/h100".to_owned(),
            model: "llama-3.1-8b".to_owned(),
            adapters: Vec::new(),
            max_loras: None,
            max_cpu_loras: None,
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            time_scale: 1.0,
            seed: 0,
            answer_tokens: 128,
            max_num_seqs: None,
            max_num_batched_tokens: None,
            max_num_queued_reqs: None,
            max_model_len: None,
            block_count: None,
            keep_alive: Duration::from_secs(5),
            quirks: Quirks::default(),
        }
    }
}

impl ServerSpec {
    /// A server that serves the row's model under its usual name. An unknown row is refused by
    /// [`Fleet::start`].
    pub fn new(engine: EngineKind, hardware: &str) -> Self {
        let model = Hardware::find(hardware).map_or(hardware, |row| row.model);
        Self { engine, hardware: hardware.to_owned(), model: model.to_owned(), ..Self::default() }
    }
}

/// Why a fleet did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("unknown hardware `{name}`; known: {known}")]
    Hardware { name: String, known: String },
    #[error("cannot simulate engine `{}`: use vllm, sglang, tgi or trtllm", .0.as_str())]
    Engine(EngineKind),
    #[error("time scale {0} is not a positive number")]
    TimeScale(f64),
    #[error("cannot listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
}

/// Running servers; they end when this is dropped.
#[derive(Debug)]
pub struct Fleet {
    servers: Vec<ServerHandle>,
    control: Option<SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
}

impl Fleet {
    /// Starts the servers on the current tokio runtime. All listen when this returns.
    pub async fn start(specs: Vec<ServerSpec>) -> Result<Self, StartError> {
        let mut fleet = Self { servers: Vec::new(), control: None, tasks: Vec::new() };
        for spec in specs {
            let listener = bind(spec.bind).await?;
            let address = listener
                .local_addr()
                .map_err(|source| StartError::Bind { address: spec.bind, source })?;
            let server = Arc::new(Server::new(spec, address)?);
            fleet.tasks.push(tokio::spawn(server::drive(server.clone())));
            fleet.tasks.push(tokio::spawn(server::listen(server.clone(), listener)));
            fleet.servers.push(ServerHandle { server });
        }
        Ok(fleet)
    }

    /// Also answers admin calls for all servers on one address of its own, which stays up when a
    /// server's listener is closed: `GET /servers`, `POST /servers/0/admin/fault`, …
    pub async fn control(&mut self, address: SocketAddr) -> Result<SocketAddr, StartError> {
        let listener = bind(address).await?;
        let address =
            listener.local_addr().map_err(|source| StartError::Bind { address, source })?;
        let servers = self.servers.iter().map(|handle| handle.server.clone()).collect();
        self.tasks.push(tokio::spawn(server::control(servers, listener)));
        self.control = Some(address);
        Ok(address)
    }

    pub fn servers(&self) -> &[ServerHandle] {
        &self.servers
    }

    /// The server at `index`, in the order of the specs.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn server(&self, index: usize) -> &ServerHandle {
        &self.servers[index]
    }

    /// `http://HOST:PORT` of each server, in the order of the specs.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(ServerHandle::url).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// One running server, from inside the process.
#[derive(Clone, Debug)]
pub struct ServerHandle {
    server: Arc<Server>,
}

impl ServerHandle {
    /// `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn spec(&self) -> &ServerSpec {
        self.server.spec()
    }

    /// Switches a fault on, as `POST /admin/fault` does.
    pub fn fault(&self, fault: impl Into<Fault>) {
        self.server.inject(fault.into());
    }

    /// Ends all faults, as `DELETE /admin/fault` does; a closed listener opens again.
    pub fn heal(&self) {
        self.server.heal();
    }

    /// The engine's gauges and counters at this instant (its metrics page lags by a step).
    pub fn stats(&self) -> EngineStats {
        self.server.stats()
    }

    /// Whether its listener is open. Changes shortly after [`ServerHandle::fault`].
    pub fn listening(&self) -> watch::Receiver<bool> {
        self.server.listening()
    }

    /// Requests that arrived or ended after revision `after`, once there is one; what is there
    /// after `wait` otherwise. Begin with 0 and go on with the revision of the page before.
    pub async fn requests(&self, after: u64, wait: Duration) -> LogPage {
        self.server.log().changed(after, wait).await
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Bind { address, source })
}

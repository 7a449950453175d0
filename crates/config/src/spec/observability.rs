//! What operators see, and what it costs whom.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use types::{PoolName, Ratio};

#[derive(Clone, Debug, PartialEq)]
pub struct Observability {
    pub metrics_enabled: bool,
    pub metric_names: MetricNames,
    /// `None`: nothing is sent there.
    pub cloud_watch: Option<CloudWatch>,
    /// `None`: the document asks for no traces; the environment may.
    pub tracing: Option<Tracing>,
    pub server_timing: ServerTiming,
    pub prefix_alarm: PrefixAlarm,
    pub usage: Usage,
    /// What [`Self::prices`] are in. Default `USD`.
    pub currency: String,
    pub prices: Vec<Price>,
}

/// Whose names metrics have on `/metrics`; at least one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricNames {
    pub wicketgate: bool,
    /// Those of the field's endpoint picker, for what means the same.
    pub field: bool,
    /// OpenTelemetry's for generative AI, likewise.
    pub genai: bool,
}

/// Traces by OTLP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// `http://` or `https://`. `None`: the protocol's port on this machine.
    pub endpoint: Option<String>,
    pub protocol: OtlpProtocol,
    /// Default 0.01.
    pub sample_ratio: Ratio,
    pub follow_parent: bool,
    pub sample_errors: bool,
    pub sample_slower_than: Option<Duration>,
    pub service_name: String,
    /// PEM. `None`: the system's authorities.
    pub ca_file: Option<PathBuf>,
    /// Default 10 s.
    pub timeout: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtlpProtocol {
    #[default]
    HttpProtobuf,
    Grpc,
}

/// Who gets `server-timing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTiming {
    Off,
    /// Clients that send `x-wicketgate-timing`.
    #[default]
    OnRequest,
    Always,
}

/// When a template that shares less than it did is worth an alarm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixAlarm {
    pub enabled: bool,
    /// Half-life of the memory of what just happened. Default 10 s.
    pub within: Duration,
    /// Default 100,000.
    pub loss_tokens_per_hour_min: u64,
}

/// How finely GPU-seconds are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Tenants of a pool. Default 1000.
    pub tenants_max: u32,
    /// Tenants that have series of their own. Default 20.
    pub tenant_series_max: u32,
}

/// What the GPUs behind a scheduler cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    pub scheduler: PoolName,
    /// At least 0.
    pub gpu_hour: f64,
    pub gpus_per_endpoint: NonZeroU32,
}

/// What goes to Amazon CloudWatch, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudWatch {
    pub mode: CloudWatchMode,
    /// Default `Wicketgate`.
    pub namespace: String,
    /// At most 30.
    pub dimensions: BTreeMap<String, String>,
    /// 1 s to 1 h. Default 60 s.
    pub interval: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloudWatchMode {
    /// Lines in the embedded metric format.
    Emf(EmfTarget),
    /// `PutMetricData`.
    Api {
        /// `None`: the environment's.
        region: Option<String>,
        /// `http://` or `https://`; `None`: the region's.
        endpoint: Option<String>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EmfTarget {
    #[default]
    Stdout,
    Stderr,
    /// `HOST:PORT`.
    Tcp(String),
    File(std::path::PathBuf),
}

impl Default for Observability {
    fn default() -> Self {
        Self {
            metrics_enabled: true,
            metric_names: MetricNames::default(),
            cloud_watch: None,
            tracing: None,
            server_timing: ServerTiming::default(),
            prefix_alarm: PrefixAlarm::default(),
            usage: Usage::default(),
            currency: "USD".to_owned(),
            prices: Vec::new(),
        }
    }
}

impl Default for MetricNames {
    fn default() -> Self {
        Self { wicketgate: true, field: false, genai: false }
    }
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            endpoint: None,
            protocol: OtlpProtocol::default(),
            sample_ratio: Ratio::new(0.01).unwrap_or(Ratio::ZERO),
            follow_parent: true,
            sample_errors: true,
            sample_slower_than: None,
            service_name: "wicketgate".to_owned(),
            ca_file: None,
            timeout: Duration::from_secs(10),
        }
    }
}

impl Default for PrefixAlarm {
    fn default() -> Self {
        Self { enabled: true, within: Duration::from_secs(10), loss_tokens_per_hour_min: 100_000 }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { tenants_max: 1000, tenant_series_max: 20 }
    }
}

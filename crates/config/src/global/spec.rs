//! What a global router shall do.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use types::{EndpointAddress, ModelName, TenantName};

use crate::spec::{MutualTls, SecretSource};

/// Everything below `spec` that a gateway of one cluster does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// Where this router is.
    pub region: Option<String>,
    /// In document order, at least one.
    pub members: Vec<MemberSpec>,
    pub routing: Routing,
    /// Towards members with `https`.
    pub member_tls: Option<MutualTls>,
    pub heartbeats: Heartbeats,
    pub store: Store,
    /// Routers that share the global limits.
    pub routers: NonZeroU32,
    /// What holds of global limits when the store is silent.
    pub outage: OutageMode,
    pub tenants: Vec<TenantPolicy>,
}

/// One cluster's gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberSpec {
    /// DNS label, unique.
    pub name: String,
    pub url: EndpointAddress,
    pub region: Option<String>,
    /// Name in the certificate of its reports. `None`: its own.
    pub identity: Option<String>,
    /// Key that it asks for, sent as `Authorization: Bearer KEY`.
    pub api_key: Option<SecretSource>,
    /// Models that it may get. Empty: all that it serves.
    pub models: Vec<ModelName>,
    /// Labels of residency that it satisfies.
    pub residency: Vec<String>,
    pub price: Option<MemberPrice>,
    /// Grams of CO₂ for a kilowatt-hour.
    pub carbon: Option<f64>,
}

/// Money for a million tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemberPrice {
    pub input_per_million: f64,
    pub output_per_million: f64,
    /// Other prices at some times of the day; the first that fits holds.
    pub windows: Vec<PriceWindow>,
}

/// A price between two times of the day, in minutes from midnight UTC; it may go past midnight.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceWindow {
    pub from: u16,
    pub to: u16,
    pub input_per_million: f64,
    pub output_per_million: f64,
}

/// How a member is chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    pub mode: Mode,
    /// For [`Mode::Weights`].
    pub weights: GlobalWeights,
    /// Time to the first token within which price and carbon may decide.
    pub ttft: Duration,
    pub shaping: Shaping,
    /// How long a member that comes back takes to get its whole part. Default 60 s.
    pub ramp: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// By the expected time to the first token.
    #[default]
    Cost,
    /// By AWS's four signals.
    Weights,
}

/// AWS's weights; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalWeights {
    pub kv_headroom: f64,
    pub queue_depth: f64,
    pub region_proximity: f64,
    pub error_rate: f64,
}

/// What decides among members that are fast enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shaping {
    /// The expected time alone.
    #[default]
    Fastest,
    /// The price.
    Cheapest,
    /// Grams of CO₂.
    Greenest,
}

/// Where members report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeats {
    /// Default `0.0.0.0:9005`.
    pub address: SocketAddr,
    /// `None`: not encrypted; on the loopback only.
    pub tls: Option<MutualTls>,
    /// Age from which a member counts for less. Default 6 s.
    pub suspect_after: Duration,
    /// Age from which it gets nothing. Default 10 s.
    pub dead_after: Duration,
}

/// Who holds the state of global limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Store {
    /// This router alone.
    #[default]
    Embedded,
    Redis(RedisStore),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisStore {
    /// `redis://HOST:PORT/DB` or `rediss://…`, without a password.
    pub url: String,
    pub username: Option<String>,
    pub password: Option<SecretSource>,
    /// Before every key. Default `wicketgate`.
    pub prefix: String,
    /// Longest wait for one answer. Default 50 ms.
    pub timeout: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutageMode {
    /// Each router may spend its equal part.
    #[default]
    Safe,
    /// Nothing may be spent.
    Closed,
    /// Each router may spend all.
    Open,
}

/// What holds for the requests of one tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantPolicy {
    pub tenant: TenantName,
    /// Members must have each of these labels of residency.
    pub residency: Vec<String>,
    /// Names of members that it may use. Empty: all.
    pub members: Vec<String>,
    pub shaping: Option<Shaping>,
    pub ttft: Option<Duration>,
    /// Money that its requests may cost in a day (UTC).
    pub budget_per_day: Option<f64>,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            mode: Mode::Cost,
            weights: GlobalWeights::default(),
            ttft: Duration::from_secs(2),
            shaping: Shaping::Fastest,
            ramp: Duration::from_secs(60),
        }
    }
}

impl Default for GlobalWeights {
    fn default() -> Self {
        Self { kv_headroom: 0.25, queue_depth: 0.25, region_proximity: 0.25, error_rate: 0.25 }
    }
}

impl GlobalWeights {
    pub fn sum(&self) -> f64 {
        self.kv_headroom + self.queue_depth + self.region_proximity + self.error_rate
    }
}

impl Default for Heartbeats {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9005)),
            tls: None,
            suspect_after: Duration::from_secs(6),
            dead_after: Duration::from_secs(10),
        }
    }
}

impl RedisStore {
    pub fn new(url: String) -> Self {
        Self {
            url,
            username: None,
            password: None,
            prefix: "wicketgate".to_owned(),
            timeout: Duration::from_millis(50),
        }
    }
}

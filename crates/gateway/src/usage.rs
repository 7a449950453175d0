//! GPU-seconds by pool and tenant, booked when a request has ended.

use serde::{Deserialize, Serialize};
use telemetry::metrics::Usage;
use telemetry::metrics::labels::Work as Kind;

use crate::Gateway;

/// `/debug/usage`. The names of the fields are stable.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageView {
    pub currency: String,
    /// The document's price sheet.
    pub prices: Vec<PriceView>,
    pub rows: Vec<UsageRow>,
}

/// What a pool's GPUs cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PriceView {
    pub pool: String,
    pub gpu_hour: f64,
    pub gpus_per_endpoint: u32,
}

/// One tenant in one pool, since the process began. Seconds are of GPUs: of an endpoint's time, times its
/// GPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageRow {
    pub pool: String,
    pub tenant: String,
    pub requests: u64,
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    pub output_tokens: u64,
    pub prefill_gpu_seconds: f64,
    pub decode_gpu_seconds: f64,
    pub saved_gpu_seconds: f64,
    /// `null` without a price.
    pub cost: Option<f64>,
    /// What prompts did not cost because their beginning was cached.
    pub saved: Option<f64>,
}

impl Gateway {
    pub fn usage_view(&self) -> UsageView {
        let spec = self.spec();
        let observability = &spec.observability;
        let rows = self.metrics.usage().rows().into_iter().map(|(pool, tenant, usage)| {
            let mut prices = observability.prices.iter();
            let price = prices.find(|price| price.scheduler == pool);
            let gpus = price.map_or(1.0, |price| f64::from(price.gpus_per_endpoint.get()));
            row(pool.as_str(), tenant.as_str(), &usage, gpus, price.map(|price| price.gpu_hour))
        });
        let prices = observability.prices.iter().map(|price| PriceView {
            pool: price.scheduler.to_string(),
            gpu_hour: price.gpu_hour,
            gpus_per_endpoint: price.gpus_per_endpoint.get(),
        });
        UsageView {
            currency: observability.currency.clone(),
            prices: prices.collect(),
            rows: rows.collect(),
        }
    }
}

fn row(pool: &str, tenant: &str, usage: &Usage, gpus: f64, gpu_hour: Option<f64>) -> UsageRow {
    let prefill = gpus * usage.seconds.of(Kind::Prefill).get();
    let decode = gpus * usage.seconds.of(Kind::Decode).get();
    let saved = gpus * usage.saved_seconds.get();
    let cost = |seconds: f64| gpu_hour.map(|price| price * seconds / 3600.0);
    UsageRow {
        pool: pool.to_owned(),
        tenant: tenant.to_owned(),
        requests: usage.requests.get(),
        input_tokens: usage.input_tokens.get(),
        cached_input_tokens: usage.cached_input_tokens.get(),
        output_tokens: usage.output_tokens.get(),
        prefill_gpu_seconds: prefill,
        decode_gpu_seconds: decode,
        saved_gpu_seconds: saved,
        cost: cost(prefill + decode),
        saved: cost(saved),
    }
}

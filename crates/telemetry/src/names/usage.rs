//! What requests cost GPUs, by pool and tenant.

use super::{Kind, Metric, Unit, metric};

pub static GPU_SECONDS: Metric = metric(
    "wicketgate_gpu_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool", "kind"],
    "GPU time of finished requests by what it went into, from learned speeds; an estimate (docs/usage.md).",
);

pub static GPU_SAVED_SECONDS: Metric = metric(
    "wicketgate_gpu_saved_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool"],
    "GPU time that prompts did not take because their beginning was cached, likewise.",
);

/// The first tenants that came, and the sum of all others: `observability.usage.tenantSeriesMax`.
pub static TENANT: &[&Metric] = &[&TENANT_GPU_SECONDS, &TENANT_GPU_SAVED_SECONDS];

pub static TENANT_GPU_SECONDS: Metric = metric(
    "wicketgate_tenant_gpu_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool", "tenant", "kind"],
    "As `wicketgate_gpu_seconds_total`, by tenant; further tenants than `observability.usage.tenantSeriesMax` are `_other`.",
);

pub static TENANT_GPU_SAVED_SECONDS: Metric = metric(
    "wicketgate_tenant_gpu_saved_seconds_total",
    Kind::Counter,
    Unit::Seconds,
    &["pool", "tenant"],
    "As `wicketgate_gpu_saved_seconds_total`, likewise.",
);

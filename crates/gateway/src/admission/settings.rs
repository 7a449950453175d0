//! Flow control's settings, from the document's words into the queue's.

use std::num::NonZeroU32;

use config::{BandSpec, Bounds, FlowControl, WhenSaturated};
use flow::{BandConfig, Config, Fairness, Limits, NoEndpoint, OnSaturation, Ordering};
use types::Priority;

pub(crate) fn queue_config(spec: &FlowControl) -> Config {
    let band = |priority: Priority, spec: &BandSpec| band(spec, priority.is_sheddable());
    Config {
        limits: limits(spec.bounds),
        band: band(Priority::STANDARD, &spec.default_band),
        negative_band: band(Priority::SHEDDABLE, &spec.default_band),
        bands: spec
            .bands
            .iter()
            .map(|(priority, spec)| (*priority, band(*priority, spec)))
            .collect(),
        no_endpoint: NoEndpoint {
            ttl: spec.no_endpoint.ttl,
            requests_max: u64::from(spec.no_endpoint.requests_max.get()),
        },
        ..Config::default()
    }
}

fn band(spec: &BandSpec, is_sheddable: bool) -> BandConfig {
    BandConfig {
        limits: limits(spec.bounds),
        flow_limits: limits(spec.flow_bounds),
        ttl: spec.ttl,
        fairness: match spec.fairness {
            config::Fairness::Tokens => Fairness::DeficitRoundRobin,
            config::Fairness::LeastAttainedService => Fairness::LeastAttainedService,
            config::Fairness::Global => Fairness::GlobalOrder,
        },
        ordering: match spec.ordering {
            config::Ordering::Fcfs => Ordering::Fcfs,
            config::Ordering::Deadline => Ordering::Deadline,
            config::Ordering::TtftTarget => Ordering::TtftTarget,
        },
        reserved_share: spec.reserved_share,
        ceiling: spec.ceiling,
        on_saturation: match spec.when_saturated {
            Some(WhenSaturated::Shed) => OnSaturation::Shed,
            Some(WhenSaturated::Queue) => OnSaturation::Queue,
            None if is_sheddable => OnSaturation::Shed,
            None => OnSaturation::Queue,
        },
    }
}

fn limits(bounds: Bounds) -> Limits {
    Limits {
        requests_max: bounds.requests_max.map(NonZeroU32::get).map(u64::from),
        bytes_max: bounds.bytes_max,
        tokens_max: bounds.tokens_max,
    }
}

//! `flowControl` and `objectives`.

use types::{ObjectiveName, PoolName, Priority};

use super::View;
use crate::spec::{
    BandSpec, Bounds, Fairness, FlowControl, Headroom, NoEndpoint, Objective, Ordering,
    WhenSaturated,
};

pub(super) fn flow_control(view: View<'_>) -> FlowControl {
    let default = FlowControl::default();
    let default_band = band(view.get("defaultBand"), &default.default_band);
    let bands = view
        .get("bands")
        .items()
        .filter_map(|item| Some((item.get("priority").priority()?, band(item, &default_band))));
    FlowControl {
        bounds: bounds(view, default.bounds),
        bands: bands.collect(),
        default_band,
        no_endpoint: no_endpoint(view.get("noEndpoint")),
        headroom: headroom(view.get("headroom")),
        revoke: view.get("revoke").flag().unwrap_or(default.revoke),
    }
}

pub(super) fn objective(view: View<'_>) -> Option<Objective> {
    Some(Objective {
        name: ObjectiveName::from(view.get("name").word()?),
        priority: view.get("priority").priority().unwrap_or(Priority::STANDARD),
        ttft: view.get("ttft").duration(),
        scheduler: view.get("scheduler").word().map(PoolName::from),
    })
}

fn band(view: View<'_>, default: &BandSpec) -> BandSpec {
    BandSpec {
        bounds: bounds(view, default.bounds),
        flow_bounds: bounds(view.get("flow"), default.flow_bounds),
        ttl: view.get("ttl").duration().unwrap_or(default.ttl),
        fairness: match view.get("fairness").word() {
            Some("tokens") => Fairness::Tokens,
            Some("least-attained-service") => Fairness::LeastAttainedService,
            Some("global") => Fairness::Global,
            _ => default.fairness,
        },
        ordering: match view.get("ordering").word() {
            Some("fcfs") => Ordering::Fcfs,
            Some("deadline") => Ordering::Deadline,
            Some("ttft") => Ordering::TtftTarget,
            _ => default.ordering,
        },
        reserved_share: view.get("reservedShare").ratio().unwrap_or(default.reserved_share),
        ceiling: view.get("ceiling").ratio().unwrap_or(default.ceiling),
        when_saturated: match view.get("whenSaturated").word() {
            Some("queue") => Some(WhenSaturated::Queue),
            Some("shed") => Some(WhenSaturated::Shed),
            _ => default.when_saturated,
        },
    }
}

fn bounds(view: View<'_>, default: Bounds) -> Bounds {
    Bounds {
        requests_max: view.get("requestsMax").positive().or(default.requests_max),
        bytes_max: view.get("bytesMax").bytes().or(default.bytes_max),
        tokens_max: view.get("tokensMax").integer().or(default.tokens_max),
    }
}

fn headroom(view: View<'_>) -> Headroom {
    let default = Headroom::default();
    Headroom {
        enabled: view.get("enabled").flag().unwrap_or(default.enabled),
        stretch: view.get("stretch").number().map_or(default.stretch, |number| number as f32),
        share: view.get("share").ratio().unwrap_or(default.share),
    }
}

fn no_endpoint(view: View<'_>) -> NoEndpoint {
    let default = NoEndpoint::default();
    NoEndpoint {
        ttl: view.get("ttl").duration().unwrap_or(default.ttl),
        requests_max: view.get("requestsMax").positive().unwrap_or(default.requests_max),
    }
}

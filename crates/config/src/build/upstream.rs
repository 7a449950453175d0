//! `retry`, `ejection`, `prefixIndex` and `scrape`.

use super::View;
use crate::spec::{Ejection, PrefixIndexSpec, Retry, Scrape};

pub(super) fn retry(view: View<'_>) -> Retry {
    let default = Retry::default();
    Retry {
        budget_ratio: view.get("budgetRatio").ratio().unwrap_or(default.budget_ratio),
        budget_floor_per_second: view
            .get("budgetFloorPerSecond")
            .integer()
            .unwrap_or(default.budget_floor_per_second),
    }
}

pub(super) fn ejection(view: View<'_>) -> Ejection {
    let default = Ejection::default();
    Ejection {
        failures: view.get("failures").positive().unwrap_or(default.failures),
        base: view.get("base").duration().unwrap_or(default.base),
        max: view.get("max").duration().unwrap_or(default.max),
        share: view.get("share").ratio().unwrap_or(default.share),
    }
}

pub(super) fn prefix_index(view: View<'_>) -> PrefixIndexSpec {
    let default = PrefixIndexSpec::default();
    PrefixIndexSpec {
        bytes_max: view.get("bytesMax").bytes().unwrap_or(default.bytes_max),
        block_tokens: view.get("blockTokens").positive().unwrap_or(default.block_tokens),
    }
}

pub(super) fn scrape(view: View<'_>) -> Scrape {
    let default = Scrape::default();
    Scrape {
        busy_interval: view.get("busyInterval").duration().unwrap_or(default.busy_interval),
        idle_interval: view.get("idleInterval").duration().unwrap_or(default.idle_interval),
        timeout: view.get("timeout").duration().unwrap_or(default.timeout),
        stale_after: view.get("staleAfter").duration(),
    }
}

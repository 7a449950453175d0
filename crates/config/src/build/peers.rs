//! `peers`.

use std::path::PathBuf;

use super::View;
use crate::spec::Peers;

pub(super) fn peers(view: View<'_>) -> Peers {
    let default = Peers::default();
    Peers {
        listen: view.get("listen").parsed().unwrap_or(default.listen),
        advertise: view.get("advertise").parsed(),
        seeds: view.get("seeds").texts(),
        cluster_id: view.get("clusterId").text().unwrap_or(default.cluster_id),
        key_file: view.get("keyFile").text().map(PathBuf::from),
        flush_interval: view.get("flushInterval").duration().unwrap_or(default.flush_interval),
        silence: view.get("silence").duration().unwrap_or(default.silence),
    }
}

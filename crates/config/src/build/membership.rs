//! `global`.

use std::path::PathBuf;

use super::View;
use crate::spec::{Membership, MutualTls};

pub(super) fn membership(view: View<'_>) -> Membership {
    Membership {
        cluster: view.get("cluster").text().unwrap_or_default(),
        routers: view.get("routers").texts(),
        tls: view.get("tls").present().map(mutual_tls),
        interval: view.get("interval").duration().unwrap_or(Membership::INTERVAL),
    }
}

pub(crate) fn mutual_tls(view: View<'_>) -> MutualTls {
    let file = |key| PathBuf::from(view.get(key).word().unwrap_or_default());
    MutualTls {
        ca_file: file("caFile"),
        cert_file: file("certFile"),
        key_file: file("keyFile"),
        server_name: view.get("serverName").text(),
    }
}

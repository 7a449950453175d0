//! `global`: this gateway as a member of the global tier.

use std::time::Duration;

use super::{Field, Format, Kind, Section};

pub(super) static MEMBERSHIP: Section = Section {
    fields: &[
        Field::ours(
            "cluster",
            Kind::Text(Format::DnsLabel),
            "What the global routers call this cluster: `members[].name` in their document.",
        )
        .required(),
        Field::ours(
            "routers",
            Kind::List { item: &Kind::Text(Format::HostPort), min: 1, max: 50 },
            "Every global router's `heartbeats.address`. A name stands for all its addresses and is \
             resolved again every half minute.",
        )
        .required(),
        Field::ours(
            "tls",
            Kind::Section(&MUTUAL_TLS),
            "Certificate of this cluster, whose name must be `cluster` or what the router's document says. \
             Absent: reports are not encrypted, which is refused except on the loopback.",
        ),
        Field::ours(
            "interval",
            Kind::Duration { min: Duration::from_millis(100), max: Duration::from_secs(10) },
            "Between two reports, give or take a tenth. A drain or a big change is told at once.",
        )
        .default("2s"),
    ],
};

pub(crate) static MUTUAL_TLS: Section = Section {
    fields: &[
        Field::ours(
            "caFile",
            Kind::Text(Format::File),
            "PEM: who may have signed the other side's certificate; read again when it changes.",
        )
        .required(),
        Field::ours(
            "certFile",
            Kind::Text(Format::File),
            "Certificate chain of our own, PEM, leaf first; read again when it changes.",
        )
        .required(),
        Field::ours("keyFile", Kind::Text(Format::File), "Its key, PEM.").required(),
        Field::ours(
            "serverName",
            Kind::Text(Format::DnsName),
            "Name in the other side's certificate, if it is not the host's.",
        ),
    ],
};

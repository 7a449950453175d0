//! `peers`.

use std::time::Duration;

use super::{Field, Format, Kind, Section};

const SECOND: Duration = Duration::from_secs(1);

pub(super) static PEERS: Section = Section {
    fields: &[
        Field::ours(
            "listen",
            Kind::Text(Format::SocketAddress),
            "Where peers are heard: UDP, to be reached by peers only.",
        )
        .default("0.0.0.0:9004"),
        Field::ours(
            "advertise",
            Kind::Text(Format::SocketAddress),
            "Where peers reach this gateway, if that is not `listen`; port 0 is that of `listen`. Absent, \
             with `listen` at all addresses: the address from which the first seed is reached.",
        ),
        Field::ours(
            "seeds",
            Kind::List { item: &Kind::Text(Format::HostPort), min: 0, max: 100 },
            "Some peers; the others are learned from them. A name stands for all its addresses and is \
             resolved again every half minute: name a headless Service.",
        ),
        Field::ours(
            "clusterId",
            Kind::Text(Format::Any(253)),
            "Keeps deployments apart; the same in all peers.",
        )
        .default("wicketgate"),
        Field::ours(
            "keyFile",
            Kind::Text(Format::File),
            "Secret that all peers share, any bytes; line ends around it do not count. Without one, \
             whoever reaches the port can read and forge what peers say.",
        ),
        Field::ours(
            "flushInterval",
            Kind::Duration { min: Duration::from_millis(5), max: SECOND },
            "Between two reports to peers.",
        )
        .default("20ms"),
        Field::ours(
            "silence",
            Kind::Duration { min: SECOND, max: Duration::from_secs(60) },
            "A peer that is silent for so long counts for nothing until it speaks again.",
        )
        .default("1s"),
    ],
};

//! `flowControl` and `objectives`.

use std::time::Duration;

use super::{Field, Format, Kind, Section};

const HOUR: Duration = Duration::from_secs(3600);
const MILLISECOND: Duration = Duration::from_millis(1);
const REQUESTS: Kind = Kind::Integer { min: 1, max: i32::MAX as i64 };
const BYTES: Kind = Kind::Bytes { min: 1024, max: 1 << 40 };
const TOKENS: Kind = Kind::Integer { min: 1, max: 1 << 50 };
const PRIORITY: &str =
    "`Critical` (100), `Standard` (0), `Sheddable` (-10), or a number; the higher goes first.";

pub(super) static FLOW_CONTROL: Section = Section {
    fields: &[
        Field::ours("requestsMax", REQUESTS, "Requests that wait for one pool. Absent: the bands' bounds alone."),
        Field::ours("bytesMax", BYTES, "Bytes of their bodies. Absent: the bands' bounds alone."),
        Field::ours("tokensMax", TOKENS, "Tokens of their work: prompts and expected answers. Absent: not bounded."),
        Field::ours(
            "defaultBand",
            Kind::Section(&BAND_DEFAULT),
            "For priorities without an entry in `bands`, and for what such an entry leaves out.",
        ),
        Field::ours(
            "bands",
            Kind::List { item: &Kind::Section(&BAND), min: 0, max: 64 },
            "How the requests of one priority wait. Requests of a higher priority go first, always, but for `reservedShare`.",
        ),
        Field::ours(
            "noEndpoint",
            Kind::Section(&NO_ENDPOINT),
            "While a pool has no endpoint that could serve: scaled to zero, or all of them gone.",
        ),
        Field::ours(
            "headroom",
            Kind::Section(&HEADROOM),
            "What a flow with more than an equal part of what is in flight, while others ask too, and bands below another one \
             leave free for whoever comes.",
        ),
        Field::ours(
            "revoke",
            Kind::Flag,
            "A `Critical` request that must wait may call back a request of a lower band from its endpoint, if that has not \
             answered its first byte; that one gets 429 with the reason `evicted`.",
        )
        .default("false"),
    ],
};

static NO_ENDPOINT: Section = Section {
    fields: &[
        Field::ours(
            "ttl",
            Kind::Duration { min: Duration::ZERO, max: HOUR },
            "Longest wait for one. `0s`: refuse at once.",
        )
        .default("60s"),
        Field::ours("requestsMax", REQUESTS, "Requests of one pool that wait so.").default("1000"),
    ],
};

static HEADROOM: Section = Section {
    fields: &[
        Field::ours("enabled", Kind::Flag, "Off: everybody fills a pool until its endpoints are full.")
            .default("true"),
        Field::ours(
            "stretch",
            Kind::Number { min: 1.1, max: 1000.0 },
            "They wait once a first token is expected to take so many times as long as on an idle endpoint (mean over the pool, \
             prompt of mean length). Lower: others notice less of them, and less is done in all.",
        )
        .default("2"),
        Field::ours(
            "share",
            Kind::Share,
            "Share of an endpoint's KV cache, and of `saturation.concurrency`, that they fill.",
        )
        .default("0.85"),
    ],
};

static FLOW: Section = Section {
    fields: &[
        Field::ours("requestsMax", REQUESTS, "Requests. Absent: not bounded."),
        Field::ours("bytesMax", BYTES, "Bytes of their bodies. Absent: not bounded."),
        Field::ours("tokensMax", TOKENS, "Tokens of their work. Absent: not bounded."),
    ],
};

/// The fields of a band, `$first` before them.
macro_rules! band {
    ($($first:expr),*) => {
        Section {
            fields: &[
                $($first,)*
                Field::ours("requestsMax", REQUESTS, "Requests of the band that wait for one pool; the next is refused at once.")
                    .default("5000"),
                Field::ours("bytesMax", BYTES, "Bytes of their bodies.").default("1GB"),
                Field::ours("tokensMax", TOKENS, "Tokens of their work. Absent: not bounded."),
                Field::ours("flow", Kind::Section(&FLOW), "What one flow of the band may hold."),
                Field::ours(
                    "ttl",
                    Kind::Duration { min: MILLISECOND, max: HOUR },
                    "Longest wait; then 429 with the reason `ttl-expired`.",
                )
                .default("60s"),
                Field::ours(
                    "fairness",
                    Kind::choice(&["tokens", "least-attained-service", "global"]),
                    "Whose turn it is inside the band: flows in turns by tokens of work, the flow that got the fewest tokens \
                     lately, or one order over all flows.",
                )
                .default("tokens"),
                Field::ours(
                    "ordering",
                    Kind::choice(&["fcfs", "deadline", "ttft"]),
                    "Which request of a flow goes next: the first that came, the one whose time ends first, or the one whose \
                     wanted time to the first token ends first.",
                )
                .default("fcfs"),
                Field::ours(
                    "reservedShare",
                    Kind::Share,
                    "Share of what is dispatched (in tokens) that the band gets whatever waits above it.",
                )
                .default("0"),
                Field::ours(
                    "ceiling",
                    Kind::Share,
                    "Saturation of the pool at which the band's requests wait. Below 1 it keeps room for higher bands.",
                )
                .default("1"),
                Field::ours(
                    "whenSaturated",
                    Kind::choice(&["queue", "shed"]),
                    "Wait for room, or be refused at once. Absent: priorities below zero are shed, others wait.",
                ),
            ],
        }
    };
}

static BAND_DEFAULT: Section = band!();

static BAND: Section = band!(Field::ours("priority", Kind::Priority, PRIORITY).required());

pub(super) static OBJECTIVE: Section = Section {
    fields: &[
        Field::ours(
            "name",
            Kind::Text(Format::DnsName),
            "What requests name in `x-gateway-inference-objective`, and callers in `objective`.",
        )
        .required(),
        Field::ours("priority", Kind::Priority, PRIORITY).default("Standard"),
        Field::ours(
            "ttft",
            Kind::Duration { min: MILLISECOND, max: HOUR },
            "Wanted time to the first token, for the ordering `ttft`.",
        ),
        Field::ours(
            "scheduler",
            Kind::Text(Format::DnsLabel),
            "Holds for this scheduler only. Absent: for all.",
        ),
    ],
};

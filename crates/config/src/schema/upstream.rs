//! The fields of `retry`, `ejection`, `prefixIndex` and `scrape`.

use super::edge::WAIT;
use super::tables::COUNT;
use super::{Field, Kind, Section};

pub(crate) static RETRY: Section = Section {
    fields: &[
        Field::ours("budgetRatio", Kind::Share, "Retries as a share of the requests in flight.")
            .default("0.2"),
        Field::ours(
            "budgetFloorPerSecond",
            Kind::Integer { min: 0, max: 1_000_000 },
            "Retries per second that are always allowed.",
        )
        .default("3"),
    ],
};

pub(super) static EJECTION: Section = Section {
    fields: &[
        Field::ours(
            "failures",
            COUNT,
            "Consecutive resets, 502, 503, 504 or timeouts that eject an endpoint.",
        )
        .default("5"),
        Field::ours("base", WAIT, "First ejection; the n-th in a row takes n times as long.")
            .default("30s"),
        Field::ours("max", WAIT, "Longest ejection; not below `base`.").default("300s"),
        Field::ours("share", Kind::Share, "Most of a pool that may be ejected at one time.")
            .default("0.5"),
    ],
};

pub(super) static PREFIX_INDEX: Section = Section {
    fields: &[
        Field::ours(
            "bytesMax",
            Kind::Bytes { min: 1 << 20, max: 1 << 40 },
            "Memory; the oldest goes first.",
        )
        .default("256MiB"),
        Field::ours(
            "blockTokens",
            Kind::Integer { min: 1, max: 4096 },
            "Prompt tokens in one block, a token counted as four bytes.",
        )
        .default("64"),
    ],
};

pub(super) static SCRAPE: Section = Section {
    fields: &[
        Field::ours("busyInterval", WAIT, "Between two scrapes of an endpoint with requests.")
            .default("100ms"),
        Field::ours(
            "idleInterval",
            WAIT,
            "Between two scrapes of an idle endpoint; not below `busyInterval`.",
        )
        .default("2s"),
        Field::ours("timeout", WAIT, "One scrape.").default("1s"),
        Field::ours(
            "staleAfter",
            WAIT,
            "Age at which a scrape counts for nothing. Absent: two idle intervals and one timeout.",
        ),
    ],
};

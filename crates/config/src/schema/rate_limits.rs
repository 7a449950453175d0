//! The fields of `rateLimits[]`.

use super::{Field, Format, Kind, Section};

/// Rules of one gateway; a request looks at each of them.
pub(crate) const RATE_LIMITS_MAX: usize = 100;
/// Names in one set of a `match`.
const NAMES_MAX: usize = 100_000;

const NUMBER: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000 };
const NAMES: Kind = Kind::List { item: &Kind::Text(Format::Any(256)), min: 1, max: NAMES_MAX };
const ROUTE: Kind = Kind::choice(&[
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/rerank",
    "/v1/score",
    "/v1/audio/transcriptions",
    "/tokenize",
    "/detokenize",
    "/generate",
    "/generate_stream",
    "opened",
]);
const ROUTES: Kind = Kind::List { item: &ROUTE, min: 1, max: 14 };

pub(crate) static RATE_LIMIT: Section = Section {
    fields: &[
        Field::ours(
            "name",
            Kind::Text(Format::DnsLabel),
            "Stands in refusals, metrics and `/debug/limits`.",
        )
        .required(),
        Field::ours(
            "per",
            Kind::List {
                item: &Kind::choice(&["tenant", "key", "model", "route"]),
                min: 0,
                max: 4,
            },
            "One bucket for each combination of these. Empty: one bucket for all requests.",
        )
        .default("[]"),
        Field::ours(
            "match",
            Kind::Section(&MATCH),
            "Only requests that fit each of these. Absent: all requests with a body.",
        ),
        Field::ours("requests", Kind::Section(&AMOUNT), "Requests."),
        Field::ours("inputTokens", Kind::Section(&AMOUNT), "Tokens of prompts."),
        Field::ours("outputTokens", Kind::Section(&AMOUNT), "Tokens of answers."),
        Field::ours("tokens", Kind::Section(&TOKENS), "Tokens of prompts and answers together."),
        Field::ours(
            "concurrent",
            Kind::Integer { min: 1, max: i32::MAX as i64 },
            "Requests at once, each from its head to the end of its answer.",
        ),
        Field::ours(
            "shadow",
            Kind::Flag,
            "Counts and reports what it would refuse, and refuses nothing.",
        )
        .default("false"),
        Field::ours(
            "overrides",
            Kind::List { item: &Kind::Section(&OVERRIDE), min: 0, max: 1000 },
            "Other amounts for some of the buckets; the first that fits counts.",
        ),
    ],
};

static MATCH: Section = Section {
    fields: &[
        Field::ours("tenants", NAMES, "Tenants; requests without credentials are `anonymous`."),
        Field::ours("keys", NAMES, "Names of credentials."),
        Field::ours(
            "models",
            NAMES,
            "Names of models or adapters: as clients ask for them, or as rewrites make them.",
        ),
        Field::ours("routes", ROUTES, "Paths; `opened` stands for all of `allowedPaths`."),
        Field::ours(
            "priorities",
            Kind::List { item: &Kind::Text(Format::Any(32)), min: 1, max: 100 },
            "`Critical`, `Standard`, `Sheddable`, or a number in quotes.",
        ),
    ],
};

static AMOUNT: Section = Section { fields: &[SECOND, MINUTE, HOUR, DAY, BURST] };

static TOKENS: Section = Section {
    fields: &[
        SECOND,
        MINUTE,
        HOUR,
        DAY,
        BURST,
        Field::ours(
            "outputWeight",
            Kind::Number { min: 0.0, max: 1000.0 },
            "What a token of an answer counts beside one of a prompt.",
        )
        .default("1"),
    ],
};

const SECOND: Field = Field::ours("perSecond", NUMBER, "A rate: it refills steadily.");
const MINUTE: Field = Field::ours("perMinute", NUMBER, "A rate: it refills steadily.");
const HOUR: Field = Field::ours("perHour", NUMBER, "A rate: it refills steadily.");
const DAY: Field = Field::ours("perDay", NUMBER, "A budget: it begins anew at midnight UTC.");
const BURST: Field = Field::ours(
    "burst",
    NUMBER,
    "How much may be used at once after a pause. Absent: the whole amount of a period.",
);

static OVERRIDE: Section = Section {
    fields: &[
        Field::ours("tenants", NAMES, "Needs `tenant` in `per`."),
        Field::ours("keys", NAMES, "Needs `key` in `per`."),
        Field::ours("models", NAMES, "Needs `model` in `per`."),
        Field::ours("routes", ROUTES, "Needs `route` in `per`."),
        Field::ours(
            "factor",
            Kind::Number { min: 0.001, max: 1_000_000.0 },
            "Times the amounts of the rule.",
        )
        .required(),
    ],
};

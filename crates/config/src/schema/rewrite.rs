//! `modelRewrites[]`: the spec of `InferenceModelRewrite` (`llm-d.ai/v1alpha2`) with a name, and ours
//! beside it.

use std::time::Duration;

use super::{Field, Format, Kind, Section};

const MODEL: Kind = Kind::Text(Format::ModelName);
/// As `InferenceModelRewrite` has it, but that 0 is allowed: a rollout begins there.
const WEIGHT: Kind = Kind::Integer { min: 0, max: 1_000_000 };

pub(super) static MODEL_REWRITE: Section = Section {
    fields: &[
        Field::ours(
            "name",
            Kind::Text(Format::DnsName),
            "Names it in metrics, in the access log and for `wicketgate rollout`; unique.",
        )
        .required(),
        Field::ours(
            "poolRef",
            Kind::Section(&POOL_REF),
            "Only requests that would go to this pool, and names that nobody serves. Absent: all.",
        ),
        Field::ours(
            "rules",
            Kind::List { item: &Kind::Section(&RULE), min: 1, max: 256 },
            "The first that matches decides, but those with `matches` come before those without, \
             over the whole document. A name is rewritten once: no rule sees what another made of it.",
        )
        .required(),
    ],
};

static POOL_REF: Section = Section {
    fields: &[
        Field::ours("name", Kind::Text(Format::DnsLabel), "Name of a scheduler.").required(),
        Field::ours("group", Kind::Opaque, "Ignored here."),
        Field::ours("kind", Kind::Opaque, "Ignored here."),
    ],
};

static RULE: Section = Section {
    fields: &[
        Field::ours(
            "matches",
            Kind::List { item: &Kind::Section(&MATCH), min: 0, max: 256 },
            "Models that clients ask for; any of them will do. Empty: every model. Names that nobody \
             serves are allowed here, clients can use them, and `/v1/models` lists them.",
        ),
        Field::ours(
            "targets",
            Kind::List { item: &Kind::Section(&TARGET), min: 1, max: 16 },
            "Models that requests go to instead, by weight. Either all have a weight or none: then \
             each gets the same share. The share of a target that nobody serves goes to the others.",
        )
        .required(),
        Field::ours(
            "sticky",
            Kind::choice(&["none", "session", "user"]),
            "What keeps its target: nothing, so that the split is exact; a session (the header \
             `x-session-id`); or a user (`user` in the body, else who is authenticated). Requests \
             without that are split exactly.",
        )
        .default("none"),
        Field::ours(
            "mirror",
            Kind::Section(&MIRROR),
            "Copies requests to a further model and drops the answers. Built-in proxy only.",
        ),
        Field::ours(
            "rollback",
            Kind::Section(&ROLLBACK),
            "Takes a target's traffic away once it does worse than the stable target. Absent: never.",
        ),
    ],
};

static MATCH: Section = Section {
    fields: &[Field::ours("model", Kind::Section(&MODEL_MATCH), "The body's `model`.").required()],
};

static MODEL_MATCH: Section = Section {
    fields: &[
        Field::ours("type", Kind::choice(&["Exact"]), "How it is compared.").default("Exact"),
        Field::ours("value", MODEL, "The name.").required(),
    ],
};

static TARGET: Section = Section {
    fields: &[
        Field::ours("weight", WEIGHT, "Its part of the sum of all weights."),
        Field::ours(
            "modelRewrite",
            MODEL,
            "Model or LoRA adapter that the endpoint is asked for, of any pool. Answers still carry \
             the name that the client asked for.",
        )
        .required(),
        Field::ours(
            "stable",
            Kind::Flag,
            "The target that others are judged by, and that gets what is taken from them. Of a rule \
             in which none says so: the heaviest.",
        )
        .default("false"),
    ],
};

static MIRROR: Section = Section {
    fields: &[
        Field::ours("modelRewrite", MODEL, "Model that the copies ask for.").required(),
        Field::ours("share", Kind::Share, "Share of the rule's requests that is copied.")
            .default("1"),
        Field::ours(
            "concurrencyMax",
            Kind::Integer { min: 1, max: 10_000 },
            "Copies under way at one time; what comes beyond is not copied.",
        )
        .default("32"),
    ],
};

static ROLLBACK: Section = Section {
    fields: &[
        Field::ours(
            "errorRate",
            Kind::Share,
            "By how much the target's share of failed requests may exceed the stable target's. Failed \
             are 5xx and broken answers, not clients' own errors.",
        )
        .default("0.05"),
        Field::ours(
            "ttftRatio",
            Kind::Number { min: 1.0, max: 100.0 },
            "How many times the stable target's P95 TTFT (of streams) the target's may be.",
        )
        .default("1.5"),
        Field::ours(
            "ttftSlack",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(600) },
            "How much longer it may be in any case.",
        )
        .default("50ms"),
        Field::ours(
            "window",
            Kind::Duration { min: Duration::from_secs(1), max: Duration::from_secs(86_400) },
            "How far back both are looked at.",
        )
        .default("5m"),
        Field::ours(
            "minRequests",
            Kind::Integer { min: 1, max: 1_000_000 },
            "Requests in the window below which a target is not judged.",
        )
        .default("50"),
    ],
};

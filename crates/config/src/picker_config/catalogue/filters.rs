//! Filters and pickers that we have.

use super::parameters::{NAME, POSITIVE, free, producer};
use super::{Plugin, Section, Slot, Support};
use crate::picker_config::document::NOT_NEGATIVE;
use crate::schema::{Field, Format, Kind};

const fn filter(name: &'static str, help: &'static str) -> Plugin {
    Plugin::new(name, Slot::Filter, Support::Kept, help)
}

const fn picker(name: &'static str, help: &'static str) -> Plugin {
    Plugin::new(name, Slot::Picker, Support::Kept, help).with(&PICKER)
}

const fn detector(name: &'static str, help: &'static str) -> Plugin {
    Plugin::new(name, Slot::Detector, Support::Kept, help)
}

pub(super) static FILTERS: &[Plugin] = &[
    filter("label-selector-filter", "Keeps endpoints whose labels the selector selects.")
        .with(&SELECTOR),
    filter("by-label-selector", "Older name of `label-selector-filter`.").with(&SELECTOR),
    filter("by-label", "Keeps endpoints with one of the values in a label.").with(&BY_LABEL),
    filter(
        "decode-filter",
        "Keeps endpoints whose label `llm-d.ai/role` is absent, `decode`, `prefill-decode`, \
         `encode-prefill-decode` or `both`.",
    ),
    filter("utilization-filter", "Drops endpoints above any of the ceilings.").with(&UTILIZATION),
    filter(
        "prefix-cache-affinity-filter",
        "Keeps endpoints that hold most of the prompt, while none other is that much sooner.",
    )
    .with(&PREFIX_AFFINITY),
    picker("max-score-picker", "The highest total; equals at random."),
    picker("weighted-random-picker", "At random, in proportion to the totals."),
    picker("random-picker", "At random, whatever the totals."),
    detector(
        "utilization-detector",
        "Full at so many waiting requests or, while some wait, so much KV use. In a profile: drops \
         endpoints at either limit and stale ones, unless that is all of them.",
    )
    .with(&UTILIZATION_DETECTOR)
    .idle(&["metricsStalenessThreshold", "stalenessPolicy"]),
    detector(
        "concurrency-detector",
        "Full at so many requests in flight. In a profile: drops endpoints at the limit.",
    )
    .with(&CONCURRENCY_DETECTOR),
];

static SELECTOR: Section = Section {
    fields: &[
        Field::aws("matchLabels", Kind::Labels, "Labels that it must have."),
        Field::aws(
            "matchExpressions",
            Kind::List { item: &Kind::Section(&REQUIREMENT), min: 0, max: 100 },
            "Further conditions; all must hold.",
        ),
    ],
};

static REQUIREMENT: Section = Section {
    fields: &[
        Field::aws("key", Kind::Text(Format::Any(317)), "Label.").required(),
        Field::aws(
            "operator",
            Kind::choice(&["In", "NotIn", "Exists", "DoesNotExist"]),
            "How it is compared.",
        )
        .required(),
        Field::aws("values", VALUES, "For `In` and `NotIn` only."),
    ],
};

const VALUES: Kind = Kind::List { item: &Kind::Text(Format::Any(63)), min: 0, max: 1000 };

static BY_LABEL: Section = Section {
    fields: &[
        Field::aws("label", Kind::Text(Format::Any(317)), "Label.").required(),
        Field::aws("validValues", VALUES, "Values that it may have."),
        Field::aws("allowsNoLabel", Kind::Flag, "Keeps endpoints without the label.")
            .default("false"),
    ],
};

static UTILIZATION: Section = Section {
    fields: &[
        Field::aws(
            "conditions",
            Kind::List { item: &Kind::Section(&CONDITION), min: 1, max: 20 },
            "The ceilings.",
        )
        .required(),
        Field::aws("fallbackOnEmpty", Kind::Flag, "Keep all if none would be left.")
            .default("false"),
        producer("inFlightLoadProducerName"),
    ],
};

static CONDITION: Section = Section {
    fields: &[
        Field::aws(
            "metric",
            Kind::choice(&[
                "active-requests",
                "running-requests",
                "waiting-queue",
                "kv-cache-utilization",
            ]),
            "What is counted.",
        )
        .required(),
        Field::aws("maxValue", NOT_NEGATIVE, "The most that is kept; KV use is 0 to 1.").required(),
    ],
};

static PREFIX_AFFINITY: Section = Section {
    fields: &[
        Field::aws("affinityThreshold", Kind::Share, "Share of the prompt that must be held.")
            .default("0.8"),
        Field::aws(
            "explorationProbability",
            Kind::Share,
            "Here 0 only: a prefix reaches further endpoints when its holders are busy.",
        )
        .default("0"),
        Field::aws(
            "maxTTFTPenaltyMs",
            NOT_NEGATIVE,
            "How much longer holders may take. 0: no limit.",
        )
        .default("18000"),
        Field::aws(
            "ttftSource",
            Kind::choice(&["prefillThroughput", "latencyPredictor"]),
            "Prompt tokens in flight by `peakPrefillThroughput`, or the endpoints' learned speeds.",
        )
        .default("prefillThroughput"),
        Field::aws(
            "peakPrefillThroughput",
            Kind::Number { min: 1.0, max: 1e9 },
            "Prompt tokens per second.",
        )
        .default("15928"),
        producer("prefixMatchInfoProducerName"),
        producer("latencyPredictionInfoProducerName"),
        producer("inFlightLoadProducerName"),
    ],
};

static PICKER: Section = Section {
    fields: &[Field::aws(
        "maxNumOfEndpoints",
        Kind::Integer { min: 1, max: 4 },
        "`epp --destinations` says how many endpoints a proxy is told of, the best first.",
    )
    .default("1")],
};

static UTILIZATION_DETECTOR: Section = Section {
    fields: &[
        Field::aws("queueDepthThreshold", POSITIVE, "Waiting requests.").default("5"),
        Field::aws("kvCacheUtilThreshold", Kind::Number { min: 0.001, max: 1.0 }, "KV use.")
            .default("0.8"),
        Field::aws("headroom", NOT_NEGATIVE, "In a profile: how much either may be exceeded.")
            .default("0"),
        free(
            "metricsStalenessThreshold",
            "Stale is what misses several of the scrapes that its endpoint is really given; \
             `scrape.staleAfter` sets it.",
        ),
        free("stalenessPolicy", "Stale endpoints go by what we have sent them."),
    ],
};

static CONCURRENCY_DETECTOR: Section = Section {
    fields: &[
        Field::aws("maxConcurrency", POSITIVE, "Requests in flight.").default("100"),
        Field::aws(
            "maxTokenConcurrency",
            Kind::Integer { min: 1, max: i64::MAX },
            "Prompt tokens in flight; in a profile only.",
        )
        .default("1000000"),
        Field::aws(
            "concurrencyMode",
            Kind::choice(&["requests", "tokens", "hybrid"]),
            "What is counted.",
        )
        .default("requests"),
        Field::aws("headroom", NOT_NEGATIVE, "In a profile: how much either may be exceeded.")
            .default("0"),
        Field::aws("inFlightLoadProducerName", NAME, "Any: there is one of each producer."),
    ],
};

//! The fields of the document, apart from its plugins' parameters.
//!
//! Source: `apix/config/v1alpha1` of llm-d's router.

use std::time::Duration;

use crate::schema::{Field, Format, Kind, Section};

const NAME: Kind = Kind::Text(Format::Any(253));
const WAIT: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::MAX };
const REFERENCE: &str = "Name of an entry of `plugins`.";

const fn reference(key: &'static str) -> Field {
    Field::aws(key, NAME, REFERENCE)
}

pub(crate) static DOCUMENT: Section = Section {
    fields: &[
        Field::aws(
            "apiVersion",
            NAME,
            "`llm-d.ai/v1alpha1`, or the older `inference.networking.x-k8s.io/v1alpha1`.",
        )
        .required(),
        Field::aws("kind", NAME, "`EndpointPickerConfig`.").required(),
        Field::aws(
            "featureGates",
            Kind::List { item: &NAME, min: 0, max: 50 },
            "`NAME`, or `NAME=true` and `NAME=false`.",
        ),
        Field::aws(
            "plugins",
            Kind::List { item: &Kind::Section(&PLUGIN), min: 0, max: 200 },
            "What there is to choose by.",
        ),
        Field::aws(
            "schedulingProfiles",
            Kind::List { item: &Kind::Section(&PROFILE), min: 0, max: 20 },
            "How it is chosen: here, one profile. Absent: all filters, scorers and the picker of \
             `plugins`, each with weight 1.",
        ),
        Field::aws("dataLayer", Kind::Section(&DATA_LAYER), "Where signals come from."),
        Field::aws(
            "flowControl",
            Kind::Section(&FLOW_CONTROL),
            "Queues. In force with the feature gate `flowControl` only.",
        ),
        Field::aws("requestHandler", Kind::Section(&REQUEST_HANDLER), "How bodies are read."),
        Field::aws(
            "saturationDetector",
            Kind::Section(&REFERENCE_TO),
            "Older place of `flowControl.saturationDetector`.",
        ),
        Field::aws(
            "parser",
            Kind::Section(&REFERENCE_TO),
            "Older place of `requestHandler.parsers`.",
        ),
    ],
};

static PLUGIN: Section = Section {
    fields: &[
        Field::aws("name", NAME, "What others call it by; the type if absent."),
        Field::aws("type", NAME, "What it is.").required(),
        Field::aws("parameters", Kind::Opaque, "As its type takes them."),
    ],
};

static PROFILE: Section = Section {
    fields: &[
        Field::aws("name", NAME, "Free.").required(),
        Field::aws(
            "plugins",
            Kind::List { item: &Kind::Section(&PROFILE_PLUGIN), min: 0, max: 100 },
            "Filters and scorers in order, and at most one picker.",
        )
        .required(),
    ],
};

/// Weights are no more than an `f32` holds.
pub(super) const NOT_NEGATIVE: Kind = Kind::Number { min: 0.0, max: f32::MAX as f64 };

static PROFILE_PLUGIN: Section = Section {
    fields: &[
        reference("pluginRef").required(),
        Field::aws("weight", NOT_NEGATIVE, "Of a scorer.").default("1"),
    ],
};

static REFERENCE_TO: Section = Section { fields: &[reference("pluginRef")] };
static REQUIRED_REFERENCE: Section = Section { fields: &[reference("pluginRef").required()] };

const REFERENCES: Kind = Kind::List { item: &Kind::Section(&REQUIRED_REFERENCE), min: 0, max: 50 };

static DATA_LAYER: Section = Section {
    fields: &[
        Field::aws("injectDefaults", Kind::Flag, "Whether metrics are read at all.")
            .default("true"),
        Field::aws(
            "sources",
            Kind::List { item: &Kind::Section(&SOURCE), min: 0, max: 50 },
            "Sources and what reads them.",
        ),
        Field::aws("discovery", Kind::Section(&REQUIRED_REFERENCE), "Who finds endpoints."),
        Field::aws("peerDiscovery", Kind::Section(&REQUIRED_REFERENCE), "Who finds other pickers."),
        reference("crossReplicaSyncerPluginRef"),
        Field::aws("crossReplicaSyncInterval", WAIT, "How often pickers tell each other."),
    ],
};

static SOURCE: Section = Section {
    fields: &[
        reference("pluginRef").required(),
        Field::aws("extractors", REFERENCES, "What reads it."),
    ],
};

static REQUEST_HANDLER: Section =
    Section { fields: &[Field::aws("parsers", REFERENCES, "Parsers, in order.")] };

static FLOW_CONTROL: Section = Section {
    fields: &[
        Field::aws("maxBytes", Kind::Opaque, "Bytes in all queues."),
        Field::aws("maxRequests", Kind::Opaque, "Requests in all queues."),
        Field::aws("defaultRequestTTL", WAIT, "Longest wait in a queue."),
        Field::aws("noEndpointRequestTTL", WAIT, "The same while there is no endpoint."),
        Field::aws("defaultPriorityBand", Kind::Section(&BAND), "For bands that are not listed."),
        Field::aws(
            "defaultNegativePriorityBand",
            Kind::Section(&BAND),
            "The same for negative priorities.",
        ),
        Field::aws(
            "priorityBands",
            Kind::List { item: &Kind::Section(&BAND), min: 0, max: 100 },
            "Queues by priority.",
        ),
        reference("usageLimitPolicyPluginRef"),
        Field::aws(
            "saturationDetector",
            Kind::Section(&REFERENCE_TO),
            "When the pool is full; `utilization-detector` if absent.",
        ),
        Field::aws("enableEviction", Kind::Flag, "Whether running requests may be ended.")
            .default("false"),
    ],
};

static BAND: Section = Section {
    fields: &[
        Field::aws(
            "priority",
            Kind::Integer { min: i32::MIN as i64, max: i32::MAX as i64 },
            "Higher first.",
        ),
        Field::aws("maxBytes", Kind::Opaque, "Bytes in its queue."),
        Field::aws("maxRequests", Kind::Opaque, "Requests in its queue."),
        reference("fairnessPolicyRef"),
        reference("orderingPolicyRef"),
    ],
};

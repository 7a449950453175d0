//! Every plugin of the field: what it is here, its parameters, or what stands in its place.
//!
//! One table serves the check of a document and the page of it. Names, parameters and defaults are those
//! of llm-d's router, August 2026; the Gateway API Inference Extension's own picker has a subset.

mod beyond;
mod filters;
mod parameters;
mod rest;
mod scorers;

use crate::schema::Section;

/// One type of plugin.
#[derive(Debug)]
pub struct Plugin {
    /// `type` in a document.
    pub name: &'static str,
    pub slot: Slot,
    pub support: Support,
    pub parameters: &'static Section,
    /// Parameters that are read and have no effect; their help says why.
    pub idle: &'static [&'static str],
    /// What it does here.
    pub help: &'static str,
}

/// What a plugin is for. A profile takes scorers, filters and pickers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Scorer,
    Filter,
    /// Both, by its parameters.
    ScorerAndFilter,
    Picker,
    Handler,
    /// Of what scorers and filters go by.
    Producer,
    /// Also a filter where a profile names it.
    Detector,
    Parser,
    /// Of metrics and events.
    Source,
    Extractor,
    /// Of queues.
    FlowPolicy,
    Admitter,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Does here what it does there.
    Kept,
    /// The gateway does so anyway, whether it is written or not.
    Inherent,
    /// Read and without effect, which a warning says.
    Ignored,
    /// Refused: what to write in its place, and what happens if it is left out.
    Missing { instead: &'static str, without: &'static str },
}

impl Slot {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scorer => "scorer",
            Self::Filter => "filter",
            Self::ScorerAndFilter => "scorer and filter",
            Self::Picker => "picker",
            Self::Handler => "profile handler",
            Self::Producer => "data producer",
            Self::Detector => "saturation detector",
            Self::Parser => "parser",
            Self::Source => "data source",
            Self::Extractor => "extractor",
            Self::FlowPolicy => "flow policy",
            Self::Admitter => "admitter",
            Self::Other => "other",
        }
    }
}

impl Plugin {
    const fn new(name: &'static str, slot: Slot, support: Support, help: &'static str) -> Self {
        Self { name, slot, support, parameters: &NONE, idle: &[], help }
    }

    const fn with(mut self, parameters: &'static Section) -> Self {
        self.parameters = parameters;
        self
    }

    const fn idle(mut self, idle: &'static [&'static str]) -> Self {
        self.idle = idle;
        self
    }

    const fn missing(
        name: &'static str,
        slot: Slot,
        instead: &'static str,
        without: &'static str,
    ) -> Self {
        Self::new(name, slot, Support::Missing { instead, without }, "")
    }
}

static NONE: Section = Section { fields: &[] };

/// All of them: first what is here, then what is not.
pub fn plugins() -> impl Iterator<Item = &'static Plugin> {
    [scorers::SCORERS, filters::FILTERS, rest::REST, beyond::BEYOND].into_iter().flatten()
}

pub(super) fn find(name: &str) -> Option<&'static Plugin> {
    plugins().find(|plugin| plugin.name == name)
}

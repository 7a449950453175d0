//! The document `EndpointPickerConfig`: how a picker of the Gateway API Inference Extension or of llm-d
//! chooses.
//!
//! Read as it is in the field, so that who comes from there need not translate. What we have under
//! another name is found under theirs ([`catalogue`]); what we lack is an error that names the nearest
//! we have; what has no effect here is a warning. Nothing is dropped silently.

mod catalogue;
mod document;
mod model;
mod page;
mod read;
mod summary;

pub use catalogue::{Plugin, Slot, Support, plugins};
pub use model::{
    ConcurrencyMode, LabelRule, PickerCeiling, PickerConfig, PickerFilter, PickerGroup, PickerKind,
    PickerSaturation, PickerScorer, ScorerKind, TtftSource,
};
pub use page::picker_markdown;

use std::path::Path;

use crate::finding::Errors;
use crate::node::Node;
use crate::parse::{only_document, only_errors, read_text};
use crate::report::Report;

pub(crate) use document::DOCUMENT;

/// `kind` of such a document.
pub const PICKER_KIND: &str = "EndpointPickerConfig";

/// What the field uses where no document is given: 2/2/3 for queue, KV cache and prefix.
pub const DEFAULT_PICKER_DOCUMENT: &str = include_str!("picker_config/default.yaml");

impl PickerConfig {
    /// Reads and checks a file. Findings call it by `path` as given.
    ///
    /// # Errors
    /// The file cannot be read, or the document is not valid or asks for what we do not have: then all
    /// that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        let source = path.display().to_string();
        Self::parse(&read_text(path)?, &source)
    }

    /// Checks a text in YAML or JSON; `source_name` is what findings call it. An empty text stands for
    /// [`DEFAULT_PICKER_DOCUMENT`], as it does in the field.
    ///
    /// # Errors
    /// All that is wrong with the document, in its order.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, Errors> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Report::new(text, source_name).of_kind(&DOCUMENT);
        match only_document(text, &mut report) {
            Err(()) => Err(only_errors(report)),
            Ok(None) => Ok(Self::default()),
            Ok(Some(root)) => Self::from_root(&root, report),
        }
    }

    pub(crate) fn from_root(root: &Node, mut report: Report<'_>) -> Result<Self, Errors> {
        let Some(mut config) = read::document(root, "", &mut report) else {
            return Err(only_errors(report));
        };
        config.warnings = report.finish()?;
        Ok(config)
    }

    /// The same for a mapping within another document, which stands at `path` there.
    pub(crate) fn inline(root: &Node, path: &str, report: &mut Report<'_>) -> Option<Self> {
        read::document(root, path, report)
    }
}

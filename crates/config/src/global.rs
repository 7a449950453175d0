//! The document `GlobalInferenceGateway`: one endpoint over the gateways of many clusters.
//!
//! What a router has in common with a gateway (listener, auth, limits, times) is written and read as in an
//! `InferenceGatewayConfig`, and becomes a [`Spec`]; the rest is [`Global`].

mod build;
mod page;
mod rules;
pub(crate) mod schema;
mod spec;

pub use page::global_markdown;
pub use spec::{
    Global, GlobalWeights, Heartbeats, MemberPrice, MemberSpec, Mode, OutageMode, PriceWindow,
    RedisStore, Routing, Shaping, Store, TenantPolicy,
};

use std::path::Path;

use crate::build::View;
use crate::check;
use crate::document::{ApiGroup, Document};
use crate::finding::Errors;
use crate::node::{Node, Value, shortened};
use crate::parse::{only_document, only_errors, read_text};
use crate::report::Report;
use crate::suggest::closest;

/// `kind` of such a document.
pub const GLOBAL_KIND: &str = "GlobalInferenceGateway";

/// A valid `GlobalInferenceGateway`.
#[derive(Clone, Debug)]
pub struct GlobalDocument {
    /// What the router has in common with a gateway; its endpoints are the members.
    pub gateway: Document,
    pub global: Global,
}

/// Label of a member's endpoint that holds the member's name.
pub const MEMBER_LABEL: &str = "wicketgate.dev/member";

impl GlobalDocument {
    /// Reads and checks a file. Findings call it by `path` as given.
    ///
    /// # Errors
    /// The file cannot be read, or the document is not valid: then all that is wrong with it.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        Self::parse(&read_text(path)?, &path.display().to_string())
    }

    /// Checks a text in YAML or JSON; `source_name` is what findings call it.
    ///
    /// # Errors
    /// All that is wrong with the document, in its order.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, Errors> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Report::new(text, source_name).of_kind(&schema::DOCUMENT);
        match only_document(text, &mut report) {
            Err(()) => Err(only_errors(report)),
            Ok(Some(root)) => Self::from_root(&root, report),
            Ok(None) => {
                let hint = "a global gateway needs at least apiVersion, kind and spec.members";
                Err(Errors::whole(source_name, "the document is empty".to_owned(), Some(hint)))
            }
        }
    }

    fn from_root(root: &Node, mut report: Report<'_>) -> Result<Self, Errors> {
        if !matches!(root.value, Value::Map(_)) {
            let message = format!("expected a {GLOBAL_KIND}, found {}", root.value.found());
            report.error(root.place, "", message);
            return Err(only_errors(report));
        }
        head(root, &mut report);
        check::section(root, &schema::DOCUMENT, "", &mut report);
        let view = View::new(Some(root));
        let metadata = view.get("metadata");
        let (spec, global) = build::specs(root.get("spec"));
        if view.get("spec").is_present() {
            rules::check(&spec, &global, view.get("spec"), &mut report);
        }
        let warnings = report.finish()?;
        let gateway = Document {
            api_group: ApiGroup::Wicketgate,
            name: metadata.get("name").text().unwrap_or_else(|| "global".to_owned()),
            namespace: metadata.get("namespace").text(),
            spec,
            warnings,
        };
        Ok(Self { gateway, global })
    }
}

/// Group and kind.
fn head(root: &Node, report: &mut Report<'_>) {
    let expected = [("apiVersion", ApiGroup::Wicketgate.api_version()), ("kind", GLOBAL_KIND)];
    for (key, right) in expected {
        let Some((node, text)) = root.get(key).and_then(|node| Some((node, node.text()?))) else {
            continue;
        };
        if text != right {
            let message = format!("unknown {key} `{}`", shortened(text));
            let hint = match closest(text, [right].into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write `{right}`"),
            };
            report.error_with_hint(node.place, key, message, hint);
        }
    }
}

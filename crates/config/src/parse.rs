//! From a text to a document: read, check, build, rules.

use std::path::Path;

use crate::build::{self, View};
use crate::check;
use crate::document::{ApiGroup, Document, KIND};
use crate::finding::Errors;
use crate::global::{GLOBAL_KIND, GlobalDocument};
use crate::node::{self, Node, Place, Value, shortened};
use crate::picker_config::{PICKER_KIND, PickerConfig};
use crate::pickers;
use crate::report::Report;
use crate::rules;
use crate::schema::DOCUMENT;
use crate::suggest::closest;
use crate::yaml_error;

/// A document is at most this long; etcd takes 1.5 MiB.
const BYTES_MAX: usize = 4 << 20;

/// Reads and checks a file. Findings call it by `path` as given.
///
/// # Errors
/// The file cannot be read, or the document is not valid: then all that is wrong with it.
pub fn load(path: &Path) -> Result<Document, Errors> {
    let text = read_text(path)?;
    let source = path.display().to_string();
    parse_beside(&text, Pools::Here, &source, path.parent())
}

/// The same for a gateway whose pools are resources: the document need not name any.
///
/// # Errors
/// As [`load`].
pub fn load_beside_resources(path: &Path) -> Result<Document, Errors> {
    let text = read_text(path)?;
    let source = path.display().to_string();
    parse_beside(&text, Pools::Elsewhere, &source, path.parent())
}

/// A document of any kind, told apart by its `kind`.
#[derive(Clone, Debug)]
pub enum AnyDocument {
    Gateway(Box<Document>),
    Picker(Box<PickerConfig>),
    Global(Box<GlobalDocument>),
}

/// Reads and checks a file of any kind.
///
/// # Errors
/// As [`load`], [`PickerConfig::load`] and [`GlobalDocument::load`]; a file that is none of them is judged as a gateway's document.
pub fn load_any(path: &Path) -> Result<AnyDocument, Errors> {
    let text = read_text(path)?;
    let source = path.display().to_string();
    let documents = node::read(text.strip_prefix('\u{feff}').unwrap_or(&text)).unwrap_or_default();
    match documents.first().and_then(|root| root.get("kind")).and_then(Node::text) {
        Some(PICKER_KIND) => {
            return PickerConfig::parse(&text, &source)
                .map(|config| AnyDocument::Picker(config.into()));
        }
        Some(GLOBAL_KIND) => {
            return GlobalDocument::parse(&text, &source)
                .map(|document| AnyDocument::Global(document.into()));
        }
        _ => {}
    }
    let document = parse_beside(&text, Pools::Here, &source, path.parent())?;
    Ok(AnyDocument::Gateway(document.into()))
}

/// A file's text, if it is short enough and text.
pub(crate) fn read_text(path: &Path) -> Result<String, Errors> {
    let source = path.display().to_string();
    let too_long = |bytes: u64| bytes > BYTES_MAX as u64;
    let read = || -> std::io::Result<Vec<u8>> {
        // The length is looked at first, so that a wrong file (a model, say) is not read at all.
        if too_long(std::fs::metadata(path)?.len()) {
            return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, too_long_message()));
        }
        std::fs::read(path)
    };
    let bytes = read()
        .map_err(|error| Errors::whole(&source, format!("cannot read the file: {error}"), None))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let message = format!("the file is not UTF-8: byte {at}, in line {line}");
        Errors::whole(&source, message, Some("save it as UTF-8"))
    })
}

fn too_long_message() -> String {
    format!("longer than {} MiB, which no gateway needs", BYTES_MAX >> 20)
}

/// Checks a text in YAML or JSON; `source_name` is what findings call it.
///
/// # Errors
/// All that is wrong with the document, in its order; also that it names another file, which only a file
/// can ([`load`]).
pub fn parse(text: &str, source_name: &str) -> Result<Document, Errors> {
    parse_beside(text, Pools::Here, source_name, None)
}

/// Where it must be said what is served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pools {
    Here,
    /// In resources.
    Elsewhere,
}

/// * `folder`: where files are that the document names; `None`: it may name none.
fn parse_beside(
    text: &str,
    pools: Pools,
    source_name: &str,
    folder: Option<&Path>,
) -> Result<Document, Errors> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut report = Report::new(text, source_name);
    report.may_serve_nothing = pools == Pools::Elsewhere;
    match only_document(text, &mut report) {
        Err(()) => Err(only_errors(report)),
        Ok(Some(root)) => document(&root, folder, report),
        Ok(None) => {
            let hint = "a gateway needs at least apiVersion, kind and spec; see docs/examples";
            Err(Errors::whole(source_name, "the document is empty".to_owned(), Some(hint)))
        }
    }
}

/// The tree of a text that holds one document, or none. `Err`: it cannot be read, and the report says
/// why.
pub(crate) fn only_document(text: &str, report: &mut Report<'_>) -> Result<Option<Node>, ()> {
    if text.len() > BYTES_MAX {
        report.adopt(Errors::whole(
            report.source(),
            format!("the document is {}", too_long_message()),
            None,
        ));
        return Err(());
    }
    let documents = node::read(text).map_err(|error| yaml_error::report(&error, text, report))?;
    let mut documents = documents.into_iter();
    let root = documents.next();
    if let Some(second) = documents.next() {
        let place = Place { width: 1, ..second.place };
        report.error_with_hint(
            place,
            "",
            "a second document begins here: one file describes one gateway",
            "put it into a file of its own, or remove the `---`",
        );
    }
    Ok(root)
}

fn document(
    root: &Node,
    folder: Option<&Path>,
    mut report: Report<'_>,
) -> Result<Document, Errors> {
    if !matches!(root.value, Value::Map(_)) {
        let message = format!("expected an {KIND}, found {}", root.value.found());
        let place = Place { width: 1, ..root.place };
        report.error_with_hint(
            place,
            "",
            message,
            "a document begins with `apiVersion:` and `kind:`",
        );
        return Err(only_errors(report));
    }
    let kind = root.get("kind").and_then(Node::text);
    if kind != Some(PICKER_KIND) {
        report.group = api_group(root, &mut report);
    }
    if !is_gateway(root, &mut report) {
        return Err(only_errors(report));
    }
    check::section(root, &DOCUMENT, "", &mut report);
    let view = View::new(Some(root));
    let metadata = view.get("metadata");
    let name = metadata.get("name").text().unwrap_or_else(|| "gateway".to_owned());
    let mut spec = build::spec(root.get("spec"), report.is_aws());
    pickers::read(view.get("spec"), folder, &mut spec, &mut report);
    if view.get("spec").is_present() {
        rules::check(&spec, &name, view.get("spec"), &mut report);
    }
    let api_group = report.group;
    let namespace = metadata.get("namespace").text();
    let warnings = report.finish()?;
    Ok(Document { api_group, name, namespace, spec, warnings })
}

/// An unknown group is an error and read as ours, so that the rest is checked as well.
fn api_group(root: &Node, report: &mut Report<'_>) -> ApiGroup {
    let groups = [ApiGroup::Wicketgate, ApiGroup::Aws];
    let Some(node) = root.get("apiVersion") else { return ApiGroup::Wicketgate };
    let Some(text) = node.text() else { return ApiGroup::Wicketgate };
    if let Some(group) = groups.into_iter().find(|group| group.api_version() == text) {
        return group;
    }
    let [ours, aws] = groups.map(ApiGroup::api_version);
    let near = closest(text, [ours, aws].into_iter());
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write `{ours}`, or AWS's `{aws}`"),
    };
    let message = format!("unknown apiVersion `{}`", shortened(text));
    report.error_with_hint(node.place, "apiVersion", message, hint);
    if near == Some(aws) { ApiGroup::Aws } else { ApiGroup::Wicketgate }
}

/// False for quite another kind of object, of which the other checks would only say nonsense.
fn is_gateway(root: &Node, report: &mut Report<'_>) -> bool {
    let Some((node, text)) = root.get("kind").and_then(|node| Some((node, node.text()?))) else {
        return true;
    };
    if text != KIND {
        let message = format!("unknown kind `{}`", shortened(text));
        let hint = if text == PICKER_KIND {
            format!(
                "it says how to choose: name its file as `schedulers[].pickerConfig.file` of an {KIND}"
            )
        } else if text == GLOBAL_KIND {
            "it is a router over many clusters: run it with `wicketgate global -f`".to_owned()
        } else {
            format!("write `{KIND}`")
        };
        report.error_with_hint(node.place, "kind", message, hint);
    }
    closest(text, [KIND].into_iter()).is_some()
}

pub(crate) fn only_errors(report: Report<'_>) -> Errors {
    let source = report.source().to_owned();
    match report.finish() {
        Err(errors) => errors,
        Ok(_) => Errors::whole(&source, "the document cannot be read".to_owned(), None),
    }
}

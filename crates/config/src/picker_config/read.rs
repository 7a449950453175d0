//! From a tree to what a picker's document asks for; everything that is wrong is reported.

mod features;
mod kinds;
mod plugins;
mod profile;
mod saturation;

use super::PICKER_KIND;
use super::document::DOCUMENT;
use super::model::{PickerConfig, PickerGroup};
use crate::build::View;
use crate::check::{self, join};
use crate::node::{Node, Place, Value, shortened};
use crate::report::Report;
use crate::suggest::closest;

pub(super) use kinds::LENGTH_SCALE_TOKENS;

/// The document at `path` (empty: it is the whole). `None`: it is no such document, and the report says
/// why. Else it can be used unless there are errors in the report.
pub(super) fn document(root: &Node, path: &str, report: &mut Report<'_>) -> Option<PickerConfig> {
    if !matches!(root.value, Value::Map(_)) {
        let message = format!("expected an {PICKER_KIND}, found {}", root.value.found());
        let place = Place { width: 1, ..root.place };
        report.error_with_hint(place, path, message, "it begins with `apiVersion:` and `kind:`");
        return None;
    }
    if !is_picker(root, path, report) {
        return None;
    }
    let group = group(root, path, report);
    check::section(root, &DOCUMENT, path, report);
    let view = View::new(Some(root));
    let entries = plugins::read(view, path, report);
    let gates = features::read(view, path, report);
    references(view, path, &entries, report);
    let mut config = profile::read(view, path, &entries, report);
    config.group = group;
    config.saturation = saturation::read(view, path, &entries, gates, report);
    Some(config)
}

/// An unknown group is an error; the rest is checked all the same.
fn group(root: &Node, path: &str, report: &mut Report<'_>) -> PickerGroup {
    let Some((node, text)) = root.get("apiVersion").and_then(|node| Some((node, node.text()?)))
    else {
        return PickerGroup::default();
    };
    let known = PickerGroup::ALL.into_iter().find(|group| group.api_version() == text);
    if let Some(group) = known {
        return group;
    }
    let [new, old] = PickerGroup::ALL.map(PickerGroup::api_version);
    // `inference.networking.k8s.io` is the pool's group, and the likeliest mistake.
    let hint = match closest(text, [new, old].into_iter()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write `{new}`, or the older `{old}`"),
    };
    let message = format!("unknown apiVersion `{}`", shortened(text));
    report.error_with_hint(node.place, &join(path, "apiVersion"), message, hint);
    PickerGroup::default()
}

/// False for quite another kind of object, of which the other checks would only say nonsense.
fn is_picker(root: &Node, path: &str, report: &mut Report<'_>) -> bool {
    let Some((node, text)) = root.get("kind").and_then(|node| Some((node, node.text()?))) else {
        return true;
    };
    if text == PICKER_KIND {
        return true;
    }
    let hint = if text == crate::KIND {
        format!("this is a gateway's document, which goes after `-f`; here write `{PICKER_KIND}`")
    } else if text == "ConfigMap" {
        format!("take the `{PICKER_KIND}` out of the ConfigMap's `data`")
    } else {
        format!("write `{PICKER_KIND}`")
    };
    let message = format!("unknown kind `{}`", shortened(text));
    report.error_with_hint(node.place, &join(path, "kind"), message, hint);
    closest(text, [PICKER_KIND].into_iter()).is_some()
}

/// Parts of the document that only name plugins: the names must be there.
fn references(view: View<'_>, path: &str, entries: &plugins::Entries<'_>, report: &mut Report<'_>) {
    let data = view.get("dataLayer");
    let here = join(path, "dataLayer");
    for (index, source) in data.get("sources").items().enumerate() {
        let here = format!("{here}.sources[{index}]");
        entries.resolve(source.get("pluginRef"), &join(&here, "pluginRef"), report);
        for (index, extractor) in source.get("extractors").items().enumerate() {
            let here = format!("{here}.extractors[{index}].pluginRef");
            entries.resolve(extractor.get("pluginRef"), &here, report);
        }
    }
    entries.resolve(
        data.get("discovery").get("pluginRef"),
        &format!("{here}.discovery.pluginRef"),
        report,
    );
    for key in ["peerDiscovery", "crossReplicaSyncerPluginRef"] {
        if data.get(key).is_present() {
            report.warning(
                data.get(key).place(),
                &join(&here, key),
                format!("`{key}` has no effect here"),
                Some("it is not this document's business how pickers know of each other"),
            );
        }
    }
    if let Some(place) = data.get("injectDefaults").present().map(View::place)
        && data.get("injectDefaults").flag() == Some(false)
        && !data.get("sources").items().any(|_| true)
    {
        report.warning(
            place,
            &join(&here, "injectDefaults"),
            "`injectDefaults: false` has no effect here",
            Some(
                "metrics are read all the same; without them every signal would be our own account",
            ),
        );
    }
    let parsers = view.get("requestHandler").get("parsers");
    for (index, parser) in parsers.items().enumerate() {
        let here = format!("{}.parsers[{index}].pluginRef", join(path, "requestHandler"));
        entries.resolve_or_type(parser.get("pluginRef"), &here, report);
    }
    let parser = view.get("parser").get("pluginRef");
    entries.resolve_or_type(parser, &format!("{}.pluginRef", join(path, "parser")), report);
}

//! `plugins`: what each is, its parameters, and who may refer to it.

use std::collections::HashMap;

use crate::build::View;
use crate::check::{self, join};
use crate::node::{Node, Place, Value, shortened};
use crate::picker_config::catalogue::{self, Plugin, Support, plugins};
use crate::report::Report;
use crate::suggest::closest;

/// One item of `plugins` whose type is known.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) plugin: &'static Plugin,
    pub(super) parameters: View<'a>,
    /// Of its `type`: where findings point that are about what is not written.
    pub(super) place: Place,
}

/// The items of `plugins`, in document order.
pub(super) struct Entries<'a> {
    known: Vec<(Entry<'a>, String)>,
    /// Names whose type is wrong, which was reported: references to them are not reported again.
    broken: Vec<&'a str>,
}

pub(super) fn read<'a>(view: View<'a>, path: &str, report: &mut Report<'_>) -> Entries<'a> {
    let mut entries = Entries { known: Vec::new(), broken: Vec::new() };
    let mut places: HashMap<&str, Place> = HashMap::new();
    for (index, item) in view.get("plugins").items().enumerate() {
        let path = format!("{}[{index}]", join(path, "plugins"));
        let kind = item.get("type");
        let Some(name) = item.get("name").word().or(kind.word()) else { continue };
        let named = if item.get("name").is_present() { item.get("name") } else { kind };
        if let Some(first) = places.insert(name, named.place()) {
            let message = format!("there is a plugin `{}` already", shortened(name));
            let hint = format!("give one of them a `name`; first in line {}", first.line);
            report.error_with_hint(named.place(), &path, message, hint);
            continue;
        }
        match kind.word().and_then(catalogue::find) {
            None => {
                entries.broken.push(name);
                unknown(kind, &join(&path, "type"), report);
            }
            Some(plugin) => {
                let entry =
                    Entry { name, plugin, parameters: item.get("parameters"), place: kind.place() };
                if let Some((message, hint)) = refusal(plugin) {
                    report.error_with_hint(kind.place(), &join(&path, "type"), message, hint);
                    entries.broken.push(name);
                    continue;
                }
                parameters(&entry, &path, report);
                if plugin.support == Support::Ignored {
                    report.warning(
                        kind.place(),
                        &path,
                        format!("`{}` has no effect here", plugin.name),
                        Some(&as_hint(plugin.help)),
                    );
                }
                entries.known.push((entry, path));
            }
        }
    }
    entries
}

/// What is said of a plugin that we do not have.
fn refusal(plugin: &Plugin) -> Option<(String, String)> {
    let Support::Missing { instead, without } = plugin.support else { return None };
    let message = format!("`{}` is not supported here", plugin.name);
    Some((message, format!("nearest: {instead}; left out: {without}")))
}

/// A help text as a hint: without the capital and the full stop of a sentence.
fn as_hint(help: &str) -> String {
    let help = help.strip_suffix('.').unwrap_or(help);
    let mut chars = help.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            let rest = &help[first.len_utf8()..];
            first.to_lowercase().chain(rest.chars()).collect()
        }
        _ => help.to_owned(),
    }
}

fn unknown(kind: View<'_>, path: &str, report: &mut Report<'_>) {
    let Some(text) = kind.word() else { return };
    let message = format!("unknown plugin type `{}`", shortened(text));
    let names = || plugins().map(|plugin| plugin.name);
    match closest(text, names()) {
        Some(near) => {
            report.error_with_hint(kind.place(), path, message, format!("did you mean `{near}`?"));
        }
        None => report.error_with_hint(
            kind.place(),
            path,
            message,
            "docs/picker-config.md lists the types that there are",
        ),
    }
}

fn parameters(entry: &Entry<'_>, path: &str, report: &mut Report<'_>) {
    let Some(node) = entry.parameters.node() else { return };
    let here = join(path, "parameters");
    let is_empty = |node: &Node| matches!(&node.value, Value::Map(map) if map.is_empty());
    if entry.plugin.parameters.fields.is_empty() && !is_empty(node) {
        let message = format!("`{}` takes no parameters", entry.plugin.name);
        report.error_with_hint(node.place, &here, message, "remove them");
        return;
    }
    check::section(node, entry.plugin.parameters, &here, report);
    for key in entry.plugin.idle {
        let Some(field) = entry.plugin.parameters.field(key) else { continue };
        if let Some(value) = node.get(key)
            && !value.value.is(field.default)
        {
            report.warning(
                value.place,
                &join(&here, key),
                format!("`{key}` has no effect here"),
                Some(&as_hint(field.help)),
            );
        }
    }
}

impl<'a> Entries<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Entry<'a>, &str)> {
        self.known.iter().map(|(entry, path)| (entry, path.as_str()))
    }

    /// The entry that a reference means; none is an error, unless it is absent.
    pub(super) fn resolve(
        &self,
        reference: View<'_>,
        path: &str,
        report: &mut Report<'_>,
    ) -> Option<(&Entry<'a>, &str)> {
        let name = reference.word()?;
        let found = self.iter().find(|(entry, _)| entry.name == name);
        if found.is_none() && !self.broken.contains(&name) {
            let message = format!("there is no plugin `{}`", shortened(name));
            let names = self.names();
            let plugin = catalogue::find(name);
            if let Some((message, hint)) = plugin.and_then(refusal) {
                report.error_with_hint(reference.place(), path, message, hint);
                return None;
            }
            let hint = match closest(name, names.iter().copied()) {
                _ if plugin.is_some() => format!("add `- type: {name}` to `plugins`"),
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "`plugins` names none".to_owned(),
                None => format!("plugins: {}", names.join(", ")),
            };
            report.error_with_hint(reference.place(), path, message, hint);
        }
        found
    }

    /// The same for places where the field makes a plugin of that type by itself.
    pub(super) fn resolve_or_type(
        &self,
        reference: View<'_>,
        path: &str,
        report: &mut Report<'_>,
    ) -> Option<&'static Plugin> {
        let name = reference.word()?;
        if let Some((entry, _)) = self.iter().find(|(entry, _)| entry.name == name) {
            return Some(entry.plugin);
        }
        match catalogue::find(name) {
            Some(plugin) if refusal(plugin).is_none() => Some(plugin),
            _ => self.resolve(reference, path, report).map(|(entry, _)| entry.plugin),
        }
    }

    fn names(&self) -> Vec<&'a str> {
        self.known.iter().map(|(entry, _)| entry.name).collect()
    }
}

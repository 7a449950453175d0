//! The page of the document's plugins, made from the table.

use std::fmt::Write as _;

use super::catalogue::{Plugin, Slot, Support, plugins};
use crate::reference::describe;
use crate::schema::Section;

/// The page `docs/picker-config.md`, which a test compares with this text. To bring the page up to date:
/// `cargo run -p wicketgate-config --example picker-reference > docs/picker-config.md`.
pub fn picker_markdown() -> String {
    let mut page =
        include_str!("page/intro.md").replace("{default}", super::DEFAULT_PICKER_DOCUMENT);
    let kept = |slots: &'static [Slot]| {
        plugins()
            .filter(move |plugin| plugin.support == Support::Kept && slots.contains(&plugin.slot))
    };
    table(&mut page, "Scorers", kept(&[Slot::Scorer, Slot::ScorerAndFilter]));
    table(&mut page, "Filters", kept(&[Slot::Filter]));
    table(&mut page, "Pickers", kept(&[Slot::Picker]));
    table(&mut page, "Saturation detectors", kept(&[Slot::Detector]));
    // Writing into a string cannot fail.
    let _ = writeln!(
        page,
        "\n## What the gateway does anyway\n\nRead, whether written or not.\n\n| type | | parameters |\n| --- | --- | --- |"
    );
    for plugin in plugins().filter(|plugin| plugin.support == Support::Inherent) {
        let names = names(plugin);
        let _ = writeln!(page, "| `{}` | {} | {names} |", plugin.name, plugin.help);
    }
    page.push_str("\n## Without effect\n\nRead; a warning says so.\n\n| type | |\n| --- | --- |\n");
    for plugin in plugins().filter(|plugin| plugin.support == Support::Ignored) {
        let _ = writeln!(page, "| `{}` | {} |", plugin.name, plugin.help);
    }
    page.push_str(
        "\n## Not supported\n\nAn error that says the same.\n\n| type | | nearest | left out |\n| --- | --- | --- | --- |\n",
    );
    for plugin in plugins() {
        if let Support::Missing { instead, without } = plugin.support {
            let slot = plugin.slot.as_str();
            let _ = writeln!(page, "| `{}` | {slot} | {instead} | {without} |", plugin.name);
        }
    }
    page
}

fn table(page: &mut String, title: &str, plugins: impl Iterator<Item = &'static Plugin>) {
    let _ = writeln!(page, "\n## {title}\n");
    for plugin in plugins {
        let _ = writeln!(page, "**`{}`**: {}\n", plugin.name, plugin.help);
        if !plugin.parameters.fields.is_empty() {
            page.push_str("| parameter | type | default | meaning |\n| --- | --- | --- | --- |\n");
            rows(page, plugin, plugin.parameters, "");
            page.push('\n');
        }
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
}

fn rows(page: &mut String, plugin: &Plugin, section: &'static Section, prefix: &str) {
    for field in section.fields {
        let star = if prefix.is_empty() && plugin.idle.contains(&field.key) { " *" } else { "" };
        let default = match (field.default, field.presence) {
            (Some(text), _) => format!("`{text}`"),
            (None, crate::schema::Presence::Required) => "required".to_owned(),
            (None, _) => "–".to_owned(),
        };
        let kind = match field.kind {
            crate::schema::Kind::Opaque => "anything".to_owned(),
            ref kind => describe(kind),
        };
        let _ = writeln!(
            page,
            "| `{prefix}{}`{star} | {kind} | {default} | {} |",
            field.key, field.help
        );
        if let Some(inner) = field.kind.section() {
            let list =
                if matches!(field.kind, crate::schema::Kind::List { .. }) { "[]" } else { "" };
            rows(page, plugin, inner, &format!("{prefix}{}{list}.", field.key));
        }
    }
}

fn names(plugin: &Plugin) -> String {
    let name = |key: &'static str| {
        let star = if plugin.idle.contains(&key) { " *" } else { "" };
        format!("`{key}`{star}")
    };
    let names: Vec<String> = plugin.parameters.fields.iter().map(|field| name(field.key)).collect();
    names.join(", ")
}

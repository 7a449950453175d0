//! The reference page of the document, made from the schema.

use std::fmt::Write as _;
use std::time::Duration;

use crate::format::{Format, show_bytes, show_duration};
use crate::schema::{DOCUMENT, Field, Kind, Origin, Presence, Section};

/// The page `docs/configuration.md`, which a test compares with this text. To bring the page up to
/// date: `cargo run -p wicketgate-config --example reference > docs/configuration.md`.
pub fn reference_markdown() -> String {
    let mut page = include_str!("reference/intro.md").to_owned();
    chapter(&mut page, "The document", "", &DOCUMENT);
    page
}

/// A table of the section's fields, then one for each section below it.
pub(crate) fn chapter(page: &mut String, title: &str, prefix: &str, section: &'static Section) {
    // Writing into a string cannot fail.
    let _ = writeln!(page, "\n## {title}\n");
    page.push_str("| field | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for field in section.fields {
        row(page, field);
    }
    for field in section.fields {
        let Some(inner) = field.kind.section() else { continue };
        let list = if matches!(field.kind, Kind::List { .. }) { "[]" } else { "" };
        let dot = if prefix.is_empty() { "" } else { "." };
        let path = format!("{prefix}{dot}{}{list}", field.key);
        chapter(page, &format!("`{path}`"), &path, inner);
    }
}

fn row(page: &mut String, field: &Field) {
    let own = if field.origin == Origin::Ours { " ⁺" } else { "" };
    let default = match (field.presence, field.default, field.aws_default) {
        (Presence::Required, ..) => "required".to_owned(),
        (Presence::RequiredByAws, Some(text), _) => format!("`{text}`; required by AWS"),
        (Presence::RequiredByAws, None, _) => "required by AWS".to_owned(),
        (_, Some(text), Some(aws)) => format!("`{text}`; AWS `{aws}`"),
        (_, None, Some(aws)) => format!("AWS `{aws}`"),
        (_, Some(text), None) => format!("`{text}`"),
        (_, None, None) => "–".to_owned(),
    };
    let cluster = if field.cluster_only { " *Kubernetes only.*" } else { "" };
    let kind = describe(&field.kind);
    let _ =
        writeln!(page, "| `{}`{own} | {kind} | {default} | {}{cluster} |", field.key, field.help);
}

pub(crate) fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Integer { min, max } if *max == i64::from(i32::MAX) => format!("integer ≥ {min}"),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Share => "number, 0 to 1".to_owned(),
        Kind::Number { min, max } if *max == f64::from(f32::MAX) => format!("number ≥ {min}"),
        Kind::Number { min, max } => format!("number, {min} to {max}"),
        Kind::Bytes { min, max } => {
            format!("size, {} to {}", show_bytes(*min), show_bytes(*max))
        }
        Kind::Duration { max: Duration::MAX, .. } => "duration".to_owned(),
        Kind::Duration { min, max } => {
            format!("duration, {} to {}", show_duration(*min), show_duration(*max))
        }
        Kind::Priority => "`Critical`, `Standard`, `Sheddable` or an integer".to_owned(),
        Kind::Text(format) => describe_text(*format),
        Kind::Choice { words, aws_words } => {
            let quoted = |words: &[&str]| {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            };
            if words.len() == aws_words.len() {
                quoted(words)
            } else {
                format!("{}; AWS {}", quoted(words), quoted(aws_words))
            }
        }
        Kind::Words { words, alone } => {
            let all: Vec<_> = words.iter().chain(*alone).map(|word| format!("`{word}`")).collect();
            format!("{}, or a list of these", all.join(", "))
        }
        Kind::Section(_) => "mapping".to_owned(),
        Kind::List { item, min, max } => {
            let bounds =
                if *min == 0 { format!("at most {max}") } else { format!("{min} to {max}") };
            match item {
                Kind::Section(_) => format!("list of mappings, {bounds}"),
                item => format!("list, {bounds}, of: {}", describe(item)),
            }
        }
        Kind::Labels => "mapping of text to text".to_owned(),
        Kind::Opaque => "as in Kubernetes".to_owned(),
    }
}

fn describe_text(format: Format) -> String {
    match format {
        Format::Any(max) => format!("text, at most {max}"),
        Format::DnsLabel => "name (DNS label), at most 63".to_owned(),
        Format::DnsName => "name (DNS labels with dots), at most 253".to_owned(),
        Format::ModelName => "model name".to_owned(),
        Format::Https => "`https://` URL".to_owned(),
        Format::CollectorUrl => "`http://` or `https://` URL".to_owned(),
        Format::EndpointUrl => "`http://` URL".to_owned(),
        Format::ClusterUrl => "`http://` or `https://` URL".to_owned(),
        Format::TimeOfDay => "`HH:MM`".to_owned(),
        Format::SocketAddress => "`IP:PORT`".to_owned(),
        Format::HostPort => "`HOST:PORT`".to_owned(),
        Format::HttpPath => "path".to_owned(),
        Format::File => "file".to_owned(),
        Format::LogTarget => "word or file".to_owned(),
        Format::EnvName => "name of a variable".to_owned(),
    }
}

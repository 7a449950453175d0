//! Holds a tree against the schema: unknown and repeated keys, types, bounds, what is missing.

use std::collections::HashMap;
use std::time::Duration;

use types::Priority;

use crate::document::ApiGroup;
use crate::format;
use crate::node::{Key, Node, Place, Value, shortened};
use crate::report::Report;
use crate::schema::{Field, Kind, Origin, Presence, Section, walk_from};
use crate::suggest::closest;

/// Checks `node`, which stands at `path`, as a mapping with the fields of `section`.
pub(crate) fn section(node: &Node, section: &'static Section, path: &str, report: &mut Report<'_>) {
    let Value::Map(entries) = &node.value else {
        if !matches!(node.value, Value::Null) {
            wrong_type(node, "a mapping", path, report);
        }
        return;
    };
    let mut seen: HashMap<&str, Place> = HashMap::new();
    for (key, value) in entries {
        let here = join(path, &key.text);
        if let Some(first) = seen.insert(&key.text, key.place) {
            repeated(key, first, &here, report);
            continue;
        }
        match section.field(&key.text) {
            Some(field) if field.origin == Origin::Ours && report.is_aws() => {
                let hint = format!(
                    "`{}` is an addition of ours: AWS's schema is closed; write `apiVersion: {}` to use it",
                    field.key,
                    ApiGroup::Wicketgate.api_version(),
                );
                report.error_with_hint(key.place, &here, format!("unknown field \"{here}\""), hint);
            }
            Some(field) => {
                if matches!(value.value, Value::Null) {
                    continue;
                }
                kind(value, &field.kind, &here, report);
                if field.cluster_only && !value.value.is(field.default) {
                    report.cluster_only(field.key, key.place, &here);
                }
            }
            None => unknown(key, section, &here, report),
        }
    }
    for field in section.fields {
        let required = match field.presence {
            Presence::Required => true,
            Presence::RequiredByAws => report.is_aws(),
            Presence::Optional => false,
        };
        if required && node.get(field.key).is_none() {
            missing(node, field, path, report);
        }
    }
}

fn priority(node: &Node, path: &str, report: &mut Report<'_>) {
    let fits = match &node.value {
        Value::Integer(number) => i32::try_from(*number).is_ok(),
        Value::Text(text) => Priority::parse(text).is_some(),
        _ => false,
    };
    if !fits {
        let message = format!("expected a priority, found {}", node.value.found());
        let hint = "write Critical (100), Standard (0), Sheddable (-10), or a whole number";
        report.error_with_hint(node.place, path, message, hint);
    }
}

fn kind(node: &Node, expected: &'static Kind, path: &str, report: &mut Report<'_>) {
    match expected {
        Kind::Flag => match &node.value {
            Value::Flag(_) => {}
            Value::Text(text) => {
                let flag =
                    matches!(text.to_ascii_lowercase().as_str(), "yes" | "on" | "true" | "y");
                let hint = format!("write {flag}, without quotes");
                let message = format!("expected true or false, found {}", node.value.found());
                report.error_with_hint(node.place, path, message, hint);
            }
            _ => wrong_type(node, "true or false", path, report),
        },
        Kind::Integer { min, max } => integer(node, *min, *max, path, report),
        Kind::Share => match node.value {
            Value::Integer(0 | 1) => {}
            Value::Number(number) if (0.0..=1.0).contains(&number) => {}
            Value::Integer(_) | Value::Number(_) => {
                let message = format!("must be between 0 and 1, found {}", node.value.found());
                report.error_with_hint(
                    node.place,
                    path,
                    message,
                    "write a share, such as 0.8 for 80 %",
                );
            }
            _ => wrong_type(node, "a number between 0 and 1", path, report),
        },
        Kind::Number { min, max } => number(node, *min, *max, path, report),
        Kind::Bytes { min, max } => bytes(node, *min, *max, path, report),
        Kind::Duration { min, max } => duration(node, *min, *max, path, report),
        Kind::Priority => priority(node, path, report),
        Kind::Text(form) => {
            if let Some(text) = text(node, path, report)
                && let Err((message, hint)) = form.check(text)
            {
                match hint {
                    Some(hint) => report.error_with_hint(node.place, path, message, hint),
                    None => report.error(node.place, path, message),
                }
            }
        }
        Kind::Choice { words, aws_words } => choice(node, words, aws_words, path, report),
        Kind::Words { words, alone } => self::words(node, words, alone, path, report),
        Kind::Section(inner) => section(node, inner, path, report),
        Kind::List { item, min, max } => list(node, item, *min, *max, path, report),
        Kind::Labels => labels(node, path, report),
        Kind::Opaque => {}
    }
}

fn integer(node: &Node, min: i64, max: i64, path: &str, report: &mut Report<'_>) {
    match node.value {
        Value::Integer(number) if number < min.into() => {
            report.error(node.place, path, format!("must be at least {min}, found {number}"));
        }
        Value::Integer(number) if number > max.into() => {
            report.error(node.place, path, format!("must be at most {max}, found {number}"));
        }
        Value::Integer(_) => {}
        _ => wrong_type(node, "a whole number", path, report),
    }
}

fn number(node: &Node, min: f64, max: f64, path: &str, report: &mut Report<'_>) {
    let number = match node.value {
        Value::Integer(number) => number as f64,
        Value::Number(number) => number,
        _ => return wrong_type(node, "a number", path, report),
    };
    if !(min..=max).contains(&number) {
        let bounds = if max == f64::from(f32::MAX) {
            format!("at least {min}")
        } else {
            format!("between {min} and {max}")
        };
        report.error(node.place, path, format!("must be {bounds}, found {number}"));
    }
}

fn bytes(node: &Node, min: u64, max: u64, path: &str, report: &mut Report<'_>) {
    let number = match &node.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => format::bytes(text),
        _ => None,
    };
    let bounds = || format!("between {} and {}", format::show_bytes(min), format::show_bytes(max));
    match number {
        None => {
            let message = format!("expected a size, found {}", node.value.found());
            report.error_with_hint(node.place, path, message, "write bytes, or 64KiB, 10MiB, 1GiB");
        }
        Some(number) if !(min..=max).contains(&number) => {
            let message = format!("must be {}, found {}", bounds(), format::show_bytes(number));
            report.error(node.place, path, message);
        }
        Some(_) => {}
    }
}

fn duration(node: &Node, min: Duration, max: Duration, path: &str, report: &mut Report<'_>) {
    let message = || format!("expected a duration, found {}", node.value.found());
    match &node.value {
        Value::Text(text) => match format::duration(text) {
            None => {
                report.error_with_hint(
                    node.place,
                    path,
                    message(),
                    "write 500ms, 30s, 10m or 1h30m",
                );
            }
            Some(value) if value < min || value > max => {
                let (min, max) = (format::show_duration(min), format::show_duration(max));
                report.error(
                    node.place,
                    path,
                    format!("must be between {min} and {max}, found {text}"),
                );
            }
            Some(_) => {}
        },
        Value::Integer(number) => {
            report.error_with_hint(node.place, path, message(), format!("add the unit: {number}s"));
        }
        _ => wrong_type(node, "a duration", path, report),
    }
}

fn choice(node: &Node, words: &[&str], aws_words: &[&str], path: &str, report: &mut Report<'_>) {
    let Some(word) = text(node, path, report) else { return };
    let allowed = if report.is_aws() { aws_words } else { words };
    if allowed.contains(&word) {
        return;
    }
    let quoted: Vec<String> = allowed.iter().map(|word| format!("\"{word}\"")).collect();
    let message = format!("Unsupported value: \"{word}\": supported values: {}", quoted.join(", "));
    let elsewhere = words.contains(&word);
    if elsewhere {
        let ours = ApiGroup::Wicketgate.api_version();
        report.error_with_hint(
            node.place,
            path,
            message,
            format!("write `apiVersion: {ours}` to use it"),
        );
    } else if let Some(near) = closest(word, allowed.iter().copied()) {
        report.error_with_hint(node.place, path, message, format!("did you mean `{near}`?"));
    } else {
        report.error(node.place, path, message);
    }
}

fn words(node: &Node, words: &[&str], alone: &[&str], path: &str, report: &mut Report<'_>) {
    let Value::List(items) = &node.value else {
        let all: Vec<&str> = words.iter().chain(alone).copied().collect();
        return choice(node, &all, &all, path, report);
    };
    if items.is_empty() {
        report.error(node.place, path, "needs at least 1 item");
    }
    for (index, item) in items.iter().enumerate() {
        let here = format!("{path}[{index}]");
        choice(item, words, words, &here, report);
        if items[..index].iter().any(|other| other.text().is_some() && other.text() == item.text())
        {
            report.error(item.place, &here, "stands twice");
        }
    }
}

fn list(
    node: &Node,
    item: &'static Kind,
    min: usize,
    max: usize,
    path: &str,
    report: &mut Report<'_>,
) {
    let Value::List(items) = &node.value else {
        let message = format!("expected a list, found {}", node.value.found());
        report.error_with_hint(
            node.place,
            path,
            message,
            "write each item on its own line after `- `",
        );
        return;
    };
    if items.len() < min {
        report.error(node.place, path, format!("needs at least {min} item"));
    }
    if items.len() > max {
        report.error(
            node.place,
            path,
            format!("has {} items, at most {max} are allowed", items.len()),
        );
    }
    for (index, value) in items.iter().take(max).enumerate() {
        let here = format!("{path}[{index}]");
        if matches!(value.value, Value::Null) {
            report.error(value.place, &here, "must not be empty");
        } else {
            kind(value, item, &here, report);
        }
    }
}

fn labels(node: &Node, path: &str, report: &mut Report<'_>) {
    let Value::Map(entries) = &node.value else {
        return wrong_type(node, "a mapping of labels", path, report);
    };
    let mut seen: HashMap<&str, Place> = HashMap::new();
    for (key, value) in entries {
        let here = join(path, &key.text);
        match seen.insert(&key.text, key.place) {
            Some(first) => repeated(key, first, &here, report),
            None => {
                text(value, &here, report);
            }
        }
    }
}

/// The text, or an error that tells how to quote what YAML read as something else.
fn text<'n>(node: &'n Node, path: &str, report: &mut Report<'_>) -> Option<&'n str> {
    match &node.value {
        Value::Text(text) => return Some(text),
        Value::Flag(_) | Value::Integer(_) | Value::Number(_) => {
            let message = format!("expected text, found {}", node.value.found());
            report.error_with_hint(node.place, path, message, "put it in quotes");
        }
        _ => wrong_type(node, "text", path, report),
    }
    None
}

fn wrong_type(node: &Node, expected: &str, path: &str, report: &mut Report<'_>) {
    let message = format!("expected {expected}, found {}", node.value.found());
    report.error(node.place, path, message);
}

fn repeated(key: &Key, first: Place, path: &str, report: &mut Report<'_>) {
    let message = format!("key `{}` is written twice", shortened(&key.text));
    let hint = format!("it stands in line {} already; keep one of them", first.line);
    report.error_with_hint(key.place, path, message, hint);
}

fn missing(node: &Node, field: &Field, path: &str, report: &mut Report<'_>) {
    let here = join(path, field.key);
    // What holds the gap may be pages long: point at its beginning only.
    let place = Place { width: 1, ..node.place };
    report.error_with_hint(
        place,
        &here,
        format!("`{}` is missing: Required value", field.key),
        field.help,
    );
}

fn unknown(key: &Key, section: &'static Section, path: &str, report: &mut Report<'_>) {
    let message = format!("unknown field \"{path}\"");
    if report.is_full() {
        return report.error(key.place, path, message);
    }
    let visible = |field: &&Field| field.origin == Origin::Aws || !report.is_aws();
    let known = section.fields.iter().filter(visible).map(|field| field.key);
    if let Some(near) = closest(&key.text, known) {
        report.error_with_hint(key.place, path, message, format!("did you mean `{near}`?"));
        return;
    }
    let mut homes = Vec::new();
    walk_from(report.root(), &mut |home, field| {
        if field.key == key.text && visible(&field) {
            homes.push(format!("`{home}`"));
        }
    });
    if homes.is_empty() || homes.len() > 3 {
        let known: Vec<&str> =
            section.fields.iter().filter(visible).map(|field| field.key).collect();
        let hint = format!("known here: {}", known.join(", "));
        report.error_with_hint(key.place, path, message, hint);
    } else {
        let hint = format!("it belongs elsewhere: {}", homes.join(" or "));
        report.error_with_hint(key.place, path, message, hint);
    }
}

pub(crate) fn join(path: &str, key: &str) -> String {
    let key = shortened(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

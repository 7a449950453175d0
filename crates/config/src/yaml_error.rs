//! What the YAML reader refuses, in our words where its own do not tell how to mend it.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use crate::node::{DEPTH_MAX, NODES_MAX, Place};
use crate::report::Report;

pub(crate) fn report(error: &Error, text: &str, report: &mut Report<'_>) {
    let error = error.without_snippet();
    let mut place = error.location().map(Place::from).unwrap_or_default();
    let line = usize::try_from(place.line).unwrap_or(usize::MAX).saturating_sub(1);
    let line = text.lines().nth(line).unwrap_or_default();
    let (message, hint) = match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            (format!("nested deeper than {DEPTH_MAX} levels"), None)
        }
        Error::Budget { .. } => ("too large: more than a gateway can need".to_owned(), None),
        _ if error.to_string().starts_with("alias replay") => {
            let message = format!("aliases multiply the document to more than {NODES_MAX} values");
            (message, Some("write the values out, or use fewer aliases in aliases"))
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an alias stands within the value that it repeats".to_owned(), None)
        }
        _ => {
            let own = error.to_string();
            let own = own.split(" at line ").next().unwrap_or_default().to_owned();
            let hint = hint(line, &own);
            (own, hint)
        }
    };
    if let Some(tab) = leading_tab(line) {
        place.column = tab;
        place.width = 1;
    }
    match hint {
        Some(hint) => report.error_with_hint(place, "", message, hint),
        None => report.error(place, "", message),
    }
}

/// Column of a tab within a line's indentation, from 1.
fn leading_tab(line: &str) -> Option<u32> {
    let indent = line.len() - line.trim_start().len();
    let tab = line[..indent].find('\t')?;
    u32::try_from(line[..tab].chars().count() + 1).ok()
}

fn hint(line: &str, message: &str) -> Option<&'static str> {
    if leading_tab(line).is_some() {
        return Some("YAML indents with spaces only: replace the tab");
    }
    if message.contains("mapping values are not allowed") {
        return Some(
            "a text that contains `: ` must be in quotes; else check the indentation above",
        );
    }
    if message.contains("unknown anchor") {
        return Some(
            "`*name` repeats what `&name` has marked before; a text with `*` needs quotes",
        );
    }
    if message.contains("did not find expected key") {
        return Some("keys of one mapping begin in the same column");
    }
    if ["`@'", "``'", "`%'"].iter().any(|special| message.contains(special)) {
        return Some("a text that begins with a special character must be in quotes");
    }
    None
}

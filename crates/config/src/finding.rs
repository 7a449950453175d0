//! What is wrong with a document, where, and how to mend it.

use std::fmt;
use std::sync::Arc;

use crate::redact::redact;

/// One thing about a document, shown as a compiler shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// File name, or what else the text came from.
    pub source: Arc<str>,
    /// Such as `spec.schedulers[1].weights.lru`; empty for the document as a whole.
    pub path: String,
    /// From 1; 0 when there is no place, such as for a file that cannot be read.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    pub(crate) excerpt: Option<Excerpt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// The line a finding is about, ready to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    line: String,
    caret: usize,
    width: usize,
}

/// Characters of a long line that are shown.
const SHOWN: usize = 96;

impl Excerpt {
    /// `column` from 1 and `width` in characters; cut to what fits on a terminal.
    pub(crate) fn of(text: &str, line: u32, column: u32, width: usize) -> Option<Self> {
        let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        let line = redact(line);
        let at = usize::try_from(column).ok()?.saturating_sub(1);
        let start = if at < SHOWN { 0 } else { at - SHOWN / 4 };
        let mut shown: String = line.chars().skip(start).take(SHOWN).map(printable).collect();
        let length = shown.chars().count();
        if line.chars().count() > start + SHOWN {
            shown.push('…');
        }
        let caret = (at - start).min(length);
        Some(Self { line: shown, caret, width: width.clamp(1, (length - caret).max(1)) })
    }
}

/// Tabs are a frequent mistake in YAML, so they are shown; what could steer a terminal is not.
fn printable(c: char) -> char {
    match c {
        '\t' => '→',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        if self.line == 0 {
            write!(f, "{}: {severity}: {}", self.source, self.message)?;
        } else {
            let (line, column) = (self.line, self.column);
            write!(f, "{}:{line}:{column}: {severity}: {}", self.source, self.message)?;
        }
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n {margin} |\n {number} | {}", excerpt.line)?;
            let caret = "^".repeat(excerpt.width);
            write!(f, "\n {margin} | {:indent$}{caret}", "", indent = excerpt.caret)?;
        }
        if !self.path.is_empty() {
            write!(f, "\n {margin} = at: {}", self.path)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n {margin} = help: {hint}")?;
        }
        Ok(())
    }
}

/// Everything that keeps a document from being used, in document order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub(crate) Vec<Finding>);

impl Errors {
    pub fn findings(&self) -> &[Finding] {
        &self.0
    }

    /// One error about the source as a whole.
    pub(crate) fn whole(source: &str, message: String, hint: Option<&str>) -> Self {
        Self(vec![Finding {
            severity: Severity::Error,
            source: source.into(),
            path: String::new(),
            line: 0,
            column: 0,
            message: redact(&message).into_owned(),
            hint: hint.map(str::to_owned),
            excerpt: None,
        }])
    }
}

impl IntoIterator for Errors {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

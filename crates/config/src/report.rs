//! Collects findings on the way through a document.

use std::sync::Arc;

use crate::document::ApiGroup;
use crate::finding::{Errors, Excerpt, Finding, Severity};
use crate::node::Place;
use crate::redact::redact;
use crate::schema::{DOCUMENT, Section};

/// Findings that are kept; a document with more is hardly a gateway's.
const FINDINGS_MAX: usize = 50;

pub(crate) struct Report<'a> {
    text: &'a str,
    source: Arc<str>,
    pub(crate) group: ApiGroup,
    /// The kind of document, for hints about where a key belongs.
    root: &'static Section,
    /// Somebody else says what to serve.
    pub(crate) may_serve_nothing: bool,
    /// About another file that this one names; shown after its own.
    elsewhere: Vec<Finding>,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
    errors_left_out: usize,
    cluster_only: Vec<ClusterOnly>,
}

/// A field that only acts in Kubernetes, told once however many schedulers have it.
struct ClusterOnly {
    key: &'static str,
    place: Place,
    path: String,
    others: usize,
}

impl<'a> Report<'a> {
    pub(crate) fn new(text: &'a str, source: &str) -> Self {
        Self {
            text,
            source: source.into(),
            group: ApiGroup::Wicketgate,
            root: &DOCUMENT,
            may_serve_nothing: false,
            elsewhere: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            errors_left_out: 0,
            cluster_only: Vec::new(),
        }
    }

    /// For a document of another kind than a gateway's.
    pub(crate) fn of_kind(mut self, root: &'static Section) -> Self {
        self.root = root;
        self
    }

    pub(crate) fn root(&self) -> &'static Section {
        self.root
    }

    /// Takes over what was found in another file that this document names.
    pub(crate) fn adopt(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.elsewhere.extend(findings);
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Further errors are only counted, so their hints need not be worked out.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() == FINDINGS_MAX
    }

    pub(crate) fn is_aws(&self) -> bool {
        self.group == ApiGroup::Aws
    }

    pub(crate) fn error(&mut self, place: Place, path: &str, message: impl Into<String>) {
        self.add(Severity::Error, place, path, message.into(), None);
    }

    pub(crate) fn error_with_hint(
        &mut self,
        place: Place,
        path: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Error, place, path, message.into(), Some(hint.into()));
    }

    pub(crate) fn warning(
        &mut self,
        place: Place,
        path: &str,
        message: impl Into<String>,
        hint: Option<&str>,
    ) {
        self.add(Severity::Warning, place, path, message.into(), hint.map(str::to_owned));
    }

    pub(crate) fn cluster_only(&mut self, key: &'static str, place: Place, path: &str) {
        // `spec.schedulers[3].env` and `spec.schedulers[4].env` are one field.
        let field = |path: &str| path.replace(|c: char| c.is_ascii_digit(), "");
        match self.cluster_only.iter_mut().find(|known| field(&known.path) == field(path)) {
            Some(known) => known.others += 1,
            None => {
                let path = path.to_owned();
                self.cluster_only.push(ClusterOnly { key, place, path, others: 0 });
            }
        }
    }

    fn add(
        &mut self,
        severity: Severity,
        place: Place,
        path: &str,
        message: String,
        hint: Option<String>,
    ) {
        let findings = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if findings.len() == FINDINGS_MAX {
            self.errors_left_out += usize::from(severity == Severity::Error);
            return;
        }
        findings.push(Finding {
            severity,
            source: self.source.clone(),
            path: path.to_owned(),
            line: place.line,
            column: place.column,
            message: redact(&message).into_owned(),
            hint: hint.map(|hint| redact(&hint).into_owned()),
            excerpt: Excerpt::of(self.text, place.line, place.column, place.width),
        });
    }

    /// The warnings, if there are no errors.
    pub(crate) fn finish(mut self) -> Result<Vec<Finding>, Errors> {
        let in_order = |finding: &Finding| (finding.line, finding.column);
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        if self.errors.is_empty() && !self.elsewhere.iter().any(is_error) {
            for ClusterOnly { place, path, others, key } in std::mem::take(&mut self.cluster_only) {
                let more = match others {
                    0 => String::new(),
                    1 => ", nor does the other one".to_owned(),
                    _ => format!(", nor do the {others} others"),
                };
                let message = format!("`{key}` has no effect outside Kubernetes{more}");
                self.warning(place, &path, message, None);
            }
            self.warnings.sort_by_key(in_order);
            self.warnings.extend(self.elsewhere);
            return Ok(self.warnings);
        }
        self.errors.sort_by_key(in_order);
        let left_out = self.errors_left_out;
        let mut errors = Errors(self.errors);
        if left_out > 0 {
            let message = format!("{left_out} more errors are not shown");
            errors.0.extend(Errors::whole(&self.source, message, None));
        }
        errors.0.extend(self.elsewhere.into_iter().filter(is_error));
        Err(errors)
    }
}

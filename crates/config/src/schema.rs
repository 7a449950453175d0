//! Every field of the document: its type, bounds, default, origin and help.
//!
//! One table serves the check of a document, the reference page and the JSON schema. The defaults
//! here are what those pages print; the values in force are the `Default` implementations of
//! [`crate::spec`]. A test writes every default of the table into a document and expects the same
//! [`Spec`](crate::Spec).

mod auth;
mod edge;
mod flow;
pub(crate) mod membership;
mod observability;
mod peers;
mod rate_limits;
mod rewrite;
mod scheduler;
mod tables;
mod upstream;

use std::time::Duration;

pub use crate::format::Format;
pub(crate) use auth::{AUTH, SECRET};
pub(crate) use edge::{ADMIN, LIMITS, LISTENER, TIMEOUTS};
pub(crate) use observability::OBSERVABILITY;
pub(crate) use rate_limits::{RATE_LIMIT, RATE_LIMITS_MAX};
pub use tables::AWS_SCHEDULERS_MAX;
pub(crate) use tables::{ACCESS_LOG, AWS_BODY_BYTES_MAX, DOCUMENT, METADATA};
pub(crate) use upstream::RETRY;

/// The fields of one mapping.
#[derive(Debug)]
pub struct Section {
    pub fields: &'static [Field],
}

/// One key of a mapping.
#[derive(Debug)]
pub struct Field {
    pub key: &'static str,
    pub kind: Kind,
    pub presence: Presence,
    pub origin: Origin,
    /// As one would write it. `None`: absent, or as the help says.
    pub default: Option<&'static str>,
    /// Where AWS's group has another default.
    pub aws_default: Option<&'static str>,
    /// Acts in Kubernetes only.
    pub cluster_only: bool,
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Optional,
    /// AWS's group requires it, ours does not.
    RequiredByAws,
    Required,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Aws,
    /// Not in AWS's schema, refused under AWS's group.
    Ours,
}

/// What a value must be.
#[derive(Debug)]
pub enum Kind {
    Flag,
    Integer {
        min: i64,
        max: i64,
    },
    /// 0 to 1.
    Share,
    /// With or without a fraction.
    Number {
        min: f64,
        max: f64,
    },
    /// A number of bytes, or a text with a unit.
    Bytes {
        min: u64,
        max: u64,
    },
    Duration {
        min: Duration,
        max: Duration,
    },
    Text(Format),
    /// `Critical`, `Standard`, `Sheddable`, or a number.
    Priority,
    /// One of the words; AWS's group may know fewer.
    Choice {
        words: &'static [&'static str],
        aws_words: &'static [&'static str],
    },
    /// One of the words, or a list of them; the words of `alone` stand without a list only.
    Words {
        words: &'static [&'static str],
        alone: &'static [&'static str],
    },
    Section(&'static Section),
    List {
        item: &'static Kind,
        min: usize,
        max: usize,
    },
    /// Text to text.
    Labels,
    /// Passed on to Kubernetes, or ignored; not looked into.
    Opaque,
}

impl Field {
    pub(crate) const fn aws(key: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            key,
            kind,
            presence: Presence::Optional,
            origin: Origin::Aws,
            default: None,
            aws_default: None,
            cluster_only: false,
            help,
        }
    }

    pub(crate) const fn ours(key: &'static str, kind: Kind, help: &'static str) -> Self {
        let mut field = Self::aws(key, kind, help);
        field.origin = Origin::Ours;
        field
    }

    pub(crate) const fn required(mut self) -> Self {
        self.presence = Presence::Required;
        self
    }

    pub(crate) const fn required_by_aws(mut self) -> Self {
        self.presence = Presence::RequiredByAws;
        self
    }

    pub(crate) const fn default(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }

    pub(crate) const fn aws_default(mut self, text: &'static str) -> Self {
        self.aws_default = Some(text);
        self
    }

    pub(crate) const fn cluster_only(mut self) -> Self {
        self.cluster_only = true;
        self
    }
}

impl Kind {
    pub(crate) const fn choice(words: &'static [&'static str]) -> Self {
        Self::Choice { words, aws_words: words }
    }

    /// A section's fields, also those of a list's items.
    pub(crate) fn section(&self) -> Option<&'static Section> {
        match self {
            Self::Section(section) => Some(section),
            Self::List { item, .. } => item.section(),
            _ => None,
        }
    }
}

impl Section {
    pub(crate) fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// The fields of a whole document: `apiVersion`, `kind`, `metadata`, `spec`.
pub fn document_fields() -> &'static Section {
    &DOCUMENT
}

/// Calls `visit` with each field of a document and its path, depth first: `spec.bbr.enabled`,
/// `spec.schedulers[].name`.
pub fn walk(visit: &mut impl FnMut(&str, &'static Field)) {
    walk_from(&DOCUMENT, visit);
}

/// The same for another kind of document, which has `root` at its top.
pub(crate) fn walk_from(root: &'static Section, visit: &mut impl FnMut(&str, &'static Field)) {
    walk_section(root, "", visit);
}

fn walk_section(
    section: &'static Section,
    prefix: &str,
    visit: &mut impl FnMut(&str, &'static Field),
) {
    for field in section.fields {
        let dot = if prefix.is_empty() { "" } else { "." };
        let list = if matches!(field.kind, Kind::List { .. }) { "[]" } else { "" };
        let path = format!("{prefix}{dot}{}", field.key);
        visit(&path, field);
        if let Some(inner) = field.kind.section() {
            walk_section(inner, &format!("{path}{list}"), visit);
        }
    }
}

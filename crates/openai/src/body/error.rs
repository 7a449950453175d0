//! Why a body is refused, in words that help without repeating any of it.

use std::fmt;

/// Why a body is refused. The text says what is wrong, at which byte, and how to mend it; it never
/// contains bytes of the body, because those are somebody's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    pub kind: BodyErrorKind,
    /// Byte in the body at which it was noticed; the first byte is 0.
    pub offset: usize,
    /// The field at fault, where it is one that the gateway reads.
    pub param: Option<&'static str>,
    /// What would have been right.
    pub(super) wanted: &'static str,
}

/// What a caller can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyErrorKind {
    /// Not UTF-8, or with a byte order mark.
    InvalidEncoding,
    /// Not exactly one JSON object.
    InvalidJson,
    TooDeep,
    TooManyFields,
    DuplicateField,
    /// A key equals a known one but for letter case.
    MisspeltField,
    InvalidModel,
    MissingModel,
    /// A field that the gateway reads has a wrong type or value.
    InvalidField,
    InvalidMultipart,
}

impl BodyErrorKind {
    /// The `code` of the error object; never changes once released.
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidEncoding => "invalid_encoding",
            Self::InvalidJson => "invalid_json",
            Self::TooDeep => "body_too_deep",
            Self::TooManyFields => "too_many_fields",
            Self::DuplicateField => "duplicate_field",
            Self::MisspeltField => "misspelt_field",
            Self::InvalidModel => "invalid_model",
            Self::MissingModel => "missing_model",
            Self::InvalidField => "invalid_value",
            Self::InvalidMultipart => "invalid_multipart",
        }
    }
}

impl BodyError {
    pub(super) fn new(kind: BodyErrorKind, offset: usize, wanted: &'static str) -> Self {
        Self { kind, offset, param: None, wanted }
    }

    pub(super) fn json(offset: usize, wanted: &'static str) -> Self {
        Self::new(BodyErrorKind::InvalidJson, offset, wanted)
    }

    pub(super) fn about(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    /// For a body whose `model` is `None` on a route that needs one.
    pub fn missing_model() -> Self {
        Self::new(BodyErrorKind::MissingModel, 0, "add it; GET /v1/models lists the names")
            .about("model")
    }

    pub fn code(&self) -> &'static str {
        self.kind.code()
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, offset, wanted, .. } = self;
        let param = self.param.map_or_else(|| "a field".to_owned(), |param| format!("`{param}`"));
        match kind {
            BodyErrorKind::InvalidEncoding => write!(f, "the body is not plain UTF-8")?,
            BodyErrorKind::InvalidJson => write!(f, "the body is not valid JSON")?,
            BodyErrorKind::TooDeep => write!(f, "the body is nested too deeply")?,
            BodyErrorKind::TooManyFields => write!(f, "the body has too many fields")?,
            BodyErrorKind::DuplicateField => write!(f, "{param} is given twice")?,
            BodyErrorKind::MisspeltField => {
                write!(f, "a field is spelt like {param} but for letter case")?;
            }
            BodyErrorKind::MissingModel => {
                return write!(f, "the body has no `model`: {wanted}");
            }
            BodyErrorKind::InvalidModel | BodyErrorKind::InvalidField => {
                write!(f, "{param} has a value that cannot be used")?;
            }
            BodyErrorKind::InvalidMultipart => write!(f, "the form is not valid multipart data")?,
        }
        write!(f, " (at byte {offset}): {wanted}")
    }
}

impl std::error::Error for BodyError {}

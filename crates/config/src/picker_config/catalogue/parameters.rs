//! Parameters that several plugins have.

use crate::schema::{Field, Format, Kind};

pub(super) const NAME: Kind = Kind::Text(Format::Any(253));
/// A count that may be zero.
pub(super) const COUNT: Kind = Kind::Integer { min: 0, max: i64::MAX };
pub(super) const POSITIVE: Kind = Kind::Integer { min: 1, max: u32::MAX as i64 };

/// There is one of each producer here, so its name decides nothing.
pub(super) const fn producer(key: &'static str) -> Field {
    Field::aws(key, NAME, "Any: there is one of each producer.")
}

/// Read, but the gateway decides it by itself.
pub(super) const fn free(key: &'static str, help: &'static str) -> Field {
    Field::aws(key, Kind::Opaque, help)
}

//! What requests are entitled to: who they count for, and who goes first.

use std::fmt;

/// Higher goes first. Any number; three have names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    pub const CRITICAL: Self = Self(100);
    pub const STANDARD: Self = Self(0);
    pub const SHEDDABLE: Self = Self(-10);

    /// `Critical`, `Standard`, `Sheddable` in any letter case, or a number.
    pub fn parse(text: &str) -> Option<Self> {
        let named = [Self::CRITICAL, Self::STANDARD, Self::SHEDDABLE]
            .into_iter()
            .find(|known| known.name().is_some_and(|name| name.eq_ignore_ascii_case(text)));
        named.or_else(|| text.parse().ok().map(Self))
    }

    /// The name of the three that have one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::CRITICAL => Some("Critical"),
            Self::STANDARD => Some("Standard"),
            Self::SHEDDABLE => Some("Sheddable"),
            Self(_) => None,
        }
    }

    /// Below zero: the first to go when a pool is full (Gateway API Inference Extension).
    pub fn is_sheddable(self) -> bool {
        self.0 < 0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_reads_back_as_it_was_written() {
        for priority in [Priority(100), Priority(0), Priority(-10), Priority(7), Priority(-3)] {
            assert_eq!(Priority::parse(&priority.to_string()), Some(priority));
        }
        assert_eq!(Priority::parse("critical"), Some(Priority::CRITICAL));
        assert_eq!(Priority::parse("urgent"), None);
    }
}

//! One (block, holder) pair in 64 bits: `tag << 32 | slot << 16 | epoch`.

/// A word of a table. A tag is never 0, so the two special values cannot be pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

/// Slots above would look like [`Word::row`].
pub(super) const SLOT_MAX: u16 = ROW - 1;
const ROW: u16 = u16::MAX;

impl Word {
    /// Never used: a probe ends here.
    pub(super) const EMPTY: Self = Self(0);
    /// Used before, free now: a probe goes on.
    pub(super) const FREE: Self = Self(1);

    pub(super) fn holder(tag: u32, slot: u16, epoch: u16) -> Self {
        Self(u64::from(tag) << 32 | u64::from(slot) << 16 | u64::from(epoch))
    }

    /// Stands for all holders of the block: they are in the table's row of that number.
    pub(super) fn row(tag: u32, row: u16) -> Self {
        Self::holder(tag, ROW, row)
    }

    pub(super) fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn slot(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(super) fn epoch(self) -> u16 {
        self.0 as u16
    }

    pub(super) fn as_row(self) -> Option<usize> {
        (self.tag() != 0 && self.slot() == ROW).then_some(usize::from(self.0 as u16))
    }

    pub(super) fn is_holder(self) -> bool {
        self.tag() != 0 && self.slot() != ROW
    }
}

//! What goes from a shard's table into the next one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::Guard;

use super::super::row::bytes_for;
use super::writer::WORDS_PER_BLOCK;
use super::{Row, Slots, Table, Word};

/// What a table holds that is still alive.
pub(super) struct Survivors {
    pub(super) words: Vec<Word>,
    pub(super) rows: Vec<(u32, Arc<Row>)>,
}

impl Survivors {
    pub(super) fn of(table: &Table, slots: &Slots) -> Self {
        let mut live = Self { words: Vec::new(), rows: Vec::new() };
        for word in table.all_words() {
            if let Some(row) = word.as_row() {
                let Some(row) = Guard::into_inner(table.row(row)) else { continue };
                live.add_row(word.tag(), row, slots);
            } else if word.is_holder() && slots.holds(word.slot(), word.epoch()) {
                live.words.push(word);
            }
        }
        live
    }

    /// The tag of some block: as good as a random number. Reversed, for the upper bits of the first
    /// block of a table are all zero.
    pub(super) fn any_tag(&self) -> u32 {
        self.words.first().map_or(0, |word| word.tag().reverse_bits())
    }

    fn add_row(&mut self, tag: u32, row: Arc<Row>, slots: &Slots) {
        let (mut holders, mut span) = (0, 0);
        row.for_each(|slot, epoch| {
            if slots.holds(slot, epoch) {
                holders += 1;
                span = span.max(usize::from(slot) + 1);
            }
        });
        if holders * 2 <= WORDS_PER_BLOCK {
            let holders = live_holders(&row, slots);
            self.words.extend(holders.iter().map(|(slot, epoch)| Word::holder(tag, *slot, *epoch)));
            return;
        }
        let is_wasteful = row.bytes() > bytes_for(holders, span) * 3 / 2;
        let row = if is_wasteful { Arc::new(Row::new(&live_holders(&row, slots))) } else { row };
        self.rows.push((tag, row));
    }

    /// `false` if some word found no place; it is forgotten unless moved elsewhere.
    pub(super) fn move_into(&mut self, table: &Table) -> bool {
        let mut is_whole = true;
        for (number, (tag, _)) in self.rows.iter().enumerate() {
            is_whole &= place(table, Word::row(*tag, number as u16));
        }
        for word in &self.words {
            is_whole &= place(table, *word);
        }
        is_whole
    }
}

fn place(table: &Table, word: Word) -> bool {
    let mut cells = table.window(word.tag()).iter().flat_map(|bucket| &bucket.0);
    let empty = cells.find(|cell| cell.load(Ordering::Relaxed) == Word::EMPTY.0);
    if let Some(cell) = empty {
        cell.store(word.0, Ordering::Relaxed);
    }
    empty.is_some()
}

/// Slots and epochs of those in a row who still hold the block.
pub(super) fn live_holders(row: &Row, slots: &Slots) -> Vec<(u16, u16)> {
    let mut holders = Vec::new();
    row.for_each(|slot, epoch| {
        if slots.holds(slot, epoch) {
            holders.push((slot, epoch));
        }
    });
    holders
}

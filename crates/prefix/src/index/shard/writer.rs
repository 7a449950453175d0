//! Fills a shard's table, and builds the next one when it is full.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};

use super::survivors::{Survivors, live_holders};
use super::{BUCKET_WORDS, Memory, Row, Slots, Table, Word, table_bytes};

/// Holders of a block that get a word each; more share a row.
pub(super) const WORDS_PER_BLOCK: usize = 4;
/// Row numbers fit into 16 bits.
const ROWS_MAX: usize = 1 << 16;

/// What recording a use of a block came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::index) enum Touch {
    /// Held, and last used in this very epoch.
    Same,
    /// Held, last used in an older epoch.
    Moved { from: u16 },
    /// Not held before.
    New,
    /// Not recorded: the memory bound.
    Dropped,
}

/// The one who may change a shard; held under its lock.
#[derive(Debug)]
pub(in crate::index) struct Writer {
    table: Arc<Table>,
    /// New words until the table is looked over.
    words_left: usize,
    rows_used: usize,
    row_bytes: usize,
    wants_rows: bool,
    /// A block found its window full, though the table is not.
    is_window_full: bool,
    is_crowded: bool,
}

impl Writer {
    pub(in crate::index) fn new(table: Arc<Table>) -> Self {
        let words_left = BUCKET_WORDS;
        Self {
            table,
            words_left,
            rows_used: 0,
            row_bytes: 0,
            wants_rows: false,
            is_window_full: false,
            is_crowded: false,
        }
    }

    pub(in crate::index) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// More live words than a table at the memory bound should have.
    pub(in crate::index) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Records a use; `None` if the table needs room first.
    pub(in crate::index) fn touch(
        &mut self,
        tag: u32,
        slot: u16,
        epoch: u16,
        slots: &Slots,
        memory: &Memory,
    ) -> Option<Touch> {
        let mut free = None;
        let mut holders = 0;
        let mut row = None;
        'window: for (number, bucket) in self.table.window(tag).iter().enumerate() {
            let (mut found, has_empty) = bucket.find(tag);
            while found != 0 {
                let cell = &bucket.0[found.trailing_zeros() as usize];
                let word = Word(cell.load(Ordering::Relaxed));
                if let Some(found) = word.as_row() {
                    row = Some(found);
                    break 'window;
                }
                if word.slot() == slot {
                    return Some(retouch(cell, tag, slot, epoch, slots));
                }
                holders += usize::from(slots.holds(word.slot(), word.epoch()));
                found &= found - 1;
            }
            if free.is_none() {
                let is_free = |cell: &AtomicU64| is_free(Word(cell.load(Ordering::Relaxed)), slots);
                free = bucket.0.iter().position(is_free).map(|at| (number, at));
            }
            if has_empty {
                break;
            }
        }
        if let Some(row) = row {
            return self.touch_row(row, (slot, epoch), slots, memory);
        }
        if holders >= WORDS_PER_BLOCK {
            return self.gather_into_row(tag, (slot, epoch), slots, memory);
        }
        self.is_window_full = free.is_none();
        let (bucket, at) = free.filter(|_| self.words_left > 0)?;
        self.words_left -= 1;
        let word = Word::holder(tag, slot, epoch);
        self.table.window(tag)[bucket].0[at].store(word.0, Ordering::Release);
        Some(Touch::New)
    }

    /// As [`Writer::touch`] after a rebuild; without room the oldest neighbour makes place.
    pub(in crate::index) fn force(
        &mut self,
        tag: u32,
        slot: u16,
        epoch: u16,
        slots: &Slots,
        memory: &Memory,
    ) -> Touch {
        if let Some(touch) = self.touch(tag, slot, epoch, slots, memory) {
            return touch;
        }
        let holders =
            self.table.window(tag).iter().flat_map(|bucket| &bucket.0).filter_map(|cell| {
                let word = Word(cell.load(Ordering::Relaxed));
                let residency = slots.get(word.slot()).filter(|_| word.is_holder())?;
                Some((residency.live().age(word.epoch()), cell))
            });
        let Some((_, cell)) = holders.max_by_key(|(age, _)| *age) else { return Touch::Dropped };
        cell.store(Word::holder(tag, slot, epoch).0, Ordering::Release);
        Touch::New
    }

    /// Replaces the table by one without dead words, larger if needed and allowed. `false` if
    /// that would gain nothing.
    pub(in crate::index) fn rebuild(&mut self, slots: &Slots, memory: &Memory) -> bool {
        let words = self.table.words();
        let homes = self.table.homes;
        let growth = table_bytes(homes + growth_homes(homes, u32::MAX), 0) - table_bytes(homes, 0);
        let may_grow = memory.allows(growth);
        if self.words_left > 0 && !self.wants_rows && !may_grow {
            return false;
        }
        let mut live = Survivors::of(&self.table, slots);
        let needed = live.words.len() + live.rows.len();
        // In a small table the buckets behind the last home are many, but few blocks reach them.
        let home_words = homes as usize * BUCKET_WORDS;
        let is_filled = needed * 100 > words * 68 || needed * 100 > home_words * 90;
        self.is_crowded = (is_filled || self.is_window_full) && !may_grow;
        if self.is_crowded && needed * 100 > words * 80 && !self.wants_rows {
            self.words_left = words / 8;
            return false;
        }
        let room = match live.rows.len() {
            0 if !self.wants_rows => 0,
            rows => (rows + rows / 4 + 4).min(ROWS_MAX),
        };
        let mut homes = match may_grow {
            true if is_filled => homes + growth_homes(homes, live.any_tag()),
            // Chance may fill one window; a slightly larger table has others.
            true if self.is_window_full => homes + homes / 16 + 1,
            _ => homes,
        };
        let table = loop {
            let rows = live.rows.iter().map(|(_, row)| Arc::clone(row));
            let table = Table::with_room(homes, rows, room);
            let is_whole = live.move_into(&table);
            if is_whole || !memory.allows(growth * 2) {
                break table;
            }
            homes += homes / 16 + 1;
        };
        memory.add(table.bytes(), table.words());
        memory.sub(self.table.bytes(), words);
        let row_bytes = live.rows.iter().map(|(_, row)| row.bytes()).sum();
        memory.add(row_bytes, 0);
        memory.sub(self.row_bytes, 0);
        self.row_bytes = row_bytes;
        self.rows_used = live.rows.len();
        self.wants_rows = false;
        let words = table.words();
        self.words_left = (words * 85 / 100).saturating_sub(needed).max(words / 16);
        self.table = Arc::new(table);
        true
    }

    /// Frees dead words in one of `parts` parts of the table.
    pub(in crate::index) fn sweep(&self, part: usize, parts: usize, slots: &Slots) {
        for bucket in range(&self.table.buckets, part, parts) {
            for cell in &bucket.0 {
                let word = Word(cell.load(Ordering::Relaxed));
                if word.is_holder() && !slots.holds(word.slot(), word.epoch()) {
                    cell.store(Word::FREE.0, Ordering::Release);
                }
            }
        }
        for row in range(&self.table.rows, part, parts).iter().filter_map(ArcSwapOption::load_full)
        {
            row.sweep(slots);
        }
    }

    fn touch_row(
        &mut self,
        number: usize,
        (slot, epoch): (u16, u16),
        slots: &Slots,
        memory: &Memory,
    ) -> Option<Touch> {
        let Some(row) = Guard::into_inner(self.table.row(number)) else {
            return Some(Touch::Dropped);
        };
        match row.touch(slot, epoch, slots) {
            Ok(Some(before)) if before == epoch => Some(Touch::Same),
            Ok(Some(before)) if slots.holds(slot, before) => Some(Touch::Moved { from: before }),
            Ok(_) => Some(Touch::New),
            Err(()) => {
                let mut holders = live_holders(&row, slots);
                holders.push((slot, epoch));
                let larger = Row::new(&holders);
                if larger.bytes() > row.bytes() && !memory.allows(larger.bytes() - row.bytes()) {
                    return Some(Touch::Dropped);
                }
                self.count_row(&larger, memory);
                memory.sub(row.bytes(), 0);
                self.row_bytes -= row.bytes();
                self.table.rows[number].store(Some(Arc::new(larger)));
                Some(Touch::New)
            }
        }
    }

    fn gather_into_row(
        &mut self,
        tag: u32,
        new: (u16, u16),
        slots: &Slots,
        memory: &Memory,
    ) -> Option<Touch> {
        let table = Arc::clone(&self.table);
        let cells = || {
            table.window(tag).iter().flat_map(|bucket| &bucket.0).filter_map(|cell| {
                let word = Word(cell.load(Ordering::Relaxed));
                (word.tag() == tag).then_some((cell, word))
            })
        };
        let alive = |word: &Word| slots.holds(word.slot(), word.epoch());
        let mut holders: Vec<_> = cells()
            .filter(|(_, word)| alive(word))
            .map(|(_, word)| (word.slot(), word.epoch()))
            .collect();
        holders.push(new);
        self.add_row(&holders, memory).map(|row| {
            let Some(row) = row else { return Touch::Dropped };
            let mut word = Word::row(tag, row);
            for (cell, _) in cells() {
                cell.store(word.0, Ordering::Release);
                word = Word::FREE;
            }
            Touch::New
        })
    }

    /// `None`: the table has no row left; `Some(None)`: the memory bound.
    fn add_row(&mut self, holders: &[(u16, u16)], memory: &Memory) -> Option<Option<u16>> {
        let Some(place) = self.table.rows.get(self.rows_used) else {
            self.wants_rows = true;
            return if self.rows_used < ROWS_MAX && memory.allows(table_bytes(1, self.rows_used)) {
                None
            } else {
                Some(None)
            };
        };
        let row = Row::new(holders);
        if !memory.allows(row.bytes()) {
            return Some(None);
        }
        let number = self.rows_used as u16;
        let row = Arc::new(row);
        place.store(Some(Arc::clone(&row)));
        self.rows_used += 1;
        self.count_row(&row, memory);
        Some(Some(number))
    }

    fn count_row(&mut self, row: &Row, memory: &Memory) {
        memory.add(row.bytes(), 0);
        self.row_bytes += row.bytes();
    }
}

/// Homes that a full table gets more: a quarter, give or take an eighth.
///
/// Blocks spread evenly, so tables that grew by the same steps would all be full at once, and one
/// prompt would have to wait for many to be rebuilt. `any_tag` makes the difference.
fn growth_homes(homes: u32, any_tag: u32) -> u32 {
    let part = (u64::from(homes) * u64::from(any_tag)) >> 34;
    homes / 8 + part as u32 + 1
}

fn is_free(word: Word, slots: &Slots) -> bool {
    match word.as_row() {
        Some(_) => false,
        None => !(word.is_holder() && slots.holds(word.slot(), word.epoch())),
    }
}

fn retouch(cell: &AtomicU64, tag: u32, slot: u16, epoch: u16, slots: &Slots) -> Touch {
    let before = Word(cell.load(Ordering::Relaxed)).epoch();
    if before == epoch {
        return Touch::Same;
    }
    cell.store(Word::holder(tag, slot, epoch).0, Ordering::Release);
    if slots.holds(slot, before) { Touch::Moved { from: before } } else { Touch::New }
}

fn range<T>(items: &[T], part: usize, parts: usize) -> &[T] {
    let end = items.len() * (part + 1) / parts;
    &items[items.len() * part / parts..end]
}

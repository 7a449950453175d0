//! A table that knows which of its columns matter most, for a terminal of any width and for plain text.

use std::cmp::Ordering;

use unicode_width::UnicodeWidthStr;

use super::theme::Tone;
use crate::text::{clean, fit};

/// One column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Columns of the terminal; the first column of a sheet takes what is left besides.
    pub(super) width: u16,
    pub(super) right: bool,
    /// Width of the terminal from which it is shown.
    pub(super) from: u16,
}

/// What a cell is sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key {
    Number(f64),
    Text(String),
    /// Behind all others.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
    pub(super) key: Key,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Which thing it is about; stays from one look to the next.
    pub(super) id: String,
    /// In the order of the columns.
    pub(super) cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sheet {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// Shown in place of no rows.
    pub(super) empty: &'static str,
}

/// By which column, and in which direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sort {
    /// `None`: the order in which the gateway says it.
    pub(super) column: Option<usize>,
    pub(super) reversed: bool,
}

impl Column {
    pub(super) const fn left(title: &'static str, width: u16, from: u16) -> Self {
        Self { title, width, right: false, from }
    }

    pub(super) const fn right(title: &'static str, width: u16, from: u16) -> Self {
        Self { title, width, right: true, from }
    }
}

impl Cell {
    pub(super) fn text(text: &str, tone: Tone) -> Self {
        let text = clean(text).into_owned();
        Self { key: Key::Text(text.to_lowercase()), text, tone }
    }

    /// * `number`: what it is sorted by.
    pub(super) fn number(text: String, number: f64, tone: Tone) -> Self {
        Self { text, tone, key: Key::Number(number) }
    }

    pub(super) fn unknown() -> Self {
        Self { text: "–".to_owned(), tone: Tone::Dim, key: Key::Unknown }
    }

    /// `number` if there is one, written by `write`.
    pub(super) fn maybe(number: Option<f64>, write: impl Fn(f64) -> String, tone: Tone) -> Self {
        number.map_or_else(Self::unknown, |number| Self::number(write(number), number, tone))
    }
}

impl Sheet {
    /// Keeps the rows in which `text` stands, in whatever column and case.
    pub(super) fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        if !text.is_empty() {
            self.rows.retain(|row| {
                row.cells
                    .iter()
                    .any(|cell| matches!(&cell.key, Key::Text(key) if key.contains(&text)))
            });
        }
    }

    /// Numbers go from the largest to the smallest, texts from a to z; rows that are equal stay in
    /// their order.
    pub(super) fn sort(&mut self, sort: Sort) {
        let Some(column) = sort.column else { return };
        let key = |row: &Row| row.cells.get(column).map_or(Key::Unknown, |cell| cell.key.clone());
        self.rows.sort_by(|one, other| order(&key(one), &key(other), sort.reversed));
    }

    /// Width of each column in a terminal of `width`; 0: not shown.
    pub(super) fn widths(&self, width: u16) -> Vec<u16> {
        let mut widths: Vec<u16> = self
            .columns
            .iter()
            .map(|column| if width >= column.from { column.width } else { 0 })
            .collect();
        let gaps = widths.iter().filter(|width| **width > 0).count().saturating_sub(1) as u16;
        let used: u16 = widths.iter().sum::<u16>() + gaps;
        if let Some(first) = widths.first_mut() {
            // The first column is a name: as wide as the longest, if there is room.
            let longest = self.rows.iter().filter_map(|row| row.cells.first());
            let longest = longest.map(|cell| cell.text.width()).max().unwrap_or(0);
            let longest = u16::try_from(longest).unwrap_or(u16::MAX);
            let most = first.saturating_add(width.saturating_sub(used));
            *first = longest.max(*first).min(most);
            if used > width {
                *first = first.saturating_sub(used - width).max(4);
            }
        }
        widths
    }

    /// The title line, with a mark at the sorted column.
    pub(super) fn titles(&self, widths: &[u16], sort: Sort) -> String {
        let cells = self.columns.iter().enumerate().map(|(at, column)| {
            let mark = match (sort.column == Some(at), sort.reversed) {
                (true, false) => "▼",
                (true, true) => "▲",
                _ => "",
            };
            format!("{}{mark}", column.title)
        });
        join(cells.zip(&self.columns).map(|(text, column)| (text, *column)), widths)
    }

    /// Everything as text, without trailing blanks.
    pub(super) fn plain(&self, width: u16) -> String {
        let widths = self.widths(width);
        let mut out = self.titles(&widths, Sort::default()).trim_end().to_owned();
        out.push('\n');
        if self.rows.is_empty() {
            out.push_str(self.empty);
            out.push('\n');
        }
        for row in &self.rows {
            let cells = row.cells.iter().map(|cell| cell.text.clone());
            let cells = cells.zip(&self.columns).map(|(text, column)| (text, *column));
            out.push_str(join(cells, &widths).trim_end());
            out.push('\n');
        }
        out
    }
}

/// Cells side by side, each in its width, a blank between them.
fn join(cells: impl Iterator<Item = (String, Column)>, widths: &[u16]) -> String {
    let mut out = String::new();
    for ((text, column), width) in cells.zip(widths) {
        if *width == 0 {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&padded(&text, *width, column.right));
    }
    out
}

/// `text` in exactly `width` columns.
pub(super) fn padded(text: &str, width: u16, right: bool) -> String {
    let text = fit(text, usize::from(width));
    let blanks = " ".repeat(usize::from(width).saturating_sub(text.width()));
    if right { blanks + &text } else { text + &blanks }
}

fn order(one: &Key, other: &Key, reversed: bool) -> Ordering {
    let order = match (one, other) {
        (Key::Unknown, Key::Unknown) => return Ordering::Equal,
        (Key::Unknown, _) => return Ordering::Greater,
        (_, Key::Unknown) => return Ordering::Less,
        (Key::Number(one), Key::Number(other)) => other.total_cmp(one),
        (Key::Text(one), Key::Text(other)) => one.cmp(other),
        (Key::Number(_), Key::Text(_)) => Ordering::Less,
        (Key::Text(_), Key::Number(_)) => Ordering::Greater,
    };
    if reversed { order.reverse() } else { order }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let row = |name: &str, load: Option<f64>| Row {
            id: name.to_owned(),
            cells: vec![
                Cell::text(name, Tone::Name),
                Cell::maybe(load, |load| format!("{load}"), Tone::Plain),
            ],
        };
        Sheet {
            columns: vec![Column::left("name", 4, 0), Column::right("load", 4, 20)],
            rows: vec![row("beta", Some(1.0)), row("Alpha", None), row("gamma", Some(3.0))],
            empty: "nobody",
        }
    }

    fn ids(sheet: &Sheet) -> Vec<&str> {
        sheet.rows.iter().map(|row| row.id.as_str()).collect()
    }

    #[test]
    fn what_is_not_known_is_sorted_last_in_either_direction() {
        let mut sheet = sheet();
        sheet.sort(Sort { column: Some(1), reversed: false });
        assert_eq!(ids(&sheet), ["gamma", "beta", "Alpha"]);
        sheet.sort(Sort { column: Some(1), reversed: true });
        assert_eq!(ids(&sheet), ["beta", "gamma", "Alpha"]);
        sheet.sort(Sort { column: Some(0), reversed: false });
        assert_eq!(ids(&sheet), ["Alpha", "beta", "gamma"]);
    }

    #[test]
    fn a_filter_does_not_ask_for_case() {
        let mut sheet = sheet();
        sheet.filter("ALP");
        assert_eq!(ids(&sheet), ["Alpha"]);
        sheet.filter("zzz");
        assert_eq!(sheet.plain(40), "name load\nnobody\n");
    }

    #[test]
    fn narrow_terminals_lose_columns_and_wide_ones_show_whole_names() {
        assert_eq!(sheet().plain(10), "name\nbeta\nAlpha\ngamma\n");
        assert_eq!(sheet().plain(30), "name  load\nbeta     1\nAlpha    –\ngamma    3\n");
    }
}

//! Where a dashboard's rows and panels stand, for Grafana and for pictures alike.

use crate::dashboards::{Dashboard, Kind, Panel, Row};

/// Columns of the grid: Grafana's.
pub const COLUMNS: usize = 24;
const HEAD_HEIGHT: usize = 1;
const NUMBER_HEIGHT: usize = 4;
const CHART_HEIGHT: usize = 8;
const CHARTS_A_LINE: usize = 2;

/// A rectangle of the grid, from the top left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub x: usize,
    pub y: usize,
    pub width: usize,
    pub height: usize,
}

/// What stands somewhere: a row's head, or a panel.
#[derive(Clone, Copy, Debug)]
pub enum Item {
    Head(&'static Row),
    Panel(&'static Panel),
}

/// Everything with its place, downwards.
pub fn of(dashboard: &Dashboard) -> Vec<(Place, Item)> {
    let mut items = Vec::new();
    let mut y = 0;
    for row in dashboard.rows {
        items.push((Place { x: 0, y, width: COLUMNS, height: HEAD_HEIGHT }, Item::Head(row)));
        y += HEAD_HEIGHT;
        let numbers = row.panels.iter().all(|panel| panel.kind == Kind::Number);
        let (a_line, height) = if numbers {
            (row.panels.len().max(1), NUMBER_HEIGHT)
        } else {
            (CHARTS_A_LINE, CHART_HEIGHT)
        };
        for line in row.panels.chunks(a_line) {
            // One that stands alone gets the whole line.
            let width = COLUMNS / line.len().max(1);
            for (index, panel) in line.iter().enumerate() {
                items.push((Place { x: index * width, y, width, height }, Item::Panel(panel)));
            }
            y += height;
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboards;

    #[test]
    fn lines_are_full_and_nothing_overlaps() {
        for dashboard in dashboards::all() {
            let items = of(dashboard);
            let rows = items.iter().map(|(place, _)| place.y + place.height).max().unwrap_or(0);
            let mut taken = vec![false; rows * COLUMNS];
            for (place, _) in &items {
                for y in place.y..place.y + place.height {
                    for x in place.x..place.x + place.width {
                        let cell = &mut taken[y * COLUMNS + x];
                        assert!(!*cell, "{}: {place:?}", dashboard.uid);
                        *cell = true;
                    }
                }
            }
            assert!(taken.iter().all(|taken| *taken), "{} has a hole", dashboard.uid);
        }
    }
}

//! Prices by member and time.

use std::time::Duration;

use crate::shaping::Money;

const MINUTES_A_DAY: u16 = 24 * 60;

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    pub input: Money,
    pub output: Money,
}

/// A member's prices over the day, UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceSheet {
    usual: Price,
    windows: Vec<PriceWindow>,
}

/// Another price between two times of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceWindow {
    /// Minutes since midnight, UTC; below 1440.
    pub from: u16,
    /// Not included; before `from`: on the next day.
    pub to: u16,
    pub price: Price,
}

/// Why windows make no sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PriceSheetError {
    #[error("a window from {from} to {to} minutes: times of the day are below 1440")]
    NoTime { from: u16, to: u16 },
    #[error("a window from {from} to {to} minutes is empty")]
    Empty { from: u16, to: u16 },
    #[error("two windows hold minute {minute} of the day")]
    Overlap { minute: u16 },
}

impl Price {
    /// Of a request, rounded up to the next billionth.
    pub fn of(&self, input_tokens: u64, output_tokens: u64) -> Money {
        let part = |price: Money, tokens: u64| {
            (u128::from(price.0) * u128::from(tokens)).div_ceil(1_000_000)
        };
        let sum = part(self.input, input_tokens) + part(self.output, output_tokens);
        Money(u64::try_from(sum).unwrap_or(u64::MAX))
    }
}

impl PriceSheet {
    /// The same price at all times.
    pub fn flat(price: Price) -> Self {
        Self { usual: price, windows: Vec::new() }
    }

    pub fn new(usual: Price, windows: Vec<PriceWindow>) -> Result<Self, PriceSheetError> {
        let mut taken = [false; MINUTES_A_DAY as usize];
        for PriceWindow { from, to, .. } in &windows {
            let (from, to) = (*from, *to);
            if from >= MINUTES_A_DAY || to >= MINUTES_A_DAY {
                return Err(PriceSheetError::NoTime { from, to });
            }
            if from == to {
                return Err(PriceSheetError::Empty { from, to });
            }
            let mut minute = from;
            while minute != to {
                let taken = &mut taken[usize::from(minute)];
                if std::mem::replace(taken, true) {
                    return Err(PriceSheetError::Overlap { minute });
                }
                minute = (minute + 1) % MINUTES_A_DAY;
            }
        }
        Ok(Self { usual, windows })
    }

    /// * `unix`: time since 1970, UTC.
    pub fn at(&self, unix: Duration) -> Price {
        let minute = (unix.as_secs() / 60 % u64::from(MINUTES_A_DAY)) as u16;
        let now = self.windows.iter().find(|window| window.holds(minute));
        now.map_or(self.usual, |window| window.price)
    }
}

impl PriceWindow {
    fn holds(&self, minute: u16) -> bool {
        if self.from < self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(units: f64) -> Price {
        let money = Money::from_units(units).unwrap();
        Price { input: money, output: money }
    }

    fn hours(hours: f64) -> Duration {
        Duration::from_secs_f64(hours * 3600.0)
    }

    #[test]
    fn a_window_over_midnight_holds_on_both_sides() {
        let night = PriceWindow { from: 22 * 60, to: 6 * 60, price: price(1.0) };
        let sheet = PriceSheet::new(price(2.0), vec![night]).unwrap();
        for (hour, units) in [(21.99, 2.0), (22.0, 1.0), (24.0, 1.0), (29.98, 1.0), (30.0, 2.0)] {
            assert_eq!(sheet.at(hours(hour)), price(units), "at {hour}");
        }
    }

    #[test]
    fn windows_that_meet_in_a_minute_are_refused() {
        let window = |from, to| PriceWindow { from, to, price: price(1.0) };
        let sheet = |windows| PriceSheet::new(price(2.0), windows);
        assert!(sheet(vec![window(0, 60), window(60, 120)]).is_ok());
        let overlap = Err(PriceSheetError::Overlap { minute: 0 });
        assert_eq!(sheet(vec![window(1380, 60), window(0, 5)]), overlap);
        assert_eq!(sheet(vec![window(5, 5)]), Err(PriceSheetError::Empty { from: 5, to: 5 }));
        assert!(sheet(vec![window(0, 1440)]).is_err());
    }

    #[test]
    fn a_price_is_exact_and_never_rounded_to_nothing() {
        let price = Price { input: Money(1), output: Money::from_units(0.4).unwrap() };
        assert_eq!(price.of(1, 0), Money(1));
        assert_eq!(price.of(0, 1_000_000), Money::from_units(0.4).unwrap());
        assert_eq!(price.of(u64::MAX, u64::MAX), Money(u64::MAX));
    }
}

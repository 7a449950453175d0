//! What a tenant may spend in a day or month.
//!
//! Several routers spend of one budget. Each tells the authority what it has spent in the period and is told what
//! all have; between two tellings it knows the others' spending as of the last one. So a budget is overdrawn by what
//! the routers spend in one refresh at most, and no request waits for a store.

use std::time::Duration;

use types::Ratio;

use crate::shaping::Money;

/// When a budget begins anew; UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Day,
    Month,
}

/// A tenant's budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub amount: Money,
    pub period: Period,
    /// From this share on, requests go to the cheapest member that keeps their latency target. 1: never.
    pub save_from: Ratio,
}

/// What was spent of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purse {
    period: u64,
    own: Money,
    /// Of the others, as last told.
    others: Money,
}

/// How a request of the tenant is to be treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    Free,
    /// [`crate::Aim::Cheapest`].
    Save,
}

/// A budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the budget is used up; it begins anew in {} s", .reset.as_secs())]
pub struct Overdrawn {
    pub reset: Duration,
}

impl Period {
    /// The number of the period that holds this time since 1970.
    fn number(self, unix: Duration) -> u64 {
        let days = unix.as_secs() / 86_400;
        match self {
            Self::Day => days,
            Self::Month => {
                let (year, month, _) = civil(days);
                year * 12 + month - 1
            }
        }
    }

    /// Until the next one.
    pub fn left(self, unix: Duration) -> Duration {
        let days = unix.as_secs() / 86_400;
        let next = match self {
            Self::Day => days + 1,
            Self::Month => {
                let number = self.number(unix);
                // No month has more than 31 days.
                (days + 1..=days + 31)
                    .find(|day| self.number(Duration::from_secs(day * 86_400)) != number)
                    .unwrap_or(days + 31)
            }
        };
        Duration::from_secs(next * 86_400).saturating_sub(unix)
    }
}

/// Year, month and day of a day since 1970 (Howard Hinnant's `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

impl Purse {
    /// Whether a request may go, and how.
    pub fn ask(&mut self, budget: &Budget, unix: Duration) -> Result<Stance, Overdrawn> {
        self.turn(budget.period, unix);
        let spent = self.own + self.others;
        if spent >= budget.amount {
            return Err(Overdrawn { reset: budget.period.left(unix) });
        }
        let used = spent.0 as f64 / budget.amount.0 as f64;
        let is_saving = used as f32 >= budget.save_from.get();
        Ok(if is_saving { Stance::Save } else { Stance::Free })
    }

    /// A request has cost so much.
    pub fn spend(&mut self, budget: &Budget, cost: Money, unix: Duration) {
        self.turn(budget.period, unix);
        self.own += cost;
    }

    /// What this router has spent in the period, and the period's number, for the authority.
    pub fn spent(&self) -> (u64, Money) {
        (self.period, self.own)
    }

    /// What is left, as far as is known.
    pub fn remaining(&self, budget: &Budget) -> Money {
        budget.amount.saturating_sub(self.own + self.others)
    }

    /// The authority tells what the others have spent in a period.
    pub fn told(&mut self, period: u64, others: Money) {
        if period == self.period {
            self.others = others;
        }
    }

    fn turn(&mut self, period: Period, unix: Duration) {
        let number = period.number(unix);
        // A wall clock that goes back frees nothing.
        if number > self.period {
            *self = Self { period: number, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn at(day: u64, second: u64) -> Duration {
        Duration::from_secs(day * DAY + second)
    }

    fn budget(period: Period) -> Budget {
        Budget { amount: Money(100), period, save_from: Ratio::new(0.8).unwrap() }
    }

    #[test]
    fn a_tenant_saves_before_it_is_refused() {
        let (budget, mut purse) = (budget(Period::Day), Purse::default());
        assert_eq!(purse.ask(&budget, at(20_000, 0)), Ok(Stance::Free));
        purse.spend(&budget, Money(80), at(20_000, 1));
        assert_eq!(purse.ask(&budget, at(20_000, 2)), Ok(Stance::Save));
        purse.spend(&budget, Money(20), at(20_000, 3));
        let reset = Duration::from_secs(DAY - 4);
        assert_eq!(purse.ask(&budget, at(20_000, 4)), Err(Overdrawn { reset }));
        assert_eq!(purse.ask(&budget, at(20_001, 0)), Ok(Stance::Free));
    }

    #[test]
    fn what_other_routers_spent_counts_and_that_of_yesterday_does_not() {
        let (budget, mut purse) = (budget(Period::Day), Purse::default());
        purse.spend(&budget, Money(10), at(20_000, 0));
        let (period, own) = purse.spent();
        assert_eq!(own, Money(10));
        purse.told(period - 1, Money(90));
        assert!(purse.ask(&budget, at(20_000, 1)).is_ok());
        purse.told(period, Money(90));
        assert!(purse.ask(&budget, at(20_000, 1)).is_err());
        assert_eq!(purse.remaining(&budget), Money::ZERO);
    }

    #[test]
    fn a_month_ends_with_its_last_day_in_leap_years_too() {
        // 2028-02-28 is day 21242 since 1970.
        let left = |day, second| Period::Month.left(at(day, second)).as_secs();
        assert_eq!(civil(21_242), (2028, 2, 28));
        assert_eq!(left(21_242, 0), 2 * DAY);
        assert_eq!(left(21_243, DAY - 1), 1);
        assert_eq!(left(21_244, 0), 31 * DAY);
        assert_eq!(civil(0), (1970, 1, 1));
    }

    #[test]
    fn a_wall_clock_that_goes_back_frees_nothing() {
        let (budget, mut purse) = (budget(Period::Month), Purse::default());
        purse.spend(&budget, Money(100), at(21_244, 0));
        assert!(purse.ask(&budget, at(21_200, 0)).is_err());
    }
}

//! What requests cost where, who may spend how much, and what choosing by price has saved.

mod budget;
mod money;
mod price;
mod savings;

pub use budget::{Budget, Overdrawn, Period, Purse, Stance};
pub use money::Money;
pub use price::{Price, PriceSheet, PriceSheetError, PriceWindow};
pub use savings::{Savings, Tally};

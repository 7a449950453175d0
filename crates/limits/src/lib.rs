//! How much: rates, budgets and concurrency by tenant, key, model and route.
//!
//! A [`Limiter`] holds the rules; a request asks it twice, by its head ([`Limiter::arrive`]) and by its
//! body ([`Limiter::reserve`]), and gives the [`Permit`] back with what it really used. No I/O and no
//! clock: the instant is an argument.

mod allowance;
mod bucket;
mod learned;
mod level;
mod limiter;
mod moment;
mod name;
mod permit;
mod rule;
mod shards;
mod standing;
mod terms;
mod view;
mod window;

pub use allowance::{Allowance, Demand, Share};
pub use limiter::{Limiter, Refused};
pub use moment::Moment;
pub use name::{BucketName, Subject};
pub use permit::{Booked, Permit, Spent};
pub use rule::{Amount, Factor, Kind, Match, Override, Per, Period, Rule, Weight};
pub use standing::{Gauge, Standing};
pub use terms::Cost;
pub use view::{BucketView, MeterView, RulePreview};

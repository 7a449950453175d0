//! The rules from outside, with a clock that the tests turn.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod allowances;
mod bounds;
mod buckets;
mod concurrency;
mod debts;
mod desk;
mod models;
mod previews;
mod several;
mod shadows;

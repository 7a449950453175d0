//! Prompt blocks, and the index of which endpoint holds them.
//!
//! A prompt is cut into blocks of fixed length, each hashed together with all that comes before
//! it ([`block_hashes`]). [`PrefixIndex`] remembers which endpoint was sent which blocks, and
//! forgets them as the endpoint's own cache would. [`templates`] tells which prompts share their beginning,
//! and when they cease to. Pure: no I/O, no clock.

mod belief;
mod hash;
mod index;
mod matches;
pub mod templates;

pub use belief::{Answer, Belief};
pub use hash::{BlockHash, block_hashes, seed};
pub use index::{Config, DEFAULT_CAPACITY_BLOCKS, PrefixIndex, Stats};
pub use matches::Matches;

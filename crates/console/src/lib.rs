//! Looking at a running gateway from outside: [`top`] shows it live, [`doctor`] says what to change.
//!
//! Both ask over HTTP and hold nothing in the gateway: what they show is worked out here. Nothing in
//! this crate runs beside traffic, so it blocks and has a thread for each thing it waits for.

mod admin;
pub mod doctor;
mod http;
mod scrape;
mod text;
pub mod top;

pub use admin::AdminFlags;

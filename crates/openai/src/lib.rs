//! What clients say, and how answers are read on their way back.
//!
//! A request body is read once, strictly, without a tree ([`scan`]): every byte is checked, and only
//! ranges into the body come out, because the body itself goes upstream untouched. Answers are read
//! as they pass, holding nothing back ([`SseReader`], [`UsageReader`]). Errors of ours take the form
//! that the client of the route expects ([`ErrorObject`]).
//!
//! No I/O, no async, no clock. Nothing here echoes a body: error texts carry byte offsets only.

mod answer;
mod body;
mod error;
mod models;
mod near;
mod rename;
mod route;
mod sse;
mod stops;
mod usage;

pub use body::{
    Body, BodyError, BodyErrorKind, Limits, Model, Prompt, is_model_name, scan, scan_multipart,
};
pub use error::{ErrorKind, ErrorObject};
pub use models::{ModelCard, card, list};
pub use near::near_names;
pub use rename::{Rename, holds_model_names, with_model};
pub use route::{BodyKind, Dialect, Route, RouteError, find, model_id};
pub use sse::{EventKind, SseReader};
pub use usage::{Usage, UsageReader};

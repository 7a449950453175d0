//! Who sends a request: JSON web tokens, API keys and client certificates.
//!
//! [`Authenticator`] holds what the document says together with the keys in force, and turns
//! [`Presented`] credentials into a [`Caller`]. It does no network I/O and reads no clock: whoever
//! fetches signing keys asks [`Authenticator::due_fetches`] and hands the answers in, and every
//! moment is an argument. It reads files: hashes of API keys, and signing keys kept in a file.

mod authenticator;
mod cache;
mod caller;
mod callers;
mod certificate;
mod denied;
pub mod keys;
mod moment;
mod presented;
mod secrets;
mod token;

pub use authenticator::{Accepted, Authenticator, LoadError, Means, stamp};
pub use caller::{Caller, ModelAccess};
pub use certificate::{Certificate, CertificateError};
pub use denied::Denied;
pub use moment::Moment;
pub use presented::Presented;
pub use secrets::{SecretError, Secrets};
pub use token::{DueFetch, FetchedKeys, JwksError, ProviderState};

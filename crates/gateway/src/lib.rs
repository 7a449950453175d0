//! A request's life, independent of the wire: resolve, admit, pick, observe.
//!
//! [`Gateway`] is what all requests share; [`Exchange`] is one request. The built-in proxy and
//! (later) ext_proc drive the same `Exchange`, so they cannot decide differently.

mod catalog;
mod decisions;
mod directory;
mod exchange;
mod explain;
mod fetch;
mod gateway;
mod member;
mod pool;
mod refusal;
mod request_id;
mod status;
#[cfg(test)]
mod testing;
mod watch;

pub use catalog::{Catalog, Target};
pub use directory::Policy;
pub use exchange::placement::model_not_found;
pub use exchange::{Attempt, Ending, Exchange, Failure, RequestMeta, Verdict};
pub use explain::{CandidateView, DecisionView, ScorerView};
pub use fetch::{Fetch, FetchError, Fetched};
pub use gateway::{Gateway, HeldBody};
pub use member::{Member, PoolMember};
pub use pool::Pool;
pub use refusal::{Component, Refusal, kind_of};
pub use request_id::RequestId;
pub use status::EndpointView;
pub use watch::watch;

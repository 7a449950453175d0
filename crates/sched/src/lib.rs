//! Which endpoint gets a request: live state, filters, scorers, pickers.
//!
//! Does no I/O, reads no clock and draws no randomness of its own: instants and the random
//! generator are arguments. Hence the proxy and the simulator run the very same decisions.
//!
//! Reading order: [`EndpointState`] holds what is known of an endpoint, [`EndpointState::observe`]
//! turns it into a [`Candidate`], [`Profile::pick`] orders candidates, [`EndpointState::reserve`]
//! books the request on the chosen one, and its [`Reservation`] teaches how fast that one is
//! ([`Speed`]).

mod candidate;
mod drain;
mod ejection;
mod filter;
mod forecast;
mod gpu_time;
mod picker;
mod profile;
mod receipt;
mod request;
mod reservation;
mod retry;
mod scorer;
mod speed;
mod state;

pub mod saturation;

pub use candidate::{Candidate, LoraFit, Scraped};
pub use drain::DrainRate;
pub use ejection::{Ejection, EjectionConfig, Health, Outcome};
pub use filter::{
    AsleepFilter, Ceiling, CeilingFilter, ConcurrencyFilter, EjectedFilter, ExpectedWait, Filter,
    LabelFilter, NotServingFilter, PrefixAffinityFilter, StaleFilter, UtilizationFilter,
};
pub use forecast::{Forecast, Prices};
pub use gpu_time::{BusyBook, GpuTime, Work};
pub use picker::{PICKS_MAX, Picker};
pub use profile::{Profile, ScheduleError, Scratch, WeightedScorer, Weights};
pub use receipt::{CandidateReceipt, Receipt};
pub use request::RequestView;
pub use reservation::Reservation;
pub use retry::{RetryBudget, RetryConfig, RetryPermit};
pub use scorer::{
    ActiveRequestsScorer, ContextLengthFilter, ContextLengthScorer, ContextRange, ContextRanges,
    ExpectedTimeScorer, KvCacheScorer, LeastRequestScorer, LoadAwareScorer, LoraAffinityScorer,
    NoHitLruScorer, PrefixLengthScorer, PrefixScorer, QueueScorer, RunningRequestsScorer, Scorer,
    SessionAffinityScorer, Signals, TokenLoadScorer,
};
pub use speed::{Company, Speed};
pub use state::{AdapterCensus, Credit, EndpointState};

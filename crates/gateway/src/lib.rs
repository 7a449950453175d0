//! A request's life, independent of the wire: resolve, admit, pick, observe.
//!
//! [`Gateway`] is what all requests share; [`Exchange`] is one request. The built-in proxy and
//! (later) ext_proc drive the same `Exchange`, so they cannot decide differently.

mod admission;
mod authentication;
mod caller;
mod catalog;
mod census;
mod cluster;
mod clusters;
mod decisions;
mod directory;
mod exchange;
mod explain;
mod fetch;
mod gateway;
mod gauges;
mod heard;
mod live;
mod member;
mod peers;
mod pool;
mod prediction;
mod rate_limits;
mod recording;
mod refusal;
mod request_id;
mod rerate;
mod rewrite;
mod routes;
mod seen;
mod settings;
mod shadow;
mod status;
mod templates;
#[cfg(test)]
mod testing;
mod usage;
mod watch;

pub use admission::{BandView, Grant, Revocation, Turn};
pub use authentication::{FetchKeys, Keys, KeysError, KeysFetchError, keep_keys};
pub use caller::{Caller, ModelAccess, Wishes};
pub use catalog::{Catalog, Target};
pub use census::PoolCensus;
pub use cluster::watch_cluster;
pub use clusters::{
    BudgetView, Clusters, ClustersError, FleetRates, FleetView, Lost, MemberRates, MemberView,
    ModelView, Probe, SavingsView,
};
pub use directory::{Found, Policy};
pub use exchange::access::{card, cards, may_name, model_not_found};
pub use exchange::{
    Attempt, Ending, Exchange, Failure, Placed, RATE_LIMIT_FIELDS, RequestMeta, Subset, Verdict,
};
pub use explain::{
    Asker, CandidateView, DecisionView, FlowView, LimitView, RefusesView, ScorerView, ShadowView,
};
pub use fetch::{Fetch, FetchError, Fetched};
pub use gateway::{Gateway, HeldBody};
pub use identity::{Certificate, FetchedKeys, Presented};
pub use live::{BEAT, LiveAnswer};
pub use member::{Member, PoolMember};
pub use peers::{Outbox, Peering, SentPrompts};
pub use pool::{Pool, Secret};
pub use rate_limits::{BucketView, MeterView, RateLimitView};
pub use recording::record_states;
pub use refusal::{Component, Demand, MEMBER, Prospect, Refusal, kind_of};
pub use request_id::RequestId;
pub use rerate::RatedBy;
pub use rewrite::{
    ActionRefused, MirrorView, RewriteView, Rewrites, RolloutAction, RolloutView, TargetView,
};
pub use routes::{RoutedHead, find_pool};
pub use settings::{EndpointSettingsView, PoolSettingsView, SettingsView};
pub use status::{EndpointView, SpeedView};
pub use templates::{RegressionRow, TemplateRow, TemplatesView, watch_templates};
pub use usage::{PriceView, UsageRow, UsageView};
pub use watch::watch;

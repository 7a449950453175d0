//! What belongs to a rule of rate limits.

use super::cell::{By, Counter, Gauge};
use super::labels::LimitKind;
use super::series::Owned;
use crate::names;

/// Help texts of the fields: [`names::RATE_LIMIT`].
#[derive(Debug, Default)]
pub struct RateLimitMetrics {
    pub refusals: By<LimitKind, Counter>,
    pub shadow_refusals: By<LimitKind, Counter>,
    pub reserved_tokens: Counter,
    pub settled_tokens: Counter,
    pub buckets: Gauge,
}

impl RateLimitMetrics {
    pub(super) fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by(&names::RATE_LIMIT_REFUSALS, &self.refusals);
        out.counters_by(&names::RATE_LIMIT_SHADOW_REFUSALS, &self.shadow_refusals);
        out.counter(&names::RATE_LIMIT_RESERVED_TOKENS, &self.reserved_tokens);
        out.counter(&names::RATE_LIMIT_SETTLED_TOKENS, &self.settled_tokens);
        out.gauge(&names::RATE_LIMIT_BUCKETS, &self.buckets);
    }
}

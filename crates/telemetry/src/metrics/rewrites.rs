//! What belongs to a model rewrite.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::DescriptorEncoder;

use super::cell::{By, Counter, Gauge, Histogram, Reading};
use super::describe;
use super::labels::{MirrorOutcome, Outcome, Rollback};
use super::series::{Owned, Series};
use crate::names;

/// One target of one rule. Help texts of the fields: [`names::REWRITE`].
#[derive(Debug)]
pub struct RewriteMetrics {
    pub requests: By<Outcome, Counter>,
    pub ttft: Histogram,
    pub share: Reading,
    pub rolled_back: Gauge,
    pub rollbacks: By<Rollback, Counter>,
}

impl Default for RewriteMetrics {
    fn default() -> Self {
        Self {
            requests: By::default(),
            ttft: Histogram::of(&names::REWRITE_TTFT),
            share: Reading::default(),
            rolled_back: Gauge::default(),
            rollbacks: By::default(),
        }
    }
}

impl RewriteMetrics {
    fn write(&self, out: &mut Owned<'_, '_>) {
        out.counters_by(&names::REWRITE_REQUESTS, &self.requests);
        out.histogram(&names::REWRITE_TTFT, &self.ttft);
        out.reading(&names::REWRITE_SHARE, &self.share);
        out.gauge(&names::REWRITE_ROLLED_BACK, &self.rolled_back);
        out.counters_by(&names::REWRITE_ROLLBACKS, &self.rollbacks);
    }
}

/// One rule's copies to one model, by what became of them.
pub type MirrorMetrics = By<MirrorOutcome, Counter>;

/// Which rewrite, which rule of it, which model: configured names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleKey {
    pub rewrite: Box<str>,
    /// Position in the rewrite, as a label.
    pub rule: Box<str>,
    pub target: Box<str>,
}

/// Which rewrite, the match that a request had, and the model that it was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DecisionKey {
    pub rewrite: Box<str>,
    pub model: Box<str>,
    pub target: Box<str>,
}

/// All rewrites of a gateway.
#[derive(Debug, Default)]
pub(super) struct Rewrites {
    pub(super) decisions: BTreeMap<DecisionKey, Arc<Counter>>,
    pub(super) targets: BTreeMap<RuleKey, Arc<RewriteMetrics>>,
    pub(super) mirrors: BTreeMap<RuleKey, Arc<MirrorMetrics>>,
}

impl Rewrites {
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for metric in names::REWRITE {
            let mut series = describe(encoder, metric)?;
            self.write(&mut series);
            series.finish()?;
        }
        Ok(())
    }

    pub(super) fn write(&self, series: &mut Series<'_>) {
        for (key, counter) in &self.decisions {
            let DecisionKey { rewrite, model, target } = key;
            let owner = [("rewrite", &**rewrite), ("model", model), ("target", target)];
            series.of(&owner).counter(&names::REWRITE_DECISIONS, counter);
        }
        for (key, metrics) in &self.targets {
            metrics.write(&mut series.of(&key.labels()));
        }
        for (key, copies) in &self.mirrors {
            series.of(&key.labels()).counters_by(&names::REWRITE_MIRRORED, copies);
        }
    }
}

impl RuleKey {
    fn labels(&self) -> [(&str, &str); 3] {
        [("rewrite", &self.rewrite), ("rule", &self.rule), ("target", &self.target)]
    }
}

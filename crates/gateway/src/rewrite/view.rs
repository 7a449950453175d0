//! Splits as people and programs read them.

use std::time::Duration;

use openai::Body;
use serde::{Deserialize, Serialize};
use telemetry::clock;
use telemetry::metrics::labels::MirrorOutcome;
use types::Timestamp;

use super::copies::Mirroring;
use super::{Keys, Matched, Rule};
use crate::catalog::Target;
use crate::exchange::placement::resolve;
use crate::{Caller, Gateway, Refusal};

/// One rule of a rewrite. The names of the fields are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RolloutView {
    pub name: String,
    /// Position in the rewrite.
    pub rule: usize,
    /// Names that it is for; empty: all.
    pub matches: Vec<String>,
    /// The only pool whose requests it is for.
    pub pool: Option<String>,
    /// `none`, `session` or `user`.
    pub sticky: String,
    /// `active`, `paused` or `rolled-back`.
    pub state: String,
    /// The weights are an operator's, not the document's; lost when the process ends.
    pub overridden: bool,
    /// Whether targets are taken back by themselves.
    pub guarded: bool,
    pub targets: Vec<TargetView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<MirrorView>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TargetView {
    pub target: String,
    /// `null`: nobody serves it, and its share goes to the others.
    pub pool: Option<String>,
    pub stable: bool,
    pub configured_weight: u32,
    /// In force now.
    pub weight: u32,
    /// Part of the rule's requests that it gets, 0 to 1.
    pub share: f64,
    /// Since the rule came into force.
    pub requests: u64,
    pub errors: u64,
    /// Within the window, as are the rest.
    pub recent_requests: u64,
    pub error_rate: f64,
    pub ttft_p50_ms: Option<f64>,
    pub ttft_p95_ms: Option<f64>,
    /// Why it gets nothing; `null` while it does.
    pub rolled_back: Option<RolledBackView>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RolledBackView {
    pub reason: String,
    pub time: String,
}

/// Copies of a rule's requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MirrorView {
    pub target: String,
    pub pool: Option<String>,
    pub share: f64,
    pub under_way: u32,
    pub answered: u64,
    /// Not sent, for want of room.
    pub left_out: u64,
    pub error_rate: f64,
    pub ttft_p50_ms: Option<f64>,
    pub ttft_p95_ms: Option<f64>,
}

/// Which target a request would get, in an explanation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RewriteView {
    pub name: String,
    pub rule: usize,
    pub target: String,
    /// A key of the request decides; else the next in the split does.
    pub sticky: bool,
    /// Every target with the share that it has.
    pub shares: Vec<(String, f64)>,
}

impl Gateway {
    /// Every rule, in document order; with `name`, those of one rewrite.
    pub fn rollouts(&self, name: Option<&str>, now: Timestamp) -> Vec<RolloutView> {
        let catalog = self.catalog();
        let rules = catalog.rewrites.rules.iter();
        rules
            .filter(|rule| name.is_none_or(|name| name == &*rule.rewrite))
            .map(|rule| rule.view(now))
            .collect()
    }
}

impl Gateway {
    /// Where a request would go, and which rule sends it there. Nothing is dealt out.
    pub(crate) fn preview_target(
        &self,
        body: &[u8],
        said: &Body,
        caller: &Caller,
    ) -> Result<(Target, Option<RewriteView>), Refusal> {
        let catalog = self.catalog();
        let name = said.model.as_ref().map(|model| model.name.as_str());
        let Some(matched) = name.and_then(|name| catalog.rewrites.find(name, &catalog)) else {
            return Ok((resolve(&catalog, said, caller)?, None));
        };
        let user = said.user.clone().and_then(|range| body.get(range));
        let keys = Keys { session: None, user, caller };
        let chosen = matched.rule.preview(keys);
        let found = chosen.and_then(|at| Some((at, matched.rule.targets.get(at)?.found.clone()?)));
        let Some((at, target)) = found else { return Err(matched.no_target()) };
        Ok((target, Some(matched.explain(at, keys))))
    }
}

impl Matched {
    pub(crate) fn explain(&self, target: usize, keys: Keys<'_>) -> RewriteView {
        let rule = &self.rule;
        let shares = rule.targets.iter().zip(rule.shares());
        RewriteView {
            name: rule.rewrite.to_string(),
            rule: rule.index,
            target: rule.targets.get(target).map_or("", |one| one.name.as_str()).to_owned(),
            sticky: rule.key(keys).is_some(),
            shares: shares.map(|(one, share)| (one.name.as_str().to_owned(), share)).collect(),
        }
    }
}

impl Rule {
    /// What each target gets, as long as nothing else comes to be served.
    fn shares(&self) -> Vec<f64> {
        let weights = self.rollout.weights().only(|at| self.is_served(at));
        (0..self.targets.len()).map(|at| weights.share(at)).collect()
    }

    pub(super) fn view(&self, now: Timestamp) -> RolloutView {
        let status = self.rollout.status(now);
        let told = status.targets.into_iter().zip(&self.targets).zip(self.shares());
        let targets = told.map(|((status, target), share)| TargetView {
            target: target.name.as_str().to_owned(),
            pool: target.found.as_ref().map(|found| found.pool.name.as_str().to_owned()),
            stable: status.is_stable,
            configured_weight: status.configured_weight,
            weight: status.weight,
            share,
            requests: status.requests,
            errors: status.errors,
            recent_requests: status.recent_requests,
            error_rate: status.error_rate,
            ttft_p50_ms: status.ttft_p50.map(millis),
            ttft_p95_ms: status.ttft_p95.map(millis),
            rolled_back: status.rolled_back.map(|back| RolledBackView {
                reason: back.reason.to_string(),
                time: clock::rfc3339(clock::wall() - now.since(back.at)),
            }),
        });
        RolloutView {
            name: self.rewrite.to_string(),
            rule: self.index,
            matches: self.matches.iter().map(|name| name.as_str().to_owned()).collect(),
            pool: self.pool.as_ref().map(|pool| pool.as_str().to_owned()),
            sticky: match self.sticky {
                config::Sticky::None => "none",
                config::Sticky::Session => "session",
                config::Sticky::User => "user",
            }
            .to_owned(),
            state: status.phase.as_str().to_owned(),
            overridden: status.is_overridden,
            guarded: self.rollout.plan().guard.is_some(),
            targets: targets.collect(),
            mirror: self.mirroring.as_ref().map(|mirroring| mirroring.view(now)),
        }
    }
}

impl Mirroring {
    fn view(&self, now: Timestamp) -> MirrorView {
        let count = |outcomes: &[MirrorOutcome]| -> u64 {
            outcomes.iter().map(|outcome| self.metrics.of(*outcome).get()).sum()
        };
        let recent = self.tally.window().summary(now);
        MirrorView {
            target: self.name.as_str().to_owned(),
            pool: self.found.as_ref().map(|found| found.pool.name.as_str().to_owned()),
            share: self.share,
            under_way: self.tally.under_way(),
            answered: count(&[
                MirrorOutcome::Ok,
                MirrorOutcome::ClientError,
                MirrorOutcome::EndpointError,
            ]),
            left_out: count(&[MirrorOutcome::Busy, MirrorOutcome::Bytes, MirrorOutcome::NoRoom]),
            error_rate: recent.error_rate(),
            ttft_p50_ms: recent.ttft.quantile(0.5).map(millis),
            ttft_p95_ms: recent.ttft.quantile(0.95).map(millis),
        }
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

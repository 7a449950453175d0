//! A request that gets another model than its client asked for.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use openai::{Body, BodyKind, Rename};
use rollout::Sample;
use telemetry::metrics::labels;
use types::{ModelName, Timestamp};

use super::{Ending, Exchange};
use crate::catalog::{Catalog, Target};
use crate::refusal::{Component, Refusal};
use crate::rewrite::{Keys, Matched, Rule};

/// The rule that a request had, and what came of it.
pub(super) struct Rewritten {
    matched: Arc<Matched>,
    target: usize,
    /// What the client calls it.
    asked: Box<str>,
    /// The same, if it is a name that the gateway lists; a catch-all has names that it does not.
    listed: Option<ModelName>,
    /// Where that stands in the body.
    literal: Range<usize>,
}

impl Rewritten {
    pub(super) fn rule(&self) -> &Rule {
        &self.matched.rule
    }

    fn wire_name(&self) -> &str {
        self.matched.rule.targets.get(self.target).map_or("", |target| target.name.as_str())
    }
}

impl Exchange {
    /// The proxy in front of us said which model it is to be: no rule is asked.
    pub fn keep_model(&mut self) {
        self.keeps_model = true;
    }

    /// Applies the rule for the body's model, if there is one: where the request goes instead.
    pub(super) fn rewrite(
        &mut self,
        catalog: &Catalog,
        body: &[u8],
        said: &Body,
    ) -> Result<Option<Target>, Refusal> {
        if catalog.rewrites.is_empty() || self.keeps_model {
            return Ok(None);
        }
        let Some(model) = &said.model else { return Ok(None) };
        let rewrites = &catalog.rewrites;
        let matched = match &self.meta.pool {
            None => rewrites.find(&model.name, catalog),
            Some(pool) => rewrites.find_in(pool, &model.name),
        };
        let Some(matched) = matched else { return Ok(None) };
        let keys = Keys {
            session: self.meta.session,
            user: said.user.clone().and_then(|range| body.get(range)),
            caller: &self.meta.caller,
        };
        let chosen = matched
            .rule
            .choose(keys)
            .and_then(|at| Some((at, matched.rule.targets.get(at)?.found.clone()?)));
        // A route has chosen the pool: the name is looked for in it alone.
        let routed = self.meta.pool.as_ref().and_then(|pool| catalog.pool(pool));
        let chosen = match (chosen, routed) {
            (Some((at, found)), Some(pool)) => {
                let name = matched.rule.targets.get(at).map(|target| target.name.as_str());
                Some((at, name.map_or(found, |name| catalog.get_in(pool, Some(name)))))
            }
            (chosen, _) => chosen,
        };
        let Some((target, found)) = chosen else { return Err(matched.no_target()) };
        matched.count(target);
        self.rewritten = Some(Rewritten {
            matched: matched.clone(),
            target,
            asked: model.name.as_str().into(),
            listed: catalog.cards.get_key_value(&*model.name).map(|(name, _)| name.clone()),
            literal: model.literal.clone(),
        });
        Ok(Some(found))
    }

    /// The name that the endpoint is asked for, where it is not the client's. Known after
    /// [`Self::place`].
    pub fn wire_model(&self) -> Option<&str> {
        let rewritten = self.rewritten.as_ref()?;
        Some(rewritten.wire_name()).filter(|name| *name != &*rewritten.asked)
    }

    /// The name that the client asked for, where a rewrite gave it another and everybody may know it.
    pub(super) fn asked_model(&self) -> Option<&ModelName> {
        let rewritten = self.rewritten.as_ref()?;
        rewritten.listed.as_ref().filter(|name| name.as_str() != rewritten.wire_name())
    }

    /// Name of the rewrite whose rule the request had.
    pub(super) fn rewrite_name(&self) -> Option<&str> {
        self.rewritten.as_ref().map(|rewritten| &*rewritten.matched.rule.rewrite)
    }

    /// The body with the endpoint's name in it; `None`: as it came.
    pub fn body_for_endpoint(&self, body: &[u8]) -> Option<Bytes> {
        let (name, rewritten) = (self.wire_model()?, self.rewritten.as_ref()?);
        let is_json = self.meta.route.body() == BodyKind::Json;
        openai::with_model(body, rewritten.literal.clone(), name, is_json)
    }

    /// Gives answers the name back that the client asked for; `None`: they have it.
    pub fn rename(&self) -> Option<Rename> {
        let (name, rewritten) = (self.wire_model()?, self.rewritten.as_ref()?);
        Some(Rename::new(name, &rewritten.asked))
    }

    /// Tells the split how the request ended.
    pub(super) fn settle_rewrite(&self, ending: Ending, outcome: labels::Outcome, now: Timestamp) {
        let Some(rewritten) = &self.rewritten else { return };
        let sample = Sample { failed: self.failed_here(ending, outcome), ttft: self.wait(now) };
        rewritten.matched.rule.record(rewritten.target, outcome, sample, now);
    }

    /// Whether the model failed; `None`: the end says nothing of it.
    pub(super) fn failed_here(&self, ending: Ending, outcome: labels::Outcome) -> Option<bool> {
        let component = self.error.map(|(component, _)| component);
        match outcome {
            labels::Outcome::Ok => Some(false),
            labels::Outcome::EndpointError => Some(true),
            // The client named no such model: we did.
            labels::Outcome::ClientError
                if self.status == 404 && component.is_none() && self.rewritten.is_some() =>
            {
                Some(true)
            }
            // No endpoint is left that could answer. A full pool (429) is no failure of the model.
            labels::Outcome::Shed
                if self.status == 503
                    && component == Some(Component::Picker)
                    && ending == Ending::Refused =>
            {
                Some(true)
            }
            _ => None,
        }
    }

    /// Time to the first token of a stream that went well, or how long a client waited that left
    /// before it.
    pub(super) fn wait(&self, now: Timestamp) -> Option<std::time::Duration> {
        if !self.stream {
            return None;
        }
        let is_stream = self.watching.is_event_stream() && !self.watching.opened_with_error();
        match self.ttft() {
            Some(ttft) => Some(ttft).filter(|_| is_stream),
            None => (self.status == 0).then(|| now.since(self.meta.received)),
        }
    }
}

//! What a request would meet on its way to an endpoint: the rules that limit it and the queue of its pool.

use std::sync::Arc;
use std::time::Duration;

use flow::{Preview, Work};
use limits::Subject;
use openai::{Body, BodyKind, Route};
use sched::Candidate;
use sched::saturation::Room;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use crate::admission::{Entitlement, priority_of, refused_by};
use crate::catalog::Target;
use crate::exchange::admitting::expected_tokens;
use crate::exchange::limited::{expected_cost, subject};
use crate::exchange::placement::PromptView;
use crate::rate_limits::moment;
use crate::{BucketView, Caller, Gateway, Wishes};

/// What the queue of its pool would do with a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowView {
    /// `Critical`, `Standard`, `Sheddable`, or the priority as a number.
    pub band: String,
    pub priority: i32,
    /// Whose requests take turns with those of others.
    pub flow: String,
    /// The objective that it names is not there.
    pub unknown_objective: bool,
    /// Tokens of work that it counts with.
    pub tokens: u32,
    /// Share of the pool's room in use, and the share at which its band waits.
    pub saturation: f32,
    pub ceiling: f32,
    /// `goes`, `waits` or `refused`.
    pub outcome: String,
    /// For `refused`: `saturated`, `band-full` or `deadline` as clients are told; else `null`.
    pub reason: Option<String>,
    pub message: Option<String>,
    /// Requests that would go before it.
    pub ahead: Option<u64>,
    /// Expected wait; `null`: it does not wait, or nothing has drained yet by which to reckon.
    pub wait_ms: Option<u64>,
    /// Another request that waits would have to give way to it.
    pub makes_room: bool,
    /// When it would be told to come back, before that is spread.
    pub retry_after_ms: Option<u64>,
}

/// A rate limit that a request would come under.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LimitView {
    pub rule: String,
    pub shadow: bool,
    /// The bucket as it stands, without the request.
    pub bucket: BucketView,
    /// Why it would refuse the request; `null`: it lets it pass.
    pub refuses: Option<RefusesView>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefusesView {
    /// `requests`, `inputTokens`, `outputTokens`, `tokens` or `concurrent`.
    pub kind: String,
    /// When it would pass if nobody else came.
    pub wait_ms: u64,
}

/// A request that nobody sends.
pub(super) struct Asked<'a> {
    pub(super) gateway: &'a Arc<Gateway>,
    pub(super) route: Route,
    pub(super) body: &'a [u8],
    pub(super) said: &'a Body,
    pub(super) target: &'a Target,
    pub(super) prompt: PromptView,
    pub(super) caller: &'a Caller,
    pub(super) wishes: &'a Wishes,
    pub(super) now: Timestamp,
}

impl Asked<'_> {
    /// `None`: the pool has no queue.
    ///
    /// * `service`: expected time to the first token from its dispatch.
    pub(super) fn flow(&self, candidates: &[Candidate], service: Duration) -> Option<FlowView> {
        let pool = &self.target.pool;
        let admission = pool.admission.as_ref()?;
        let spec = self.gateway.spec();
        let entitled = Entitlement::of(&spec, &pool.name, self.caller, self.wishes, self.now);
        let work = Work {
            tokens: expected_tokens(self.gateway, &self.prompt, self.said, candidates),
            bytes: self.body.len() as u64,
            received: self.now,
            ttft: entitled.ttft,
            deadline: entitled.deadline,
            service,
            fingerprint: None,
            flow: entitled.flow,
        };
        let room = Room::of(&pool.settings.saturation, candidates.iter());
        let seen = admission.preview(&work, &room, self.now);
        let priority = work.flow.priority;
        let mut view = FlowView {
            band: priority.to_string(),
            priority: priority.0,
            flow: work.flow.id.to_string(),
            unknown_objective: entitled.is_unknown,
            tokens: work.tokens,
            saturation: seen.saturation,
            ceiling: seen.ceiling,
            outcome: String::new(),
            reason: None,
            message: None,
            ahead: None,
            wait_ms: None,
            makes_room: false,
            retry_after_ms: None,
        };
        view.outcome = match seen.preview {
            Preview::Goes => "goes",
            Preview::Waits { forecast, makes_room } => {
                view.ahead = Some(forecast.position);
                view.wait_ms = forecast.wait.map(millis);
                view.makes_room = makes_room;
                "waits"
            }
            Preview::Refused(refused) => {
                let refusal = refused_by(&refused, &pool.name, priority);
                view.reason = refusal.dropped_reason().map(str::to_owned);
                view.retry_after_ms = refused.retry_after.map(millis);
                view.message = Some(refusal.message.into());
                "refused"
            }
        }
        .to_owned();
        Some(view)
    }

    /// In the document's order.
    ///
    /// * `asked_model`: the name that a rewrite replaced, where everybody may know it.
    pub(super) fn limits(&self, asked_model: Option<&types::ModelName>) -> Vec<LimitView> {
        let rules = self.gateway.rate_limits.load();
        if self.route.body() == BodyKind::None {
            return Vec::new();
        }
        let target = self.target;
        let pool = Some(&target.pool.name);
        let priority = priority_of(&self.gateway.spec(), pool, self.caller, self.wishes);
        let subject: Subject<'_> =
            subject(self.caller, self.route, Some(&target.name), asked_model, priority);
        let moment = moment(self.now);
        let cost = expected_cost(&rules, &subject, self.said, self.route);
        let previews = rules.limiter.preview(&subject, cost, moment);
        previews
            .into_iter()
            .map(|preview| {
                let rule = rules.limiter.rules().nth(preview.rule);
                let refuses = preview.refused.map(|refused| RefusesView {
                    kind: refused.kind.as_str().to_owned(),
                    wait_ms: millis(refused.wait),
                });
                LimitView {
                    rule: rule.map_or_else(String::new, |rule| rule.name.to_string()),
                    shadow: rule.is_some_and(|rule| rule.shadow),
                    bucket: BucketView::of(preview.bucket),
                    refuses,
                }
            })
            .collect()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

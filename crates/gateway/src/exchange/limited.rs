//! A request under rate limits: counted on arrival, reserved once its body is read, settled at its end.

use std::sync::Arc;
use std::time::Duration;

use limits::{Cost, Permit, Refused, Rule, Spent, Subject};
use openai::{Body, BodyKind, Route};
use telemetry::clock;
use telemetry::metrics::labels;
use telemetry::trace::Step;
use types::{ModelName, PoolName, Priority, Timestamp};

use super::{Ending, Exchange};
use crate::Caller;
use crate::admission::priority_of;
use crate::rate_limits::{InForce, moment};
use crate::refusal::{Component, Refusal};

/// What a request holds of the rules that it came under.
pub(super) struct Limited {
    rules: Arc<InForce>,
    permit: Permit,
    /// Bytes of prompt text, where it is all text.
    prompt_bytes: Option<u64>,
    /// Answers asked for.
    answers: u64,
}

impl Exchange {
    /// Asks the rate limits that can be asked before the body is here. To be called once, before
    /// [`Self::place`].
    pub fn arrive(&mut self, now: Timestamp) -> Result<(), Refusal> {
        let rules = self.gateway.rate_limits.load();
        if rules.limiter.is_empty() || self.meta.route.body() == BodyKind::None {
            return Ok(());
        }
        let rules = Arc::clone(&rules);
        let mut permit = Permit::default();
        let meta = &self.meta;
        let subject = subject(&meta.caller, meta.route, None, None, self.priority(None));
        let shadowed = |refused: &Refused| rules.shadowed(refused);
        let asked = rules.limiter.arrive(&mut permit, &subject, moment(now), shadowed);
        let refusal = asked.map_err(|refused| refusal(&rules, &refused));
        self.limited = Some(Box::new(Limited { rules, permit, prompt_bytes: None, answers: 1 }));
        refusal
    }

    /// Asks the rest, and reserves tokens.
    pub(super) fn reserve_limits(&mut self, said: &Body, now: Timestamp) -> Result<(), Refusal> {
        if self.limited.is_none() {
            return Ok(());
        }
        // `now` is the request's, and the body was scanned since.
        let begun = self.has_journey().then(clock::now);
        let asked = self.reserve(said, now);
        if let Some(begun) = begun {
            self.step_since(Step::Limits, begun);
        }
        asked
    }

    fn reserve(&mut self, said: &Body, now: Timestamp) -> Result<(), Refusal> {
        let priority = self.target.as_ref().map(|target| self.priority(Some(&target.pool.name)));
        let asked = self.asked_model().cloned();
        let (Some(limited), Some(target), Some(priority)) =
            (&mut self.limited, &self.target, priority)
        else {
            return Ok(());
        };
        let Limited { rules, permit, prompt_bytes, answers } = &mut **limited;
        let moment = moment(now);
        let (caller, asked) = (&self.meta.caller, asked.as_ref());
        let subject = subject(caller, self.meta.route, Some(&target.name), asked, priority);
        let media = said.prompt.media_bytes;
        let bytes = said.prompt.bytes().saturating_sub(media) as u64;
        *prompt_bytes = (media == 0).then_some(bytes);
        *answers = said.n.unwrap_or(1);
        let cost = expected_cost(rules, &subject, said, self.meta.route);
        let shadowed = |refused: &Refused| rules.shadowed(refused);
        let asked = rules.limiter.reserve(permit, &subject, cost, moment, shadowed);
        asked.map_err(|refused| refusal(rules, &refused))
    }

    /// Puts what was used in the place of what was reserved.
    pub(super) fn settle_limits(&mut self, ending: Ending, now: Timestamp) {
        let Some(mut limited) = self.limited.take() else { return };
        let moment = moment(now);
        let spent =
            Spent { counts: self.counts(ending), tokens: self.used(&limited.permit, ending) };
        let rules = limited.rules.clone();
        limited.permit.settle(spent, moment, |booked| {
            if let Some(metrics) = rules.metrics(booked.rule) {
                metrics.reserved_tokens.add(booked.reserved.total());
                metrics.settled_tokens.add(booked.used.total());
            }
        });
        if ending == Ending::Complete && rules.limiter.counts_tokens() {
            self.learn(&limited, moment);
        }
        // Kept for the fields of a refusal.
        self.limited = Some(limited);
    }

    fn priority(&self, pool: Option<&PoolName>) -> Priority {
        priority_of(&self.gateway.spec(), pool, &self.meta.caller, &self.meta.wishes)
    }

    /// Whether it counts as a request: not if no endpoint saw it for want of room.
    fn counts(&self, ending: Ending) -> bool {
        let unreachable = matches!(self.error, Some((_, "endpoint_unreachable")));
        let had_no_room = ending == Ending::Drained
            || ending == Ending::Refused && matches!(self.status, 429 | 500..);
        !unreachable && (self.tried > 0 || !had_no_room)
    }

    /// The tokens that it used; `None` where nobody can know.
    fn used(&self, permit: &Permit, ending: Ending) -> Option<Cost> {
        if self.tried == 0 || Uses::of(self.meta.route) == Uses::Nothing {
            return Some(Cost::default());
        }
        if let Some(usage) = self.watching.usage() {
            return Some(Cost::new(usage.prompt_tokens, usage.completion_tokens));
        }
        if ending == Ending::Refused || self.status >= 400 {
            return Some(Cost::default());
        }
        // The client left before the answer said it: what it got.
        let events = self.watching.content_events()?;
        Some(Cost::new(permit.cost().input_tokens, events))
    }

    fn learn(&self, limited: &Limited, moment: limits::Moment) {
        let Some(target) = &self.target else { return };
        let uses = Uses::of(self.meta.route);
        if uses == Uses::Nothing || !(200..300).contains(&self.status) {
            return;
        }
        let usage = self.watching.usage();
        let tokens = usage.map(|usage| usage.completion_tokens).or(self.watching.content_events());
        let prompt = limited.prompt_bytes.zip(usage.map(|usage| usage.prompt_tokens));
        let output = tokens.filter(|_| uses == Uses::Both).map(|all| all / limited.answers.max(1));
        let priority = self.priority(Some(&target.pool.name));
        let (meta, asked) = (&self.meta, self.asked_model());
        let subject = subject(&meta.caller, meta.route, Some(&target.name), asked, priority);
        limited.rules.limiter.learn(&subject, prompt, output, moment);
    }

    /// Fields that tell a client how near it is to its tightest limits; none where it has no limits.
    /// An endpoint's own fields with [`RATE_LIMIT_FIELDS`](crate::RATE_LIMIT_FIELDS) as names must not stand beside them.
    pub(super) fn rate_limit_fields(&self, now: Timestamp) -> Vec<(&'static str, String)> {
        let Some(limited) = &self.limited else { return Vec::new() };
        if !limited.permit.is_limited() {
            return Vec::new();
        }
        let standing = limited.permit.standing(moment(now));
        let mut fields = Vec::new();
        let [requests, tokens] = FIELDS;
        for (names, gauge) in [(requests, standing.requests), (tokens, standing.tokens)] {
            let Some(gauge) = gauge else { continue };
            let [limit, remaining, reset] = names;
            fields.push((limit, gauge.limit.to_string()));
            fields.push((remaining, gauge.remaining.to_string()));
            fields.push((reset, span(gauge.reset)));
        }
        fields
    }
}

/// Which tokens a route's requests cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uses {
    Nothing,
    Input,
    Both,
}

impl Uses {
    fn of(route: Route) -> Self {
        match route {
            Route::ChatCompletions
            | Route::Completions
            | Route::Responses
            | Route::Messages
            | Route::Generate
            | Route::GenerateStream
            // What such a request asks for is not known, but its answer may tell.
            | Route::AudioTranscriptions
            | Route::Opened => Self::Both,
            Route::Embeddings | Route::Rerank | Route::Score => Self::Input,
            Route::CountTokens
            | Route::Tokenize
            | Route::Detokenize
            | Route::Models
            | Route::Model => Self::Nothing,
        }
    }
}

/// Names of the fields, as OpenAI's API has them.
const FIELDS: [[&str; 3]; 2] = [
    ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
];

/// How the names of rate limits' fields begin.
pub const RATE_LIMIT_FIELDS: &str = "x-ratelimit-";

/// What rules look at of a request.
pub(crate) fn subject<'a>(
    caller: &'a Caller,
    route: Route,
    model: Option<&'a ModelName>,
    asked_model: Option<&'a ModelName>,
    priority: Priority,
) -> Subject<'a> {
    Subject {
        tenant: &caller.tenant,
        key: caller.credential.as_ref(),
        model,
        asked_model,
        route: route_name(route),
        priority,
    }
}

/// The tokens that a request will probably use, as far as any rule counts them.
pub(crate) fn expected_cost(
    rules: &InForce,
    subject: &Subject<'_>,
    said: &Body,
    route: Route,
) -> Cost {
    let uses = Uses::of(route);
    if uses == Uses::Nothing || !rules.limiter.counts_tokens() {
        return Cost::default();
    }
    let bytes = said.prompt.bytes().saturating_sub(said.prompt.media_bytes) as u64;
    let most = if uses == Uses::Input { Some(0) } else { said.tokens_max };
    rules.limiter.estimate(subject, bytes, most, said.n.unwrap_or(1))
}

/// A route as rules name it.
fn route_name(route: Route) -> &'static str {
    if route == Route::Opened { "opened" } else { route.as_str() }
}

fn refusal(rules: &InForce, refused: &Refused) -> Refusal {
    rules.refused(refused);
    let rule = rules.limiter.rules().nth(refused.rule);
    let name = rule.map_or("", |rule: &Rule| &rule.name);
    let what = match refused.kind {
        limits::Kind::Requests => "requests",
        limits::Kind::InputTokens => "tokens of prompts",
        limits::Kind::OutputTokens => "tokens of answers",
        limits::Kind::Tokens => "tokens",
        limits::Kind::Concurrent => "requests at once",
    };
    let wait = span(refused.wait);
    let (code, message) = if refused.is_budget {
        (
            "insufficient_quota",
            format!(
                "the day's budget of {what} is used up (rule `{name}`); it begins anew in {wait}"
            ),
        )
    } else {
        ("rate_limit_exceeded", format!("too many {what} (rule `{name}`); try again in {wait}"))
    };
    Refusal::new(429, code, Component::Limit, labels::Refusal::RateLimited, message)
        .with_dropped(labels::Rejection::RateLimited)
        .with_retry_after(refused.wait)
}

/// A time as OpenAI's API writes it: `20ms`, `1s`, `6m0s`, `1h0m0s`. Rounded up.
fn span(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{}ms", time.as_micros().div_ceil(1000));
    }
    let seconds = time.as_millis().div_ceil(1000);
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests;

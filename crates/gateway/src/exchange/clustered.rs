//! A request at a router over clusters: the fleet chooses a member, and is told what came of it.

use std::time::Duration;

use fleet::{Booking, Choice, Outcome, Pick, Refusal as NoMember, Request, Scratch};
use openai::Body;
use telemetry::clock;
use telemetry::metrics::labels;
use telemetry::trace::Step;
use types::Timestamp;

use super::{Ending, Exchange};
use crate::clusters::{Clusters, Lost, Table};
use crate::exchange::placement::with_desk;
use crate::rate_limits::moment;
use crate::refusal::{Component, Refusal};

/// Answers are taken to have so many tokens where nothing is said: mean of the Azure conversation trace.
const OUTPUT_TOKENS: u32 = 211;
/// Blocks of a prompt that keep requests together: those of a system prompt and a first question.
const AFFINITY_BLOCKS: usize = 4;
/// What a client is told to wait until a member may be back.
const WAIT_FOR_MEMBERS: Duration = Duration::from_secs(5);

/// What was decided for a request.
pub(super) struct Clustered {
    choice: Choice,
    /// Counts at the member that has it.
    booking: Option<Booking>,
    /// The member's first byte was seen, or its failure told.
    is_told: bool,
    first_payload: Option<Timestamp>,
    /// The shortest wait that a member which refused the request asked for.
    least_wait: Option<Duration>,
}

impl Clustered {
    fn pick(&self, tried: usize) -> Option<&Pick> {
        self.choice.members().nth(tried.checked_sub(1)?)
    }
}

impl Exchange {
    /// Chooses members, at most two.
    pub(super) fn choose_members(
        &mut self,
        clusters: &Clusters,
        said: &Body,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        let begun = clock::now();
        let Some(target) = &self.target else { return Ok(()) };
        let table = clusters.table();
        let tenant = &self.meta.caller.tenant;
        let policy = table.policy(tenant);
        let unix = moment(now).unix;
        let mut aim = policy.aim;
        if let Some(budget) = &policy.budget {
            match clusters.purses().ask(tenant, budget, unix) {
                Ok(fleet::shaping::Stance::Free) => {}
                Ok(fleet::shaping::Stance::Save) => aim = fleet::Aim::Cheapest,
                Err(overdrawn) => {
                    clusters.metrics().refusals.of(labels::NoMember::Budget).inc();
                    return Err(over_budget(overdrawn.reset));
                }
            }
        }
        let most = said.tokens_max.map_or(OUTPUT_TOKENS, |most| {
            u32::try_from(most).unwrap_or(u32::MAX).min(OUTPUT_TOKENS)
        });
        let mut gone = Vec::new();
        let choice = loop {
            let request = Request {
                model: target.name.as_str(),
                labels: &policy.labels,
                prompt_tokens: self.prompt.tokens,
                output_tokens: most,
                affinity: self.affinity(),
                ttft_target: self.meta.wishes.ttft.or(policy.ttft),
                aim,
                unix,
                tried: &gone,
                ..Request::new("")
            };
            let chosen = with_desk(|desk| {
                table.fleet.choose(&request, &mut desk.members, &mut desk.rng, now)
            });
            let choice = match chosen {
                Ok(choice) => choice,
                Err(error) => {
                    clusters.metrics().refusals.of(refusal_label(error)).inc();
                    return Err(refusal(error, target.name.as_str()));
                }
            };
            let endpoint =
                |pick: &Pick| target.pool.member(table.endpoint_of(pick.member)?).cloned();
            // While a document changes, members may be known here and there that the other does not have.
            let missing = choice.members().find(|pick| endpoint(pick).is_none());
            match missing.map(|pick| pick.member) {
                Some(member) => gone.push(member),
                None => {
                    let members = choice.members().filter_map(endpoint);
                    self.order.extend(members.map(|member| (member, self.prompt.tokens)));
                    break choice;
                }
            }
        };
        let took = clock::now().since(begun);
        self.pick_took = Some(took);
        self.step(Step::Pick, begun, begun + took);
        self.gateway.metrics.gateway().schedule_duration.observe(took);
        self.predicted = Some(choice.first.expected);
        self.clustered = Some(Box::new(Clustered {
            choice,
            booking: None,
            is_told: false,
            first_payload: None,
            least_wait: None,
        }));
        Ok(())
    }

    /// What keeps requests together: the session, else how the prompt begins.
    fn affinity(&self) -> Option<u64> {
        let begins = self.hashes.get(..AFFINITY_BLOCKS.min(self.hashes.len()));
        self.meta.session.or_else(|| begins?.last().map(|block| block.0))
    }

    /// The request goes to a member now.
    pub(super) fn note_member(&mut self) -> Option<Lost> {
        let clusters = self.gateway.clusters()?;
        let tried = self.tried;
        let clustered = self.clustered.as_mut()?;
        let pick = clustered.pick(tried)?;
        let booking = pick.slot.book();
        let table = clusters.table();
        let seat = table.seat(pick.member)?;
        seat.metrics.decisions.of(reason_label(clustered.choice.reason, tried)).inc();
        let lost = seat.watch();
        clustered.booking = Some(booking);
        clustered.is_told = false;
        Some(lost)
    }

    /// Value of `Authorization` towards the member that has the request.
    pub(super) fn member_authorization(&self) -> Option<crate::Secret> {
        let clusters = self.gateway.clusters()?;
        let pick = self.clustered.as_ref()?.pick(self.tried)?;
        clusters.table().seat(pick.member)?.authorization.clone()
    }

    /// Tells the fleet what the attempt under way met. Whether this gateway is a router at all.
    pub(super) fn tell_fleet(&mut self, outcome: Outcome, now: Timestamp) -> bool {
        let Some(clusters) = self.gateway.clusters() else { return false };
        let tried = self.tried;
        let Some(clustered) = &mut self.clustered else { return true };
        clustered.is_told = true;
        let table = clusters.table();
        if let Some(pick) = clustered.pick(tried) {
            let event = table.fleet.outcome(pick, outcome, now);
            clusters.note(&table, event, now);
        }
        true
    }

    /// An answer's head has come.
    pub(super) fn tell_answered(
        &mut self,
        status: u16,
        retry_after: Option<Duration>,
        now: Timestamp,
    ) -> bool {
        if self.gateway.clusters().is_none() {
            return false;
        }
        let wait = retry_after.filter(|wait| !wait.is_zero());
        if matches!(status, 429 | 503)
            && let Some(clustered) = &mut self.clustered
        {
            clustered.least_wait = [clustered.least_wait, wait].into_iter().flatten().min();
        }
        let outcome = match status {
            429 => Outcome::Refused { retry_after: wait },
            503 if retry_after.is_some() => Outcome::Refused { retry_after: wait },
            502..=504 => Outcome::Failed,
            // Heads of streams come before anything is computed: their first payload tells.
            200..300 if self.stream => return true,
            _ => Outcome::Answered { ttft: None },
        };
        self.tell_fleet(outcome, now)
    }

    /// The shortest wait that members asked for when they refused the request.
    pub(super) fn least_wait(&self) -> Option<Duration> {
        self.clustered.as_ref()?.least_wait
    }

    /// The first payload has come.
    pub(super) fn tell_payload(&mut self, is_first_token: bool, now: Timestamp) {
        let dispatched = self.dispatched;
        let Some(clustered) = &mut self.clustered else { return };
        clustered.first_payload.get_or_insert(now);
        if clustered.is_told || !(200..300).contains(&self.status) {
            return;
        }
        let ttft = is_first_token.then(|| now.since(dispatched));
        self.tell_fleet(Outcome::Answered { ttft }, now);
    }

    /// The member that had the request failed or refused, and another one gets it.
    pub(super) fn note_failover(&mut self) {
        let Some(clusters) = self.gateway.clusters() else { return };
        let Some(pick) = self.clustered.as_ref().and_then(|own| own.pick(self.tried)) else {
            return;
        };
        if let Some(seat) = clusters.table().seat(pick.member) {
            seat.metrics.failovers.inc();
        }
    }

    /// The request is over: its place at the member is free, and its cost is known.
    pub(super) fn leave_member(&mut self, ending: Ending, now: Timestamp) {
        if self.gateway.clusters().is_none() {
            return;
        }
        if matches!(
            ending,
            Ending::EndpointCut
                | Ending::EndpointUnfinished
                | Ending::EndpointMalformed
                | Ending::EndpointStalled
        ) {
            self.tell_fleet(Outcome::Failed, now);
        }
        let Some(mut clustered) = self.clustered.take() else { return };
        clustered.booking = None;
        if let Some(clusters) = self.gateway.clusters()
            && (200..300).contains(&self.status)
            && ending != Ending::Refused
        {
            self.settle_money(clusters, &clustered, now);
        }
        // Kept for the fields of an answer that is still to be written.
        self.clustered = Some(clustered);
    }

    fn settle_money(&self, clusters: &Clusters, clustered: &Clustered, now: Timestamp) {
        let Some(pick) = clustered.pick(self.tried) else { return };
        let table = clusters.table();
        if let Some(seat) = table.seat(pick.member) {
            clusters.purses().save(&seat.name, &clustered.choice, self.tried - 1);
        }
        let tenant = &self.meta.caller.tenant;
        let Some(budget) = &table.policy(tenant).budget else { return };
        let unix = moment(now).unix;
        clusters.purses().spend(tenant, budget, self.cost(&table, pick, unix), unix);
    }

    /// What the answer cost at the member, by the tokens that it told, else by estimate.
    fn cost(&self, table: &Table, pick: &Pick, unix: Duration) -> fleet::shaping::Money {
        let price = table.price(pick.member, unix);
        match (self.watching.usage(), price) {
            (Some(usage), Some(price)) => price.of(usage.prompt_tokens, usage.completion_tokens),
            _ => pick.price,
        }
    }

    /// Fields that tell who answered, for operators: their names and values.
    pub fn decision_fields(&self) -> Vec<(&'static str, String)> {
        match (self.member_name(), self.member_reason()) {
            (Some(member), Some(reason)) => {
                vec![(crate::MEMBER, member.to_owned()), ("x-wicketgate-reason", reason.to_owned())]
            }
            _ => {
                let endpoint = self.endpoint_label();
                endpoint.map(|endpoint| ("x-wicketgate-endpoint", endpoint)).into_iter().collect()
            }
        }
    }

    /// The member that has the request, where this gateway is a router.
    pub fn member_name(&self) -> Option<&str> {
        let label = config::MEMBER_LABEL;
        self.clustered.as_ref()?;
        Some(self.current()?.member.endpoint.labels.get(label)?.as_str())
    }

    /// Why this member has it.
    pub fn member_reason(&self) -> Option<&'static str> {
        let clustered = self.clustered.as_ref()?;
        Some(if self.tried > 1 { "failover" } else { clustered.choice.reason.name() })
    }
}

impl Table {
    fn price(&self, member: fleet::MemberId, unix: Duration) -> Option<fleet::shaping::Price> {
        let sheet = self.fleet.member(member)?.prices.as_ref().map(|sheet| sheet.at(unix));
        sheet.or_else(|| self.fleet.report(member)?.heartbeat.price)
    }
}

/// Memory for decisions, on the thread's desk.
pub(crate) type Members = Scratch;

fn over_budget(reset: Duration) -> Refusal {
    Refusal::new(
        429,
        "insufficient_quota",
        Component::Limit,
        labels::Refusal::RateLimited,
        format!("the tenant's budget of money is used up; it begins anew in {} s", reset.as_secs()),
    )
    .with_dropped(labels::Rejection::RateLimited)
    .with_retry_after(reset)
}

fn refusal(error: NoMember, model: &str) -> Refusal {
    let overloaded = |status, code, text: String| {
        Refusal::new(status, code, Component::Picker, labels::Refusal::Overloaded, text)
    };
    match error {
        NoMember::UnknownModel => Refusal::new(
            404,
            "model_not_found",
            Component::Picker,
            labels::Refusal::ModelNotFound,
            format!("no member serves the model `{model}` now"),
        )
        .with_param(Some("model")),
        NoMember::Policy => Refusal::new(
            403,
            "no_member_allowed",
            Component::Picker,
            labels::Refusal::Forbidden,
            format!(
                "no member that serves `{model}` may get this tenant's requests (residency, members)"
            ),
        ),
        NoMember::Unreachable | NoMember::Exhausted => overloaded(
            503,
            "no_members",
            format!("no member that serves `{model}` can be reached now"),
        )
        .with_retry_after(WAIT_FOR_MEMBERS),
    }
}

fn refusal_label(error: NoMember) -> labels::NoMember {
    match error {
        NoMember::UnknownModel => labels::NoMember::UnknownModel,
        NoMember::Policy => labels::NoMember::Policy,
        NoMember::Unreachable | NoMember::Exhausted => labels::NoMember::Unreachable,
    }
}

fn reason_label(reason: fleet::Reason, tried: usize) -> labels::MemberReason {
    use fleet::Reason;
    if tried > 1 {
        return labels::MemberReason::Failover;
    }
    match reason {
        Reason::Local => labels::MemberReason::Local,
        Reason::Soonest => labels::MemberReason::Soonest,
        Reason::Spill => labels::MemberReason::Spill,
        Reason::Affinity => labels::MemberReason::Affinity,
        Reason::Shaped => labels::MemberReason::Shaped,
        Reason::Weights => labels::MemberReason::Weights,
        Reason::Only => labels::MemberReason::Only,
        Reason::Failover => labels::MemberReason::Failover,
        Reason::Overflow => labels::MemberReason::Overflow,
    }
}

#[cfg(test)]
mod tests;

//! All rules, and the two questions that a request asks.

use std::sync::Arc;
use std::time::Duration;

use types::{ModelName, TenantName};

use crate::allowance::{Allowance, Demand};
use crate::bucket::{Bucket, Full, Part};
use crate::learned::{Density, Outputs};
use crate::moment::Moment;
use crate::name::{BucketName, Subject};
use crate::permit::{Hold, Permit};
use crate::rule::{Factor, Kind, Rule};
use crate::shards::Shards;
use crate::terms::{Cost, Terms};
use crate::view::{BucketView, Fullest, RulePreview};

/// The rules in force and what was taken of them.
#[derive(Debug)]
pub struct Limiter {
    rules: Vec<Arc<State>>,
    learned: Arc<Learned>,
    counts_tokens: bool,
    allowance: Allowance,
}

/// A rule with its buckets.
#[derive(Debug)]
struct State {
    rule: Rule,
    needs_model: bool,
    terms: Arc<Terms>,
    /// Of each override.
    overridden: Vec<Arc<Terms>>,
    buckets: Arc<Shards<BucketName, Bucket>>,
}

#[derive(Debug)]
struct Learned {
    outputs: Shards<(TenantName, Option<Arc<str>>, ModelName), Outputs>,
    densities: Shards<ModelName, Density>,
}

/// A request has to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Position of the rule that refuses it for longest.
    pub rule: usize,
    pub kind: Kind,
    /// When it would pass, if nobody else came.
    pub wait: Duration,
    /// A day's budget is used up.
    pub is_budget: bool,
}

impl Limiter {
    /// * `former`: the limiter that this one replaces; rules that mean what they meant keep their buckets.
    pub fn new(rules: Vec<Rule>, former: Option<&Self>) -> Self {
        let learned = former.map_or_else(
            || Arc::new(Learned { outputs: Shards::new(), densities: Shards::new() }),
            |former| former.learned.clone(),
        );
        let rules: Vec<_> = rules
            .into_iter()
            .map(|rule| {
                let known = former.into_iter().flat_map(|former| &former.rules);
                let same = known.into_iter().find(|known| rule.means_the_same_as(&known.rule));
                Arc::new(State::new(rule, same.map(|same| same.buckets.clone())))
            })
            .collect();
        let counts =
            |state: &Arc<State>| state.terms.meters.iter().any(|meter| meter.kind.is_tokens());
        let counts_tokens = rules.iter().any(counts);
        Self { rules, learned, counts_tokens, allowance: Allowance::ALL }
    }

    /// What buckets may spend of which nothing was granted yet.
    pub fn set_allowance(&mut self, allowance: Allowance) {
        self.allowance = allowance;
    }

    pub fn rules(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter().map(|state| &state.rule)
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any rule counts tokens; else nobody needs to estimate or learn.
    pub fn counts_tokens(&self) -> bool {
        self.counts_tokens
    }

    /// Asks the rules that need no body.
    ///
    /// * `shadowed`: told of each shadow rule that would refuse, once for each request.
    pub fn arrive(
        &self,
        permit: &mut Permit,
        subject: &Subject<'_>,
        moment: Moment,
        mut shadowed: impl FnMut(&Refused),
    ) -> Result<(), Refused> {
        permit.arrived = moment;
        let mut worst = None;
        for (rule, state) in self.rules.iter().enumerate() {
            if state.needs_model || !subject.fits(&state.rule.matches) {
                continue;
            }
            let mut hold = self.hold(rule, state, subject, moment);
            let taken = hold.bucket.take(Part::Count, Cost::default(), moment);
            hold.has_count = taken.is_ok();
            note(taken, &mut hold, &mut worst, &mut shadowed);
            permit.holds.push(hold);
        }
        worst.map_or(Ok(()), |worst| {
            permit.undo(Part::Count, moment);
            Err(worst)
        })
    }

    /// Reserves tokens, and asks the rules that need the model.
    ///
    /// * `subject`: with its model.
    pub fn reserve(
        &self,
        permit: &mut Permit,
        subject: &Subject<'_>,
        cost: Cost,
        moment: Moment,
        mut shadowed: impl FnMut(&Refused),
    ) -> Result<(), Refused> {
        permit.cost = cost;
        permit.reserved = moment;
        let mut worst = None;
        for hold in &mut permit.holds {
            if !hold.is_passed_over && hold.bucket.counts_tokens() {
                let taken = hold.bucket.take(Part::Tokens, cost, moment);
                hold.has_tokens = taken.is_ok();
                note(taken, hold, &mut worst, &mut shadowed);
            }
        }
        for (rule, state) in self.rules.iter().enumerate() {
            if !state.needs_model || !subject.fits(&state.rule.matches) {
                continue;
            }
            let mut hold = self.hold(rule, state, subject, moment);
            let taken = hold.bucket.take(Part::All, cost, moment);
            hold.has_count = taken.is_ok();
            hold.has_tokens = taken.is_ok() && hold.bucket.counts_tokens();
            note(taken, &mut hold, &mut worst, &mut shadowed);
            permit.holds.push(hold);
        }
        worst.map_or(Ok(()), |worst| {
            permit.undo(Part::All, moment);
            Err(worst)
        })
    }

    fn hold(&self, rule: usize, state: &State, subject: &Subject<'_>, moment: Moment) -> Hold {
        let name = subject.bucket(state.rule.per, &state.rule.matches);
        let make = |name| state.bucket(name, self.allowance);
        Hold {
            rule,
            is_shadow: state.rule.shadow,
            bucket: state.buckets.get(name, moment, make),
            has_count: false,
            has_tokens: false,
            is_passed_over: false,
        }
    }

    /// What a request will probably use.
    ///
    /// * `prompt_bytes`: bytes of its text, media aside.
    /// * `tokens_max`: most tokens of one answer; `None`: not said.
    /// * `answers`: how many it asks for, at least 1.
    pub fn estimate(
        &self,
        subject: &Subject<'_>,
        prompt_bytes: u64,
        tokens_max: Option<u64>,
        answers: u64,
    ) -> Cost {
        let Some(model) = subject.model else { return Cost::default() };
        let densities = &self.learned.densities;
        let density = densities.look(model.clone(), |_| Density::default());
        let outputs =
            self.learned.outputs.look(outputs_name(subject, model), |_| Outputs::default());
        let usual = outputs.p95();
        let output = tokens_max.map_or(usual, |most| most.min(usual));
        Cost::new(density.tokens(prompt_bytes), output.saturating_mul(answers.max(1)))
    }

    /// What a request has used.
    ///
    /// * `prompt`: bytes of text and the tokens they made; `None`: not to be learned from.
    /// * `output_tokens`: of one answer; `None`: it did not come to its end.
    pub fn learn(
        &self,
        subject: &Subject<'_>,
        prompt: Option<(u64, u64)>,
        output_tokens: Option<u64>,
        moment: Moment,
    ) {
        let Some(model) = subject.model else { return };
        if let Some((bytes, tokens)) = prompt {
            let densities = &self.learned.densities;
            densities.get(model.clone(), moment, |_| Density::default()).learn(bytes, tokens);
        }
        if let Some(tokens) = output_tokens {
            self.outputs(subject, model, moment).learn(tokens, moment.now);
        }
    }

    fn outputs(&self, subject: &Subject<'_>, model: &ModelName, moment: Moment) -> Arc<Outputs> {
        self.learned.outputs.get(outputs_name(subject, model), moment, |_| Outputs::default())
    }

    /// The rules for a request, as they stand. Nothing is taken, and no bucket comes about.
    ///
    /// * `subject`: with its model.
    pub fn preview(&self, subject: &Subject<'_>, cost: Cost, moment: Moment) -> Vec<RulePreview> {
        let rules = self.rules.iter().enumerate();
        let fitting = rules.filter(|(_, state)| subject.fits(&state.rule.matches));
        fitting
            .map(|(rule, state)| {
                let name = subject.bucket(state.rule.per, &state.rule.matches);
                let make = |name| state.bucket(name, self.allowance);
                let bucket = state.buckets.look(name, make);
                let full = bucket.would_refuse(cost, moment);
                let refused = full.map(|Full { kind, wait, is_budget }| Refused {
                    rule,
                    kind,
                    wait,
                    is_budget,
                });
                let mut meters = Vec::new();
                bucket.gauges(moment, |gauge| meters.push(gauge));
                let (name, in_flight) = (bucket.name.clone(), bucket.in_flight());
                RulePreview { rule, bucket: BucketView { name, in_flight, meters }, refused }
            })
            .collect()
    }

    /// Forgets buckets that are at rest. To be called from time to time.
    pub fn sweep(&self, moment: Moment) {
        for state in &self.rules {
            state.buckets.sweep(moment);
        }
        self.learned.outputs.sweep(moment);
    }

    /// Buckets of the rule at this position.
    pub fn buckets(&self, rule: usize) -> usize {
        self.rules.get(rule).map_or(0, |state| state.buckets.len())
    }

    /// The `most` buckets of a rule of which the largest share is used.
    pub fn fullest(&self, rule: usize, most: usize, moment: Moment) -> Vec<BucketView> {
        let Some(state) = self.rules.get(rule) else { return Vec::new() };
        let mut fullest = Fullest::of(most);
        state.buckets.each(|bucket| {
            let mut meters = Vec::new();
            bucket.gauges(moment, |gauge| meters.push(gauge));
            fullest.note(&bucket.name, bucket.in_flight(), meters);
        });
        let share = self.allowance.at(moment.now);
        state.buckets.each_memory(|name, memory| {
            fullest.note(name, 0, memory.gauges(state.terms_of(name), share, moment));
        });
        fullest.take()
    }

    /// Tells what each bucket was asked for since the last call, those that were not asked aside.
    pub fn demands(&self, mut tell: impl FnMut(Demand<'_>)) {
        for state in &self.rules {
            state.buckets.each(|bucket| {
                let (requests, tokens, seconds) = bucket.take_asked();
                if requests > 0 || tokens > 0 {
                    let (rule, bucket) = (&*state.rule.name, &bucket.name);
                    tell(Demand { rule, bucket, requests, tokens, seconds });
                }
            });
        }
    }

    /// Gives a bucket its part of the limit. Whether there is such a bucket.
    pub fn grant(
        &self,
        rule: &str,
        bucket: &BucketName,
        allowance: Allowance,
        moment: Moment,
    ) -> bool {
        self.find(rule, bucket).is_some_and(|found| {
            found.grant(allowance, moment);
            true
        })
    }

    /// Gives a bucket another part of the limit than it had, out of what others have: what it may use at once stays
    /// the same. Whether there is such a bucket.
    pub fn shift(
        &self,
        rule: &str,
        bucket: &BucketName,
        allowance: Allowance,
        moment: Moment,
    ) -> bool {
        self.find(rule, bucket).is_some_and(|found| {
            found.shift(allowance, moment);
            true
        })
    }

    fn find(&self, rule: &str, bucket: &BucketName) -> Option<Arc<Bucket>> {
        let state = self.rules.iter().find(|state| &*state.rule.name == rule)?;
        state.buckets.find(bucket)
    }
}

impl State {
    fn new(rule: Rule, buckets: Option<Arc<Shards<BucketName, Bucket>>>) -> Self {
        let overridden = rule.overrides.iter();
        let overridden =
            overridden.map(|other| Arc::new(Terms::new(&rule, other.factor))).collect();
        Self {
            needs_model: rule.needs_model(),
            terms: Arc::new(Terms::new(&rule, Factor::ONE)),
            overridden,
            buckets: buckets.unwrap_or_else(|| Arc::new(Shards::new())),
            rule,
        }
    }

    fn bucket(&self, name: BucketName, allowance: Allowance) -> Bucket {
        let terms = self.terms_of(&name).clone();
        Bucket::new(name, terms, allowance)
    }

    fn terms_of(&self, name: &BucketName) -> &Arc<Terms> {
        let own = self.rule.overrides.iter().position(|other| name.fits(&other.matches));
        own.and_then(|own| self.overridden.get(own)).unwrap_or(&self.terms)
    }
}

/// Whose answers from which model are of one length.
fn outputs_name(
    subject: &Subject<'_>,
    model: &ModelName,
) -> (TenantName, Option<Arc<str>>, ModelName) {
    (subject.tenant.clone(), subject.key.cloned(), model.clone())
}

/// Keeps the longest refusal; those of shadow rules are only told.
fn note(
    taken: Result<(), Full>,
    hold: &mut Hold,
    worst: &mut Option<Refused>,
    shadowed: &mut impl FnMut(&Refused),
) {
    let Err(Full { kind, wait, is_budget }) = taken else { return };
    let refused = Refused { rule: hold.rule, kind, wait, is_budget };
    if hold.is_shadow {
        hold.is_passed_over = true;
        shadowed(&refused);
    } else if worst.as_ref().is_none_or(|worst| worst.wait < wait) {
        *worst = Some(refused);
    }
}

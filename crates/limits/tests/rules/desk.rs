//! A limiter and a clock.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use types::{ModelName, Priority, TenantName, Timestamp};
use wicketgate_limits::{Amount, Cost, Limiter, Moment, Permit, Refused, Rule, Spent, Subject};

pub(crate) struct Desk {
    pub(crate) limiter: Limiter,
    pub(crate) moment: Moment,
    pub(crate) shadowed: Vec<Refused>,
}

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) struct Who(pub(crate) &'static str, pub(crate) &'static str, pub(crate) &'static str);

pub(crate) const ANA: Who = Who("ana", "ana-1", "llama");

impl Desk {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let limiter = Limiter::new(rules, None);
        let moment =
            Moment { now: Timestamp::from_millis(5_000), unix: Duration::from_secs(43_200) };
        Self { limiter, moment, shadowed: Vec::new() }
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.moment.now = self.moment.now + time;
        self.moment.unix += time;
    }

    /// Both questions; the permit if both are answered with yes.
    pub(crate) fn ask(&mut self, who: Who, cost: Cost) -> Result<Permit, Refused> {
        let Who(tenant, key, model) = who;
        let (tenant, key): (TenantName, Arc<str>) = (tenant.into(), key.into());
        let model = ModelName::new(model);
        let mut permit = Permit::default();
        let head = Subject {
            tenant: &tenant,
            key: Some(&key),
            model: None,
            asked_model: None,
            route: "/v1/chat/completions",
            priority: Priority::STANDARD,
        };
        let shadowed = &mut self.shadowed;
        let mut tell = |refused: &Refused| shadowed.push(refused.clone());
        self.limiter.arrive(&mut permit, &head, self.moment, &mut tell)?;
        let subject = Subject { model: Some(&model), ..head };
        self.limiter.reserve(&mut permit, &subject, cost, self.moment, &mut tell)?;
        Ok(permit)
    }

    /// A request that uses what it reserves and ends at once. Whether it passed.
    pub(crate) fn passes(&mut self, who: Who, tokens: u64) -> bool {
        let cost = Cost::new(tokens, 0);
        let permit = self.ask(who, cost);
        permit.map(|permit| self.settle(permit, cost)).is_ok()
    }

    pub(crate) fn settle(&self, mut permit: Permit, used: Cost) {
        permit.settle(Spent { counts: true, tokens: Some(used) }, self.moment, |_| {});
    }

    /// Requests without tokens that pass before one is refused.
    pub(crate) fn run(&mut self, who: Who) -> u32 {
        (0..).take_while(|_| self.passes(who, 0)).count() as u32
    }
}

pub(crate) fn number(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap()
}

pub(crate) fn per_second(amount: u64, burst: u64) -> Amount {
    Amount { per_second: Some(number(amount)), burst: Some(number(burst)), ..Amount::default() }
}

pub(crate) fn per_minute(amount: u64) -> Amount {
    Amount { per_minute: Some(number(amount)), ..Amount::default() }
}

pub(crate) fn per_day(amount: u64) -> Amount {
    Amount { per_day: Some(number(amount)), ..Amount::default() }
}

/// A rule with a bucket for each tenant.
pub(crate) fn by_tenant(name: &str) -> Rule {
    let mut rule = Rule::new(name);
    rule.per.tenant = true;
    rule
}

pub(crate) fn requests(name: &str, amount: Amount) -> Rule {
    Rule { requests: amount, ..by_tenant(name) }
}

pub(crate) fn tokens(name: &str, amount: Amount) -> Rule {
    Rule { tokens: amount, ..by_tenant(name) }
}

pub(crate) fn concurrent(name: &str, most: u32) -> Rule {
    Rule { concurrent: NonZeroU32::new(most), ..by_tenant(name) }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

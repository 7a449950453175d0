//! A tenant's limit over all routers: production limiters, holders and authority.

use std::num::NonZeroU64;
use std::time::Duration;

use fleet::lease::{Answer, Authority, Holder, Key, Outage, REFRESH};
use limits::{Amount, Cost, Limiter, Moment, Permit, Rule, Spent, Subject};
use types::{ModelName, Priority, TenantName, Timestamp};

const TENANT: &str = "limited";
const ROUTE: &str = "/v1/chat/completions";

pub(crate) struct Limits {
    desks: Vec<Desk>,
    authority: Authority<Key>,
    /// Tokens for a minute.
    limit: u64,
    /// Used, by the second in which the request came.
    used: Vec<u64>,
    tenant: TenantName,
    model: ModelName,
}

struct Desk {
    limiter: Limiter,
    holder: Holder,
    next: Timestamp,
    answers: Vec<(Timestamp, Timestamp, Answer<Key>)>,
}

impl Limits {
    pub(crate) fn new(routers: usize, limit: u64) -> Self {
        let amount = Amount {
            per_minute: NonZeroU64::new(limit.max(1)),
            // Three seconds' worth: a twentieth of a minute.
            burst: NonZeroU64::new((limit / 20).max(1)),
            ..Amount::default()
        };
        let mut rule = Rule::new("tokens");
        rule.per.tenant = true;
        rule.tokens = amount;
        let desk = |at: usize| {
            let holder = Holder::new(at as u64, Outage::Safe, routers as u32);
            let mut limiter = Limiter::new(vec![rule.clone()], None);
            limiter.set_allowance(holder.unasked());
            let next = Timestamp::from_millis(31 * at as u64);
            Desk { limiter, holder, next, answers: Vec::new() }
        };
        Self {
            desks: (0..routers).map(desk).collect(),
            authority: Authority::new(true, routers as u32, Timestamp::ZERO),
            limit,
            used: Vec::new(),
            tenant: TENANT.into(),
            model: "any".into(),
        }
    }

    /// Lets time pass.
    ///
    /// * `way`: round trip of a router to the authority; `None`: it is not reached.
    pub(crate) fn tick(&mut self, way: impl Fn(usize) -> Option<Duration>, now: Timestamp) {
        for (at, desk) in self.desks.iter_mut().enumerate() {
            let moment = moment(now);
            desk.answers.retain(|(asked, arrives, answer)| {
                if *arrives <= now {
                    desk.holder.answered(&desk.limiter, answer, *asked, moment);
                }
                *arrives > now
            });
            if now < desk.next {
                continue;
            }
            desk.next = now + REFRESH;
            let ask = desk.holder.ask(&desk.limiter, moment);
            if let Some(way) = way(at) {
                let answer = self.authority.ask(&ask, now);
                desk.answers.push((now, now + way, answer));
            }
        }
    }

    /// Whether a request passes; then with what it took.
    pub(crate) fn ask(&mut self, router: usize, tokens: u64, now: Timestamp) -> Option<Permit> {
        let head = Subject {
            tenant: &self.tenant,
            key: None,
            model: None,
            asked_model: None,
            route: ROUTE,
            priority: Priority::STANDARD,
        };
        let subject = Subject { model: Some(&self.model), ..head };
        let limiter = &self.desks[router].limiter;
        let mut permit = Permit::default();
        let cost = Cost::new(tokens, 0);
        limiter.arrive(&mut permit, &head, moment(now), |_| {}).ok()?;
        limiter.reserve(&mut permit, &subject, cost, moment(now), |_| {}).ok()?;
        let second = now.as_duration().as_secs() as usize;
        self.used.resize(self.used.len().max(second + 1), 0);
        self.used[second] += tokens;
        let spent = Spent { counts: true, tokens: Some(cost) };
        permit.settle(spent, moment(now), |_| {});
        Some(permit)
    }

    /// The most that passed in sixty seconds, over the limit.
    pub(crate) fn most(&self) -> f64 {
        let windows = self.used.get(10..).unwrap_or_default().windows(60);
        let most = windows.map(|window| window.iter().sum::<u64>()).max().unwrap_or(0);
        most as f64 / self.limit as f64
    }
}

fn moment(now: Timestamp) -> Moment {
    Moment { now, unix: now.as_duration() }
}

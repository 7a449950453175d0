//! Several routers under one limit: what passes in any minute, and what if the authority is gone or reaches half.
//!
//! Method of `limits`' bounds: three times the limit is offered, requests reserve an estimate, use less, and settle
//! seconds later. Twenty routers, of which the busiest gets most.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

use limits::{Amount, Cost, Limiter, Moment, Permit, Rule, Spent, Subject};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{ModelName, Priority, TenantName, Timestamp};
use wicketgate_fleet::lease::{Answer, Authority, Holder, Key, LEASE, Outage, REFRESH};

const ROUTERS: usize = 20;
const LIMIT: u64 = 200_000;
/// After so many seconds the burst of a whole minute, which a limit grants after a pause, is used up.
const BURST: usize = 120;
const STEP: Duration = Duration::from_millis(10);

struct Router {
    limiter: Limiter,
    holder: Holder,
    share: f64,
    running: Vec<(Timestamp, Permit, Cost)>,
    /// Answers on their way, with when they were asked for and when they arrive.
    answers: VecDeque<(Timestamp, Timestamp, Answer<Key>)>,
    next_ask: Timestamp,
}

struct Play {
    routers: Vec<Router>,
    authority: Authority<Key>,
    outage: Outage,
    /// Tokens used, by the second in which the request came.
    used: Vec<u64>,
    now: Timestamp,
    rng: Pcg64Mcg,
}

/// Zipf with exponent 1.2.
fn shares() -> Vec<f64> {
    let weights: Vec<f64> = (1..=ROUTERS).map(|rank| (rank as f64).powf(-1.2)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

impl Play {
    fn new(outage: Outage, seed: u64) -> Self {
        Self::with_burst(outage, LIMIT, seed)
    }

    /// * `burst`: tokens that may be used at once, of all routers together.
    fn with_burst(outage: Outage, burst: u64, seed: u64) -> Self {
        let mut rule = Rule::new("tokens");
        rule.per.tenant = true;
        rule.tokens = Amount {
            per_minute: NonZeroU64::new(LIMIT),
            burst: NonZeroU64::new(burst),
            ..Amount::default()
        };
        let routers = shares().into_iter().enumerate().map(|(at, share)| {
            let holder = Holder::new(at as u64, outage, ROUTERS as u32);
            let mut limiter = Limiter::new(vec![rule.clone()], None);
            limiter.set_allowance(holder.unasked());
            let next_ask = Timestamp::from_millis(37 * at as u64);
            Router {
                limiter,
                holder,
                share,
                running: Vec::new(),
                answers: VecDeque::new(),
                next_ask,
            }
        });
        let routers = routers.collect();
        let authority = Authority::new(outage == Outage::Safe, ROUTERS as u32, Timestamp::ZERO);
        let (used, rng) = (Vec::new(), Pcg64Mcg::seed_from_u64(seed));
        Self { routers, authority, outage, used, now: Timestamp::ZERO, rng }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, unix: self.now.as_duration() }
    }

    /// * `load`: offered, times the limit.
    /// * `reaches`: which routers reach the authority.
    fn run(&mut self, time: Duration, load: f64, reaches: impl Fn(usize) -> bool) {
        let end = self.now + time;
        while self.now < end {
            for at in 0..ROUTERS {
                self.lease(at, reaches(at));
                self.serve(at, load);
            }
            self.now = self.now + STEP;
        }
    }

    fn lease(&mut self, at: usize, reaches: bool) {
        let (now, moment) = (self.now, self.moment());
        let router = &mut self.routers[at];
        while router.answers.front().is_some_and(|(_, arrives, _)| *arrives <= now) {
            let Some((asked, _, answer)) = router.answers.pop_front() else { return };
            router.holder.answered(&router.limiter, &answer, asked, moment);
            router.limiter.set_allowance(router.holder.unasked());
        }
        if now >= router.next_ask {
            router.next_ask = router.next_ask + REFRESH;
            let ask = router.holder.ask(&router.limiter, moment);
            if reaches {
                let answer = self.authority.ask(&ask, now);
                let way = Duration::from_millis(self.rng.random_range(10..150));
                router.answers.push_back((now, now + way, answer));
            }
        }
    }

    fn serve(&mut self, at: usize, load: f64) {
        let moment = self.moment();
        let router = &mut self.routers[at];
        let mut still = Vec::new();
        for (ends, mut permit, used) in router.running.drain(..) {
            if ends <= moment.now {
                permit.settle(Spent { counts: true, tokens: Some(used) }, moment, |_| {});
            } else {
                still.push((ends, permit, used));
            }
        }
        router.running = still;
        // 160 tokens are used on average, 200 reserved.
        let rate = load * router.share * LIMIT as f64 / 60.0 / 160.0 * STEP.as_secs_f64();
        let count = rate.floor() as u32 + u32::from(self.rng.random_bool(rate.fract()));
        for _ in 0..count {
            let output = self.rng.random_range(20..=100);
            let (reserved, used) = (Cost::new(100, 100), Cost::new(100, output));
            let (tenant, model) = (TenantName::new("ana"), ModelName::new("llama"));
            let head = Subject {
                tenant: &tenant,
                key: None,
                model: None,
                asked_model: None,
                route: "/v1/chat/completions",
                priority: Priority::STANDARD,
            };
            let mut permit = Permit::default();
            let subject = Subject { model: Some(&model), ..head };
            let passes = router.limiter.arrive(&mut permit, &head, moment, |_| {}).is_ok()
                && router.limiter.reserve(&mut permit, &subject, reserved, moment, |_| {}).is_ok();
            if passes {
                let second = moment.now.as_duration().as_secs() as usize;
                self.used.resize(self.used.len().max(second + 1), 0);
                self.used[second] += used.total();
                let ends = moment.now + Duration::from_millis(self.rng.random_range(1000..20_000));
                router.running.push((ends, permit, used));
            }
        }
    }

    /// The authority is another process now and knows nothing.
    fn restart_authority(&mut self) {
        self.authority = Authority::new(self.outage == Outage::Safe, 0, self.now);
    }

    /// Least and most that was used in any sixty seconds that begin after `from`, over the limit.
    fn extremes(&self, from: usize) -> (f64, f64) {
        let mut used = self.used.clone();
        used.resize(self.now.as_duration().as_secs() as usize, 0);
        let windows = used[from..].windows(60).map(|w| w.iter().sum::<u64>() as f64);
        let parts = windows.map(|used| used / LIMIT as f64);
        parts.fold((f64::INFINITY, 0.0), |(least, most), part| (part.min(least), part.max(most)))
    }
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn without_a_fault_every_minute_holds_at_most_1_08_and_at_least_0_97_of_the_limit() {
    for seed in 1..=2 {
        let mut play = Play::new(Outage::Safe, seed);
        play.run(seconds(300), 3.0, |_| true);
        let (least, most) = play.extremes(BURST);
        assert!(most <= 1.08, "seed {seed}: {most}");
        assert!(least >= 0.97, "seed {seed}: {least}");
    }
}

/// A twentieth, a sixtieth and a two-hundredth of a minute, cut into parts of which the smallest is less than a request.
/// What chance leaves unused in one part no other part gets: that is why it is not 0.97.
#[test]
fn however_small_the_burst_three_quarters_of_the_limit_are_used_and_never_more_than_1_08() {
    for burst in [LIMIT / 20, LIMIT / 60, LIMIT / 200] {
        let mut play = Play::with_burst(Outage::Safe, burst, 1);
        play.run(seconds(240), 3.0, |_| true);
        let (least, most) = play.extremes(0);
        assert!(most <= 1.08, "burst {burst}: {most}");
        let (steady, _) = play.extremes(60);
        assert!(least.min(steady) >= 0.75, "burst {burst}: {least}, {steady}");
    }
}

#[test]
fn an_outage_of_the_authority_passes_at_most_1_10_of_the_limit() {
    let mut play = Play::new(Outage::Safe, 1);
    play.run(seconds(180), 3.0, |_| true);
    play.run(seconds(90), 3.0, |_| false);
    play.restart_authority();
    play.run(seconds(100), 3.0, |_| true);
    let (_, most) = play.extremes(BURST);
    assert!(most <= 1.10, "{most}");
    let (least, _) = play.extremes(300);
    assert!(least >= 0.97, "it recovers: {least}");
}

#[test]
fn a_partition_that_leaves_the_authority_to_half_of_the_routers_passes_at_most_1_10() {
    for reached in [0, 1] {
        let mut play = Play::new(Outage::Safe, 2);
        play.run(seconds(180), 3.0, |_| true);
        play.run(seconds(120), 3.0, |at| at % 2 == reached);
        play.run(seconds(60), 3.0, |_| true);
        let (_, most) = play.extremes(BURST);
        assert!(most <= 1.10, "{most}");
    }
}

#[test]
fn an_authority_that_restarts_grants_no_more_than_the_limit() {
    let mut play = Play::new(Outage::Safe, 3);
    play.run(seconds(120), 3.0, |_| true);
    for _ in 0..12 {
        play.restart_authority();
        play.run(seconds(10), 3.0, |_| true);
    }
    let (_, most) = play.extremes(BURST);
    assert!(most <= 1.08, "{most}");
}

#[test]
fn cut_off_closed_nothing_passes_and_open_more_than_the_limit() {
    for (outage, range) in [(Outage::Closed, 0.0..0.01), (Outage::Open, 2.0..3.5)] {
        let mut play = Play::new(outage, 4);
        play.run(seconds(60), 3.0, |_| true);
        play.run(seconds(80), 3.0, |_| false);
        let begin = 60 + LEASE.as_secs() as usize * 3;
        let (least, most) = play.extremes(begin);
        assert!(range.contains(&least) && range.contains(&most), "{outage:?}: {least} to {most}");
    }
}

//! One bucket: what has been taken of a rule's amounts by one tenant, key, model, …

mod rest;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use types::Timestamp;

use crate::allowance::Allowance;
use crate::level::Level;
use crate::moment::Moment;
use crate::name::BucketName;
use crate::rule::Kind;
use crate::standing::Gauge;
use crate::terms::{Cost, Measure, Terms};
use crate::window::Used;

/// What a client is told to wait where it cannot be known, and the most for a place.
const PLACE_WAIT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) name: BucketName,
    terms: Arc<Terms>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// One for each meter of the terms.
    readings: Box<[Reading]>,
    in_flight: u32,
    /// How long requests take; zero before the first.
    mean_time: Duration,
    touched: Timestamp,
    allowance: Allowance,
    /// What requests reserve, as a fading mean.
    usual: Cost,
    asked_requests: u64,
    asked_tokens: u64,
    /// Tokens used for each one reserved, as a fading mean.
    used_part: f64,
}

#[derive(Clone, Debug)]
enum Reading {
    Level(Level),
    Used(Used),
}

/// Which of a bucket's measures are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Requests and places; tokens are looked at, so that a bucket in debt refuses without a body.
    Count,
    Tokens,
    All,
}

/// Why a bucket has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) kind: Kind,
    pub(crate) wait: Duration,
    /// A day's budget is used up.
    pub(crate) is_budget: bool,
}

impl Part {
    fn counts(self) -> bool {
        self != Self::Tokens
    }

    fn takes(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::Count => !kind.is_tokens(),
            Self::Tokens => kind.is_tokens(),
        }
    }
}

impl Bucket {
    pub(crate) fn new(name: BucketName, terms: Arc<Terms>, allowance: Allowance) -> Self {
        let readings = terms.meters.iter().map(|meter| match meter.measure {
            Measure::Rate(_) => Reading::Level(Level::default()),
            Measure::Day(_) => Reading::Used(Used::default()),
        });
        let state = State {
            readings: readings.collect(),
            in_flight: 0,
            mean_time: Duration::ZERO,
            touched: Timestamp::ZERO,
            allowance,
            usual: Cost::default(),
            asked_requests: 0,
            asked_tokens: 0,
            used_part: 1.0,
        };
        Self { name, terms, state: Mutex::new(state) }
    }

    /// A panic elsewhere leaves numbers that are each valid.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it measures tokens at all.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.terms.meters.iter().any(|meter| meter.kind.is_tokens())
    }

    /// Takes what a request costs, or nothing.
    pub(crate) fn take(&self, part: Part, cost: Cost, moment: Moment) -> Result<(), Full> {
        let mut state = self.lock();
        let state = &mut *state;
        state.touch(&self.terms, moment);
        if part.counts() {
            state.asked_requests = state.asked_requests.saturating_add(1);
        }
        if part != Part::Count {
            state.asked_tokens = state.asked_tokens.saturating_add(cost.total());
            state.usual = state.usual.faded_with(cost);
        }
        if let Some(full) = state.full(&self.terms, part, cost, moment) {
            if part == Part::Count && self.counts_tokens() {
                // Its tokens will not be asked for, but they were wanted.
                state.asked_tokens = state.asked_tokens.saturating_add(state.usual.total());
            }
            return Err(full);
        }
        for (meter, reading) in self.terms.meters.iter().zip(&mut state.readings) {
            if part.takes(meter.kind) {
                reading.take(&meter.measure, cost.of(meter.kind, self.terms.output_weight));
            }
        }
        if part.counts() {
            state.in_flight += 1;
        }
        Ok(())
    }

    /// What would refuse a request of this cost.
    pub(crate) fn would_refuse(&self, cost: Cost, moment: Moment) -> Option<Full> {
        let mut state = self.lock();
        state.touch(&self.terms, moment);
        state.full(&self.terms, Part::All, cost, moment)
    }

    /// The request is counted no more.
    pub(crate) fn uncount(&self, taken: Moment) {
        let mut state = self.lock();
        for (meter, reading) in self.terms.meters.iter().zip(&mut state.readings) {
            if meter.kind == Kind::Requests {
                reading.correct(&meter.measure, 1, 0, taken);
            }
        }
    }

    /// The request has ended; its place is free.
    ///
    /// * `took`: how long it had the place, where that is known.
    pub(crate) fn leave(&self, took: Option<Duration>) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        if let Some(took) = took {
            let mean = state.mean_time;
            state.mean_time = if mean.is_zero() { took } else { (mean * 7 + took) / 8 };
        }
    }

    /// Puts what was really used in the place of what was reserved at `taken`.
    pub(crate) fn settle(&self, reserved: Cost, used: Cost, taken: Moment, moment: Moment) {
        let mut state = self.lock();
        let state = &mut *state;
        state.touch(&self.terms, moment);
        if reserved.total() > 0 {
            let part = used.total() as f64 / reserved.total() as f64;
            state.used_part += (part.min(2.0) - state.used_part) / 32.0;
        }
        for (meter, reading) in self.terms.meters.iter().zip(&mut state.readings) {
            if meter.kind.is_tokens() {
                let weight = self.terms.output_weight;
                let (reserved, used) =
                    (reserved.of(meter.kind, weight), used.of(meter.kind, weight));
                reading.correct(&meter.measure, reserved, used, taken);
            }
        }
    }

    /// Calls `show` with each meter as it stands.
    pub(crate) fn gauges(&self, moment: Moment, mut show: impl FnMut(Gauge)) {
        let mut state = self.lock();
        let state = &mut *state;
        state.touch(&self.terms, moment);
        let share = state.allowance.at(moment.now);
        for (meter, reading) in self.terms.meters.iter().zip(&state.readings) {
            show(match (&meter.measure, reading) {
                (Measure::Rate(rate), Reading::Level(level)) => Gauge {
                    kind: meter.kind,
                    period: Some(rate.period),
                    limit: share.part(rate.amount.max(rate.burst).get()),
                    remaining: level.remaining(rate, share),
                    reset: level.full_in(rate, share),
                },
                (Measure::Day(budget), Reading::Used(used)) => Gauge {
                    kind: meter.kind,
                    period: Some(crate::Period::Day),
                    limit: share.part(*budget),
                    remaining: used.remaining(share.part(*budget)),
                    reset: moment.day_left(),
                },
                // A bucket's readings are made from its meters.
                _ => continue,
            });
        }
        if let Some(most) = self.terms.concurrent {
            let limit = share.part(most.into());
            let remaining = limit.saturating_sub(state.in_flight.into());
            let reset = Duration::ZERO;
            show(Gauge { kind: Kind::Concurrent, period: None, limit, remaining, reset });
        }
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.lock().in_flight
    }

    pub(crate) fn grant(&self, allowance: Allowance, moment: Moment) {
        let mut state = self.lock();
        state.touch(&self.terms, moment);
        state.allowance = allowance;
    }

    /// The same, and what may be used at once stays what it is.
    pub(crate) fn shift(&self, allowance: Allowance, moment: Moment) {
        let mut state = self.lock();
        let state = &mut *state;
        state.touch(&self.terms, moment);
        let (from, to) = (state.allowance.at(moment.now), allowance.at(moment.now));
        for (meter, reading) in self.terms.meters.iter().zip(&mut state.readings) {
            if let (Measure::Rate(rate), Reading::Level(level)) = (&meter.measure, reading) {
                level.shift(rate, from, to);
            }
        }
        state.allowance = allowance;
    }

    /// Requests and tokens that were asked for since the last call, and how many seconds of the limit they are.
    pub(crate) fn take_asked(&self) -> (u64, u64, f64) {
        let mut state = self.lock();
        let state = &mut *state;
        let requests = std::mem::take(&mut state.asked_requests);
        let tokens = std::mem::take(&mut state.asked_tokens);
        let seconds = self.terms.meters.iter().map(|meter| match meter.measure {
            Measure::Rate(rate) => {
                let asked = if meter.kind.is_tokens() {
                    tokens as f64 * state.used_part
                } else {
                    requests as f64
                };
                asked / rate.amount.get() as f64 * (rate.period.nanos() as f64 * 1e-9)
            }
            Measure::Day(_) => 0.0,
        });
        (requests, tokens, seconds.fold(0.0, f64::max))
    }
}

impl State {
    fn touch(&mut self, terms: &Terms, moment: Moment) {
        self.touched = self.touched.max(moment.now);
        for (meter, reading) in terms.meters.iter().zip(&mut self.readings) {
            match (&meter.measure, reading) {
                (Measure::Rate(rate), Reading::Level(level)) => {
                    level.touch(rate, &self.allowance, moment.now);
                }
                (_, Reading::Used(used)) => used.touch(moment),
                _ => {}
            }
        }
    }

    /// What refuses the request for longest.
    fn full(&self, terms: &Terms, part: Part, cost: Cost, moment: Moment) -> Option<Full> {
        let share = self.allowance.at(moment.now);
        let mut worst: Option<Full> = None;
        let mut note = |full: Full| {
            if worst.is_none_or(|worst| full.wait > worst.wait) {
                worst = Some(full);
            }
        };
        for (meter, reading) in terms.meters.iter().zip(&self.readings) {
            let kind = meter.kind;
            let (count, wanted) = match (part.takes(kind), part) {
                (true, _) => {
                    let count = cost.of(kind, terms.output_weight);
                    (count, count)
                }
                // Tokens are looked at only: is there room for any? If not, when for the usual number?
                (false, Part::Count) => (1, self.usual.of(kind, terms.output_weight).max(1)),
                (false, _) => continue,
            };
            match (&meter.measure, reading) {
                (Measure::Rate(rate), Reading::Level(level)) => {
                    if let Err(wait) = level.check(rate, share, count) {
                        let wait = level.check(rate, share, wanted).err().unwrap_or(wait);
                        note(Full { kind, wait, is_budget: false });
                    }
                }
                (Measure::Day(budget), Reading::Used(used))
                    if !used.check(share.part(*budget), count) =>
                {
                    note(Full { kind, wait: moment.day_left(), is_budget: true });
                }
                _ => {}
            }
        }
        if let Some(most) = terms.concurrent
            && part.counts()
            && u64::from(self.in_flight) >= share.part(most.into())
        {
            // Places become free one after the other.
            let [usual, longest] = PLACE_WAIT;
            let gap = self.mean_time / most.max(1);
            let wait = if gap.is_zero() { usual } else { gap.min(longest) };
            note(Full { kind: Kind::Concurrent, wait, is_budget: false });
        }
        worst
    }
}

impl Reading {
    fn take(&mut self, measure: &Measure, count: u64) {
        match (self, measure) {
            (Self::Level(level), Measure::Rate(rate)) => level.take(rate, count),
            (Self::Used(used), _) => used.take(count),
            _ => {}
        }
    }

    fn correct(&mut self, measure: &Measure, reserved: u64, used: u64, taken: Moment) {
        let (more, less) = (used.saturating_sub(reserved), reserved.saturating_sub(used));
        match (self, measure) {
            (Self::Level(level), Measure::Rate(rate)) if less > 0 => {
                level.give_back(rate, less, taken.now);
            }
            (Self::Level(level), Measure::Rate(rate)) => level.take(rate, more),
            (Self::Used(own), _) if less > 0 => own.give_back(less, taken),
            (Self::Used(own), _) => own.take(more),
            _ => {}
        }
    }
}

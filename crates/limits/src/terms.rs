//! What a rule's buckets measure.

use std::num::NonZeroU64;

use crate::level::Rate;
use crate::rule::{Factor, Kind, Period, Rule, Weight};

/// Tokens that one request can be booked with, each way: beyond every context window there is, so that a
/// number that an endpoint made up cannot lock a bucket for ever.
const TOKENS_MAX: u64 = 1 << 24;

/// Tokens of a request, expected or used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// The measures of a rule, or of those of its buckets that an override is for.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) meters: Box<[Meter]>,
    pub(crate) concurrent: Option<u32>,
    pub(crate) output_weight: Weight,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    pub(crate) kind: Kind,
    pub(crate) measure: Measure,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Measure {
    Rate(Rate),
    Day(u64),
}

impl Cost {
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens: input_tokens.min(TOKENS_MAX),
            output_tokens: output_tokens.min(TOKENS_MAX),
        }
    }

    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The mean of what was and what is, the new with an eighth.
    pub(crate) fn faded_with(self, new: Self) -> Self {
        if self == Self::default() {
            return new;
        }
        let fade = |old: u64, new: u64| (old * 7 + new).div_ceil(8);
        Self {
            input_tokens: fade(self.input_tokens, new.input_tokens),
            output_tokens: fade(self.output_tokens, new.output_tokens),
        }
    }

    /// What a meter of this kind counts; one for a request.
    pub(crate) fn of(self, kind: Kind, weight: Weight) -> u64 {
        match kind {
            Kind::Requests | Kind::Concurrent => 1,
            Kind::InputTokens => self.input_tokens,
            Kind::OutputTokens => self.output_tokens,
            Kind::Tokens => {
                let output = self.output_tokens.saturating_mul(weight.0.into()).div_ceil(1000);
                self.input_tokens.saturating_add(output)
            }
        }
    }
}

impl Terms {
    pub(crate) fn new(rule: &Rule, factor: Factor) -> Self {
        let mut meters = Vec::new();
        for (kind, amount) in rule.amounts() {
            for (period, number) in amount.periods() {
                let number = factor.times(number);
                let measure = match period {
                    Period::Day => Measure::Day(number.get()),
                    _ => {
                        let burst = amount.burst.map_or(number, |burst| factor.times(burst));
                        Measure::Rate(Rate::new(number, period, burst))
                    }
                };
                meters.push(Meter { kind, measure });
            }
        }
        let concurrent = rule.concurrent.map(|most| factor.times(NonZeroU64::from(most)).get());
        Self {
            meters: meters.into(),
            concurrent: concurrent.map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
            output_weight: rule.output_weight,
        }
    }
}

//! What a rule says. Values that exist are valid; `config` reads them from the document.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use types::Priority;

/// One rule: who it is for, and how much they may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// In refusals, metrics and `/debug/limits`.
    pub name: Arc<str>,
    /// One bucket for each combination of these; none: one bucket for all.
    pub per: Per,
    pub matches: Match,
    pub requests: Amount,
    pub input_tokens: Amount,
    pub output_tokens: Amount,
    /// Input and output together, output weighted with [`Self::output_weight`].
    pub tokens: Amount,
    pub output_weight: Weight,
    /// Requests at once, each from its head to the end of its answer.
    pub concurrent: Option<NonZeroU32>,
    /// Counts and reports, refuses nothing.
    pub shadow: bool,
    /// The first that fits a bucket scales its amounts.
    pub overrides: Vec<Override>,
}

/// Which properties of a request name its bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Per {
    pub tenant: bool,
    pub key: bool,
    pub model: bool,
    pub route: bool,
}

/// Which requests a rule is for: those that fit every set that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    pub tenants: BTreeSet<Box<str>>,
    /// Names of credentials. Requests without one fit no such set.
    pub keys: BTreeSet<Box<str>>,
    pub models: BTreeSet<Box<str>>,
    /// Paths of the API, or `opened` for those that the document opens.
    pub routes: BTreeSet<Box<str>>,
    pub priorities: BTreeSet<Priority>,
}

/// How much of one kind. Rates refill steadily (GCRA); `per_day` is a budget that begins anew at midnight UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub per_second: Option<NonZeroU64>,
    pub per_minute: Option<NonZeroU64>,
    pub per_hour: Option<NonZeroU64>,
    pub per_day: Option<NonZeroU64>,
    /// What may be used at once after a pause. `None`: the whole amount of a period.
    pub burst: Option<NonZeroU64>,
}

/// Another measure for some of a rule's buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its sets name properties that the rule's buckets are told apart by.
    pub matches: Match,
    /// Times the rule's amounts.
    pub factor: Factor,
}

/// A positive factor, held in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor(NonZeroU64);

/// How much an output token weighs beside one of the prompt, held in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(pub(crate) u32);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Requests,
    InputTokens,
    OutputTokens,
    Tokens,
    Concurrent,
}

/// How long an amount is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Period {
    Second,
    Minute,
    Hour,
    Day,
}

impl Rule {
    /// A rule that limits nothing yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            per: Per::default(),
            matches: Match::default(),
            requests: Amount::default(),
            input_tokens: Amount::default(),
            output_tokens: Amount::default(),
            tokens: Amount::default(),
            output_weight: Weight::ONE,
            concurrent: None,
            shadow: false,
            overrides: Vec::new(),
        }
    }

    /// Its amounts by kind, without those that are concurrent.
    pub fn amounts(&self) -> [(Kind, Amount); 4] {
        [
            (Kind::Requests, self.requests),
            (Kind::InputTokens, self.input_tokens),
            (Kind::OutputTokens, self.output_tokens),
            (Kind::Tokens, self.tokens),
        ]
    }

    pub fn limits_nothing(&self) -> bool {
        self.concurrent.is_none()
            && self.amounts().iter().all(|(_, amount)| amount.periods().next().is_none())
    }

    /// Whether it can only be applied once the model is known, that is, after the body.
    pub fn needs_model(&self) -> bool {
        self.per.model || !self.matches.models.is_empty()
    }

    /// Whether what was counted under `former` still counts.
    pub(crate) fn means_the_same_as(&self, former: &Self) -> bool {
        Self { shadow: former.shadow, ..self.clone() } == *former
    }
}

impl Amount {
    /// What is limited, the shortest period first.
    pub fn periods(self) -> impl Iterator<Item = (Period, NonZeroU64)> {
        [
            (Period::Second, self.per_second),
            (Period::Minute, self.per_minute),
            (Period::Hour, self.per_hour),
            (Period::Day, self.per_day),
        ]
        .into_iter()
        .filter_map(|(period, amount)| Some((period, amount?)))
    }
}

impl Period {
    pub const fn nanos(self) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        match self {
            Self::Second => SECOND,
            Self::Minute => 60 * SECOND,
            Self::Hour => 3600 * SECOND,
            Self::Day => 86_400 * SECOND,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::Requests, Self::InputTokens, Self::OutputTokens, Self::Tokens, Self::Concurrent];

    /// As the document has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::InputTokens => "inputTokens",
            Self::OutputTokens => "outputTokens",
            Self::Tokens => "tokens",
            Self::Concurrent => "concurrent",
        }
    }

    pub fn is_tokens(self) -> bool {
        matches!(self, Self::InputTokens | Self::OutputTokens | Self::Tokens)
    }
}

impl Factor {
    pub const ONE: Self = Self(NonZeroU64::new(1000).expect("1000 is not 0"));

    /// * `factor`: 0.001 to a million, rounded to thousandths; `None` outside.
    pub fn new(factor: f64) -> Option<Self> {
        let valid = (0.001..=1e6).contains(&factor);
        // In range, hence the conversion is exact enough.
        valid.then(|| NonZeroU64::new((factor * 1000.0).round() as u64).map(Self)).flatten()
    }

    /// The amount times the factor, rounded down, at least 1.
    pub fn times(self, amount: NonZeroU64) -> NonZeroU64 {
        let scaled = u128::from(amount.get()) * u128::from(self.0.get()) / 1000;
        NonZeroU64::new(u64::try_from(scaled).unwrap_or(u64::MAX)).unwrap_or(NonZeroU64::MIN)
    }

    /// Whether an amount would be less than one.
    pub fn empties(self, amount: NonZeroU64) -> bool {
        u128::from(amount.get()) * u128::from(self.0.get()) < 1000
    }
}

impl Weight {
    pub const ONE: Self = Self(1000);

    /// * `weight`: 0 to 1000; `None` outside.
    pub fn new(weight: f64) -> Option<Self> {
        (0.0..=1000.0).contains(&weight).then(|| Self((weight * 1000.0).round() as u32))
    }
}

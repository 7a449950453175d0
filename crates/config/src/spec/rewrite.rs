//! Other models than those that clients ask for: aliases, canaries, mirrors.

use std::num::NonZeroU32;
use std::time::Duration;

use types::{ModelName, PoolName, Ratio};

/// One `modelRewrites[]`; in document order, which is their precedence.
///
/// Whoever makes these from resources of a cluster puts them in the order of creation time, then of
/// namespace and name.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRewrite {
    pub name: Box<str>,
    /// `None`: whatever pool a request would go to.
    pub pool: Option<PoolName>,
    pub rules: Vec<RewriteRule>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RewriteRule {
    /// Names that clients ask for. Empty: all.
    pub matches: Vec<ModelName>,
    /// At least one; no name twice; a weight above 0 among them.
    pub targets: Vec<RewriteTarget>,
    pub sticky: Sticky,
    pub mirror: Option<Mirror>,
    pub rollback: Option<Rollback>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RewriteTarget {
    pub model: ModelName,
    /// 0 to 1,000,000; 1 where the document has no weights.
    pub weight: u32,
    pub stable: bool,
}

/// What keeps its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sticky {
    #[default]
    None,
    Session,
    User,
}

/// Requests that are sent to a further model too, for nobody to read the answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    pub model: ModelName,
    pub share: Ratio,
    /// Copies under way at one time.
    pub concurrency_max: NonZeroU32,
}

/// When a target's traffic is taken away.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    pub error_rate: Ratio,
    /// 1 to 100.
    pub ttft_ratio: f64,
    pub ttft_slack: Duration,
    pub window: Duration,
    pub requests_min: NonZeroU32,
}

impl Default for Rollback {
    fn default() -> Self {
        Self {
            error_rate: Ratio::new(0.05).unwrap_or(Ratio::ZERO),
            ttft_ratio: 1.5,
            ttft_slack: Duration::from_millis(50),
            window: Duration::from_secs(300),
            requests_min: NonZeroU32::new(50).unwrap_or(NonZeroU32::MIN),
        }
    }
}

impl Mirror {
    /// All of a rule's requests to `model`, with the usual bound.
    pub fn new(model: ModelName) -> Self {
        let concurrency_max = NonZeroU32::new(32).unwrap_or(NonZeroU32::MIN);
        Self { model, share: Ratio::ONE, concurrency_max }
    }
}

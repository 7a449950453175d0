//! What the prefix index finds, and what prompts share.

use super::{Kind, Metric, Unit, metric};

pub static PREFIX_BLOCKS_LOOKED_UP: Metric = metric(
    "wicketgate_prefix_blocks_looked_up_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prefix blocks of prompts looked up in the prefix index.",
);

pub static PREFIX_BLOCKS_MATCHED: Metric = metric(
    "wicketgate_prefix_blocks_matched_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prefix blocks that the chosen endpoint was believed to hold.",
);

pub static PREFIX_TOKENS_BELIEVED: Metric = metric(
    "wicketgate_prefix_tokens_believed_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prompt tokens that an endpoint was believed to hold, of answers that report cached tokens.",
);

pub static PREFIX_TOKENS_FOUND: Metric = metric(
    "wicketgate_prefix_tokens_found_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Prompt tokens that it had cached, of the same answers and in the gateway's estimated tokens.",
);

pub static PREFIX_REGRESSIONS: Metric = metric(
    "wicketgate_prefix_regressions_total",
    Kind::Counter,
    Unit::Count,
    &["pool"],
    "Times that prompts of one template began to share less than they did.",
);

pub static PREFIX_REGRESSIONS_OPEN: Metric = metric(
    "wicketgate_prefix_regressions_open",
    Kind::Gauge,
    Unit::Count,
    &["pool"],
    "Templates whose prompts share less than they did, at this moment.",
);

pub static PREFIX_LOSS: Metric = metric(
    "wicketgate_prefix_loss_tokens_per_hour",
    Kind::Gauge,
    Unit::Count,
    &["pool"],
    "Prompt tokens per hour that are computed again because of open prefix regressions.",
);

//! Prompt templates: counted by requests, looked at every few seconds, told when one shares less than it
//! did. Numbers only; see [`prefix::templates`].

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prefix::BlockHash;
use prefix::templates::{Cause, Event, Regression, TemplateRef, Templates};
use serde::Serialize;
use telemetry::clock;
use types::{PoolName, Timestamp};

use crate::Gateway;
use crate::pool::Pool;

/// What all requests share of it.
#[derive(Debug, Default)]
pub(crate) struct TemplateDesk(Mutex<Templates>);

/// `/debug/prefixes`. The names of the fields are stable.
#[derive(Clone, Debug, Serialize)]
pub struct TemplatesView {
    /// Tokens of one block, a token counted as four bytes.
    pub block_tokens: u32,
    /// Those of most tokens first.
    pub templates: Vec<TemplateRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct TemplateRow {
    /// Of no meaning outside this process.
    pub id: u64,
    pub pool: String,
    /// Tokens from the beginning that its prompts have in common.
    pub shared_tokens: u64,
    pub prompt_tokens: f64,
    pub prompts_per_minute: f64,
    /// Share that the chosen endpoints were believed to hold.
    pub believed_ratio: f64,
    /// Share that engines found cached; `null` where they do not say.
    pub found_ratio: Option<f64>,
    pub regression: Option<RegressionRow>,
}

/// What an edit broke.
#[derive(Clone, Debug, Serialize)]
pub struct RegressionRow {
    /// `per_request`: the blocks behind the edit differ from prompt to prompt. `replaced`: they are others,
    /// and shared again.
    pub cause: &'static str,
    /// First block that differs, from 0.
    pub block: u32,
    /// Where that block begins, in bytes of prompt text (as JSON carries it) and in tokens of four bytes.
    pub at_byte: u64,
    pub at_token: u64,
    pub shared_tokens_before: u64,
    pub shared_tokens_after: f64,
    pub prompts_per_minute: f64,
    pub lost_tokens_per_hour: f64,
    pub lost_gpu_seconds_per_hour: f64,
    /// `null` without a price.
    pub lost_cost_per_hour: Option<f64>,
    pub since_seconds: u64,
}

const BYTES_PER_TOKEN: u64 = 4;

impl TemplateDesk {
    /// Counts a prompt, unless another thread is at it: one more or less makes no difference.
    pub(crate) fn observe(
        &self,
        pool: &PoolName,
        hashes: &[BlockHash],
        matched_blocks: u32,
        now: Timestamp,
    ) -> Option<TemplateRef> {
        self.0.try_lock().ok()?.observe(pool, hashes, matched_blocks, now)
    }

    pub(crate) fn answered(&self, template: TemplateRef, prompt_tokens: u64, cached_tokens: u64) {
        if let Ok(mut templates) = self.0.try_lock() {
            templates.answered(template, prompt_tokens, cached_tokens);
        }
    }

    /// Begins anew where the pace is another.
    pub(crate) fn set_pace(&self, within: Duration) {
        let mut templates = self.lock();
        if templates.short_memory() != within {
            *templates = Templates::telling_within(within);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Templates> {
        // A panic while counting leaves a count wrong at most.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the templates every few seconds, until dropped.
pub async fn watch_templates(gateway: std::sync::Arc<Gateway>) {
    loop {
        let pause = gateway.templates.lock().tick_every();
        tokio::time::sleep(pause).await;
        if gateway.spec().observability.prefix_alarm.enabled {
            gateway.judge_templates(clock::now());
        }
    }
}

impl Gateway {
    /// Tells what began and what ended since the last call, and brings the gauges up to date.
    pub(crate) fn judge_templates(&self, now: Timestamp) {
        let events = self.templates.lock().tick(now);
        for event in &events {
            self.tell(event);
        }
        let views = self.templates.lock().views(now);
        for pool in &self.catalog().pools {
            let of_pool = views.iter().filter(|view| view.pool == pool.name);
            let open = of_pool.filter_map(|view| view.regression.as_ref());
            let worth: Vec<_> = open.filter(|open| self.is_worth_it(open)).collect();
            let count = i64::try_from(worth.len()).unwrap_or(i64::MAX);
            pool.metrics.prefix_regressions_open.set(count);
            let lost: f64 = worth.iter().map(|open| self.lost_tokens(open)).sum();
            pool.metrics.prefix_loss.set(lost);
        }
    }

    fn tell(&self, event: &Event) {
        let catalog = self.catalog();
        let find = |name: &PoolName| catalog.pools.iter().find(|pool| pool.name == *name);
        match event {
            Event::Began { template, pool, regression } => {
                let row = self.regression_row(find(pool), regression, clock::now());
                let (before, after) = (row.shared_tokens_before, row.shared_tokens_after);
                if regression.cause == Cause::Replaced {
                    tracing::info!(%pool, template, block = row.block, at_byte = row.at_byte, shared_tokens = before, "a prompt template was edited; its prompts share as much as before");
                } else if self.is_worth_it(regression) {
                    if let Some(pool) = find(pool) {
                        pool.metrics.prefix_regressions.inc();
                    }
                    tracing::warn!(%pool, template, block = row.block, at_byte = row.at_byte, shared_tokens_before = before, shared_tokens_after = after, lost_tokens_per_hour = row.lost_tokens_per_hour, lost_gpu_seconds_per_hour = row.lost_gpu_seconds_per_hour, "prompts of one template share less than they did: something that differs from prompt to prompt stands at this place now");
                }
            }
            Event::Ended { template, pool, regression } => {
                tracing::info!(%pool, template, block = regression.block, "an edit of a prompt template no longer costs anything, or is what is usual by now");
            }
        }
    }

    fn is_worth_it(&self, regression: &Regression) -> bool {
        let least = self.spec().observability.prefix_alarm.loss_tokens_per_hour_min;
        regression.cause == Cause::PerRequest && self.lost_tokens(regression) >= least as f64
    }

    fn lost_tokens(&self, regression: &Regression) -> f64 {
        regression.lost_blocks_per_hour * f64::from(self.block_tokens())
    }

    /// All templates as they stand.
    pub fn templates_view(&self, now: Timestamp) -> TemplatesView {
        let catalog = self.catalog();
        let block_tokens = self.block_tokens();
        let views = self.templates.lock().views(now);
        let rows = views.into_iter().map(|view| {
            let pool = catalog.pools.iter().find(|pool| pool.name == view.pool);
            TemplateRow {
                id: view.id,
                pool: view.pool.as_str().to_owned(),
                shared_tokens: u64::from(view.shared_blocks) * u64::from(block_tokens),
                prompt_tokens: view.prompt_blocks * f64::from(block_tokens),
                prompts_per_minute: view.prompts_per_minute,
                believed_ratio: view.believed_ratio,
                found_ratio: view.found_ratio,
                regression: view
                    .regression
                    .as_ref()
                    .map(|regression| self.regression_row(pool, regression, now)),
            }
        });
        TemplatesView { block_tokens, templates: rows.collect() }
    }

    fn regression_row(
        &self,
        pool: Option<&std::sync::Arc<Pool>>,
        regression: &Regression,
        now: Timestamp,
    ) -> RegressionRow {
        let block_tokens = u64::from(self.block_tokens());
        let lost_tokens = self.lost_tokens(regression);
        let seconds = lost_tokens * pool.map_or(0.0, |pool| prefill_seconds_per_token(pool, now));
        let spec = self.spec();
        let mut prices = spec.observability.prices.iter();
        let price = prices.find(|price| pool.is_some_and(|pool| pool.name == price.scheduler));
        let at_token = u64::from(regression.block) * block_tokens;
        let gpus = price.map_or(1.0, |price| f64::from(price.gpus_per_endpoint.get()));
        RegressionRow {
            cause: match regression.cause {
                Cause::PerRequest => "per_request",
                Cause::Replaced => "replaced",
            },
            block: regression.block,
            at_byte: at_token * BYTES_PER_TOKEN,
            at_token,
            shared_tokens_before: u64::from(regression.shared_before) * block_tokens,
            shared_tokens_after: regression.shared_after * block_tokens as f64,
            prompts_per_minute: regression.prompts_per_minute,
            lost_tokens_per_hour: lost_tokens,
            lost_gpu_seconds_per_hour: gpus * seconds,
            lost_cost_per_hour: price.map(|price| price.gpu_hour * gpus * seconds / 3600.0),
            since_seconds: now.since(regression.since).as_secs(),
        }
    }
}

/// The mean over the pool's endpoints, as learned.
fn prefill_seconds_per_token(pool: &Pool, now: Timestamp) -> f64 {
    let speeds = pool.members.iter().map(|member| member.member.state.speed(now));
    let sum: f64 = speeds.map(|speed| f64::from(speed.prefill_ms_per_token)).sum();
    let count = pool.members.len().max(1) as f64;
    Duration::from_secs_f64((sum / count / 1e3).clamp(0.0, 1.0)).as_secs_f64()
}

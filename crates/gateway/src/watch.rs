//! Watches endpoints: what they measure, and which models they serve.
//!
//! One task for each endpoint, ended when the endpoint leaves. A slow endpoint delays only its own
//! scrapes, and a task never has more than one under way.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engines::cadence::{Cadence, Config as CadenceConfig, Outcome};
use telemetry::clock;
use telemetry::metrics::labels;
use tokio::task::AbortHandle;
use types::{EndpointId, EndpointMetrics, EngineKind, Timestamp};

use crate::fetch::{Fetch, FetchError, Fetched};
use crate::{Gateway, Member, admission};

/// Bytes of a model list.
const MODELS_BYTES_MAX: usize = 1 << 20;
/// How often an endpoint is asked what it serves, once it has told.
const MODELS_INTERVAL: Duration = Duration::from_secs(10);
/// How often until it has told.
const MODELS_FIRST_INTERVAL: Duration = Duration::from_millis(500);
const MODELS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long news of one endpoint wait for those of others.
const NEWS_PAUSE: Duration = Duration::from_millis(20);

/// Runs until dropped. Must run inside a `LocalSet`.
pub async fn watch<F: Fetch>(gateway: Arc<Gateway>, fetch: Rc<F>) {
    let mut watched = Watched::default();
    watched.clock = Some(tokio::task::spawn_local(admission::keep(gateway.clone())).abort_handle());
    let mut changed = gateway.members_changed();
    loop {
        changed.borrow_and_update();
        watched.follow(&gateway, &fetch);
        tokio::select! {
            outcome = changed.changed() => if outcome.is_err() {
                return;
            },
            () = gateway.served_news() => {
                tokio::time::sleep(NEWS_PAUSE).await;
                gateway.rebuild();
            }
        }
    }
}

/// The tasks under way.
#[derive(Default)]
struct Watched {
    /// By endpoint.
    members: HashMap<EndpointId, (Arc<Member>, Vec<AbortHandle>)>,
    clock: Option<AbortHandle>,
}

impl Watched {
    fn follow<F: Fetch>(&mut self, gateway: &Arc<Gateway>, fetch: &Rc<F>) {
        let members = gateway.members();
        let by_id: HashMap<EndpointId, &Arc<Member>> =
            members.iter().map(|member| (member.endpoint.id, member)).collect();
        self.members.retain(|id, (known, tasks)| {
            let stays = by_id.get(id).is_some_and(|member| Arc::ptr_eq(member, known));
            if !stays {
                tasks.iter().for_each(AbortHandle::abort);
            }
            stays
        });
        for member in members {
            self.members.entry(member.endpoint.id).or_insert_with(|| {
                let scrapes = tokio::task::spawn_local(scrape(
                    gateway.clone(),
                    member.clone(),
                    fetch.clone(),
                ));
                let models = tokio::task::spawn_local(ask_models(
                    gateway.clone(),
                    member.clone(),
                    fetch.clone(),
                ));
                (member, vec![scrapes.abort_handle(), models.abort_handle()])
            });
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let of_members = self.members.values().flat_map(|(_, tasks)| tasks);
        of_members.chain(&self.clock).for_each(AbortHandle::abort);
    }
}

async fn scrape<F: Fetch>(gateway: Arc<Gateway>, member: Arc<Member>, fetch: Rc<F>) {
    let mut rhythm = rhythm(&gateway.spec().scrape);
    let mut cadence = Cadence::new(rhythm, member.endpoint.id);
    let mut last = EndpointMetrics::default();
    let mut path = member.metrics_path.as_str();
    let mut complained = false;
    loop {
        // Read anew each time: a reload may have changed it.
        let settings = gateway.spec().scrape.clone();
        if rhythm != self::rhythm(&settings) {
            rhythm = self::rhythm(&settings);
            cadence = Cadence::new(rhythm, member.endpoint.id);
        }
        let begun = clock::now();
        let fetched = fetch
            .get(
                &member.endpoint.address,
                path,
                member.authorization(),
                engines::PAGE_BYTES_MAX,
                settings.timeout,
            )
            .await;
        let read = read_page(fetched, member.engine);
        let now = clock::now();
        let took = now.since(begun);
        let outcome = match read {
            Ok(page) => {
                complained = false;
                let changed = page.metrics != last;
                gateway.book_scrape(&member, &page, now, limit_of_age(&settings, &cadence));
                last = page.metrics;
                Outcome::Good { changed }
            }
            Err(reason) => {
                // Some engines keep their metrics elsewhere (TensorRT-LLM); the next round tries there.
                if matches!(reason, labels::ScrapeFailure::Status)
                    && member.metrics_path == "/metrics"
                {
                    path = if path == "/metrics" { "/prometheus/metrics" } else { "/metrics" };
                }
                member.state.record_scrape_failure(now);
                gateway.book_scrape_failure(&member, reason);
                if !std::mem::replace(&mut complained, true) {
                    let endpoint = &member.authority;
                    tracing::warn!(%endpoint, ?reason, "metrics cannot be read");
                }
                Outcome::Failed
            }
        };
        gateway.pump_pools_of(member.endpoint.id, now);
        let next = cadence.after_scrape(now, outcome, member.state.in_flight(), took);
        wait(&member, &mut cadence, next).await;
    }
}

fn rhythm(settings: &config::Scrape) -> CadenceConfig {
    CadenceConfig {
        busy: settings.busy_interval,
        idle: settings.idle_interval,
        timeout: settings.timeout,
    }
}

/// Age at which a scrape counts for nothing: the setting, else five seconds or more where pages come
/// more slowly. An engine at its busiest answers its metrics late; that is no reason to shun it.
fn limit_of_age(scrape: &config::Scrape, cadence: &Cadence) -> Duration {
    match scrape.stale_after {
        Some(limit) => limit,
        None => scrape.stale_after().max(cadence.stale_after()),
    }
}

/// Waits for the next scrape, or for a request that ends the idleness.
async fn wait(member: &Member, cadence: &mut Cadence, next: Timestamp) {
    let sleep = tokio::time::sleep(next.since(clock::now()));
    tokio::select! {
        () = sleep => {}
        () = member.woken() => {
            let next = cadence.woken(clock::now());
            tokio::time::sleep(next.since(clock::now())).await;
        }
    }
}

fn read_page(
    fetched: Result<Fetched, FetchError>,
    engine: Option<EngineKind>,
) -> Result<engines::Page, labels::ScrapeFailure> {
    let fetched = fetched.map_err(|error| match error {
        FetchError::Connect => labels::ScrapeFailure::Connect,
        FetchError::Timeout => labels::ScrapeFailure::Timeout,
        FetchError::TooLarge(_) => labels::ScrapeFailure::TooLarge,
        FetchError::Broken => labels::ScrapeFailure::Unreadable,
    })?;
    if fetched.status != 200 {
        return Err(labels::ScrapeFailure::Status);
    }
    engines::parse(&fetched.body, engine).map_err(|_| labels::ScrapeFailure::Unreadable)
}

async fn ask_models<F: Fetch>(gateway: Arc<Gateway>, member: Arc<Member>, fetch: Rc<F>) {
    let mut told = false;
    loop {
        let fetched = fetch
            .get(
                &member.endpoint.address,
                "/v1/models",
                member.authorization(),
                MODELS_BYTES_MAX,
                MODELS_TIMEOUT,
            )
            .await;
        if let Ok(Fetched { status: 200, body }) = fetched
            && let Ok(models) = engines::models::parse(&body)
        {
            told = true;
            member.listed.note(clock::now());
            gateway.hear_served(&member.endpoint.address, models);
        }
        let interval = if told { MODELS_INTERVAL } else { MODELS_FIRST_INTERVAL };
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = member.models_doubted() => {}
        }
    }
}

impl Gateway {
    /// Takes over what an endpoint measured.
    fn book_scrape(
        &self,
        member: &Member,
        page: &engines::Page,
        now: Timestamp,
        stale_after: Duration,
    ) {
        member.state.record_scrape(&page.metrics, now, stale_after);
        member.set_engine(page.metrics.engine);
        if let (Some(size), Some(count)) =
            (page.metrics.block_size_tokens, page.metrics.block_count)
        {
            member.set_blocks(size, count);
            // The engine's capacity in our own blocks.
            let tokens = u64::from(size).saturating_mul(count);
            self.index.set_capacity(member.endpoint.slot, tokens / u64::from(self.block_tokens()));
        }
        for gauges in self.gauges_of(member) {
            gauges.show(&page.metrics);
            gauges.scrapes.inc();
            let anomalies = &page.anomalies;
            for (kind, count) in [
                (labels::ScrapeAnomaly::MalformedLine, anomalies.malformed_lines),
                (labels::ScrapeAnomaly::RejectedValue, anomalies.rejected_values),
                (labels::ScrapeAnomaly::DuplicateSeries, anomalies.duplicate_series),
            ] {
                gauges.scrape_anomalies.of(kind).add(u64::from(count));
            }
        }
    }

    /// An endpoint told more, or fell silent: somebody may have room now.
    fn pump_pools_of(self: &Arc<Self>, endpoint: EndpointId, now: Timestamp) {
        let catalog = self.catalog();
        let queues = catalog.pools_of(endpoint).filter_map(|pool| pool.admission.as_ref());
        queues.for_each(|queue| queue.pump(self, now));
    }

    fn book_scrape_failure(&self, member: &Member, reason: labels::ScrapeFailure) {
        for gauges in self.gauges_of(member) {
            gauges.scrape_failures.of(reason).inc();
        }
    }

    /// The endpoint's series in each pool that contains it.
    fn gauges_of(&self, member: &Member) -> Vec<Arc<telemetry::EndpointGauges>> {
        let catalog = self.catalog();
        catalog
            .pools_of(member.endpoint.id)
            .filter_map(|pool| pool.member(member.endpoint.id))
            .map(|member| member.gauges.clone())
            .collect()
    }
}
